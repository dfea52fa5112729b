#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Upgrades of switches while a job of four ranks in two racks runs: docs/operate/upgrade.md. Each rank compares every
sum with the right one, bit by bit. Printed is the longest operation, so how long the job made no progress.

usage: upgrade_test.py FOLDER_OF_PROGRAMS"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from running_job import Job, completed_at, report_of  # noqa: E402
from running_switch import Switch  # noqa: E402
from serving import wait_until  # noqa: E402

ATP = str(Path(sys.argv.pop()) / "atp")
RANKS_OF_A_RACK = 2
ROUNDS = 2_000  # they last longer than all that happens to the switches
MOST_GAP_S = 5  # a machine of tests may be busy; what is meant is 1 s


class Upgrades(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.control = Path(folder.name) / "control"
        self.root = self.start("--control", self.control)
        self.root_address = self.root.address()
        self.leaves = [self.start("--parent", self.root_address) for _ in range(2)]
        self.addresses = [leaf.address() for leaf in self.leaves]

    def start(self, *flags: object, listen: str = "127.0.0.1:0") -> Switch:
        switch = Switch(ATP, *flags, listen=listen)
        self.addCleanup(switch.stop)
        return switch

    def job(self, rounds: int = ROUNDS, server: str = "switch") -> Job:
        switches = [address for address in self.addresses for _ in range(RANKS_OF_A_RACK)]
        job = Job(ATP, switches, "--server", server, rounds=rounds)
        self.addCleanup(job.end)
        return job

    def replace(self, switch: Switch, address: str, *flags: object) -> float:
        """Ends the process and starts the next one as soon as it has ended, as a service manager does. Returns how long
        no switch was there."""
        begin = time.monotonic()
        switch.process.send_signal(signal.SIGTERM)
        self.assertEqual(switch.wait(), 0)
        self.start(*flags, listen=address).address()
        return time.monotonic() - begin

    def assert_progress(self, what: str, away_s: float, gap_s: float) -> None:
        print(f"{what}: no switch for {away_s:.3f} s, and no sum for {gap_s:.3f} s", flush=True)
        self.assertLess(gap_s, MOST_GAP_S)

    def test_leaf_is_replaced_under_a_running_job(self) -> None:
        job = self.job()
        job.wait_until_sums_leave(ATP, self.addresses[1])
        away_s = self.replace(self.leaves[1], self.addresses[1], "--parent", self.root_address)
        job.wait_until_sums_leave(ATP, self.addresses[1])  # the new one adds
        self.assert_progress("a leaf", away_s, max(job.finish()["seconds"]))

    def test_root_without_servers_is_replaced_under_a_running_job(self) -> None:
        job = self.job(server="colocated")
        job.wait_until_sums_leave(ATP, self.root_address)
        away_s = self.replace(self.root, self.root_address)
        job.wait_until_sums_leave(ATP, self.root_address)
        self.assert_progress("a root without servers", away_s, max(job.finish()["seconds"]))

    def test_root_is_replaced_after_a_drain(self) -> None:
        job = self.job()
        job.wait_until_sums_leave(ATP, self.root_address)
        drain = subprocess.Popen([ATP, "drain", str(self.control)], text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)  # fmt: skip
        self.root.line("drain began")
        drained_sums = completed_at(ATP, self.root_address)
        wait_until(lambda: not job.runs or completed_at(ATP, self.root_address) > drained_sums, "the job goes on")
        self.assertTrue(job.runs, "the job ended before its switch drained")
        gap_s = max(job.finish()["seconds"])
        said, _ = drain.communicate(timeout=60)
        self.assertEqual(drain.returncode, 0, said)
        self.assertEqual(self.root.wait(), 0)
        begin = time.monotonic()
        self.start(listen=self.root_address).address()
        away_s = time.monotonic() - begin
        wait_until(lambda: all((report_of(ATP, leaf) or {}).get("parent_answers") for leaf in self.addresses),
                   "the leaves reach the new root")  # fmt: skip
        print(f"a root after a drain: the leaves reach it {time.monotonic() - begin:.3f} s after the old one's end")
        self.assert_progress("a root after a drain", away_s, gap_s)
        self.job(100).finish()
        self.assertGreater(completed_at(ATP, self.root_address), 100)


if __name__ == "__main__":
    unittest.main()
