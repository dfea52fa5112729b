#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A switch works within its confinement: no way of running it makes a call that would end it, and its threads hold no
capability. `running_switch` confines every switch of these tests in this way; here are the ways that no other test takes.

usage: confinement_test.py FOLDER_OF_PROGRAMS
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from running_job import Job  # noqa: E402
from running_switch import Switch  # noqa: E402

ATP = str(Path(sys.argv.pop()) / "atp")


def states(process: int) -> list[dict[str, str]]:
    """What the kernel says of each thread."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        found.append({key: value.strip() for key, _, value in (line.partition(":") for line in lines)})
    return found


class Confinement(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *flags: object) -> tuple[Switch, str]:
        switch = Switch(ATP, *flags)
        self.addCleanup(switch.stop)
        return switch, switch.address()

    def run_job(self, address: str) -> None:
        job = Job(ATP, [address] * 2, "--server", "switch", rounds=50)
        self.addCleanup(job.end)
        job.finish()

    def test_no_thread_holds_a_capability_and_all_are_filtered(self) -> None:
        switch, address = self.start("--threads", 2, "--http", "127.0.0.1:0", "--control", self.folder / "control",
                                     "--trace", self.folder / "trace")  # fmt: skip
        self.run_job(address)
        # A thread of its own makes the report.
        subprocess.run([ATP, "stats", address], capture_output=True, timeout=30, check=True)
        found = states(switch.process.pid)
        self.assertGreaterEqual(len(found), 7)
        for state in found:
            with self.subTest(thread=state["Name"]):
                for kind in ("CapPrm", "CapEff", "CapInh"):
                    self.assertEqual(int(state[kind], 16), 0, kind)
                self.assertEqual((state["Seccomp"], state["NoNewPrivs"]), ("2", "1"))
        self.assertEqual(switch.stop(), 0)

    def test_leaf_and_parent(self) -> None:
        parent, above = self.start()
        leaf, address = self.start("--parent", above)
        self.run_job(address)
        self.assertEqual((leaf.stop(), parent.stop()), (0, 0))

    def test_pinned_threads_that_poll_and_keep_state(self) -> None:
        switch, address = self.start("--threads", 2, "--pin", "--spin", "1ms", "--state", self.folder / "state")
        self.run_job(address)
        self.assertEqual(switch.stop(), 0)

    def test_metrics_and_page(self) -> None:
        switch, address = self.start("--http", "127.0.0.1:0")
        found = re.search(r"http://[^/]+/", switch.line("http://"))
        assert found is not None
        self.run_job(address)
        for path in ("metrics", "reports", "healthz", ""):
            with urllib.request.urlopen(found[0] + path, timeout=20) as answer:
                self.assertEqual(answer.status, 200)
        self.assertEqual(switch.stop(), 0)


if __name__ == "__main__":
    unittest.main()
