#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`atp switch --tenants`, as an operator types it: keys, the file, SIGHUP, and what the switch says about them.

usage: switch_tenants_test.py ATP
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from running_switch import DEADLINE_S, Switch  # noqa: E402

ATP = sys.argv.pop(1)


class SwitchTenants(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for tenant in ("vision", "speech"):
            self.atp("key", "new", f"{tenant}.key", "--tenant", tenant)
            self.atp("key", "for", "leaf-1", f"{tenant}-leaf-1.key", "--from", f"{tenant}.key")
        self.file = self.folder / "tenants.toml"

    def atp(self, *words: str) -> str:
        done = subprocess.run([ATP, *words], cwd=self.folder, text=True, capture_output=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def write(self, *tenants: str) -> None:
        self.file.write_text("".join(f"[[tenant]]\n{tenant}\n" for tenant in tenants))
        self.file.chmod(0o600)

    def start(self, *flags: object) -> Switch:
        switch = Switch(ATP, *flags)
        self.addCleanup(switch.stop)
        return switch

    def report(self, address: str) -> dict:
        return json.loads(self.atp("stats", address, "--json"))

    def test_tenants_are_reloaded_and_an_error_keeps_those_before(self) -> None:
        self.write("name = 'vision'\nkeys = 'vision-leaf-1.key'\njobs = 8\nserver_memory = '32MB'",
                   "name = 'speech'\nkeys = 'speech-leaf-1.key'")  # fmt: skip
        switch = self.start("--tenants", self.file, "--threads", 2)
        address = re.search(r"127\.0\.0\.1:\d+", switch.line("atp switch at"))[0]
        self.assertIn("2", switch.line("^  tenants "))
        self.assertIn("tenants=2", switch.line("switch started"))
        report = self.report(address)
        self.assertEqual(
            report["tenants"], [{"name": "vision", "jobs": 8, "server_bytes": 32_000_000}, {"name": "speech"}]
        )
        self.assertFalse(report["open"])
        self.assertRegex(self.atp("stats", address), r"vision +0 of 8 +0 +0 of 32 +0 of 0\n")

        self.write("name = 'vision'\nkeys = 'vision-leaf-1.key'\njobs = many")
        switch.process.send_signal(signal.SIGHUP)
        self.assertIn("line 4", switch.line("tenants kept"))
        self.assertEqual(len(self.report(address)["tenants"]), 2)

        self.atp("key", "for", "leaf-2", "vision-leaf-2.key", "--from", "vision.key")
        self.write("name = 'vision'\nkeys = 'vision-leaf-2.key'")
        switch.process.send_signal(signal.SIGHUP)
        self.assertIn("for switch leaf-2, and this one is leaf-1", switch.line("tenants kept"))

        self.write("name = 'vision'\nkeys = 'vision-leaf-1.key'\njobs = 4\nserver_memory = '32MB'")
        switch.process.send_signal(signal.SIGHUP)
        self.assertIn("tenant vision: jobs 4 (was 8)", switch.line("tenants changed"))
        self.assertIn("tenant speech removed", switch.line("tenants changed"))
        # A switch makes a report at most every 100 ms.
        end = time.monotonic() + DEADLINE_S
        while len(self.report(address)["tenants"]) != 1:
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.report(address)["tenants"][0]["jobs"], 4)
        self.assertEqual(switch.stop(), 0)

    def job(self, switches: list[str], rounds: int, **variables: str) -> list[subprocess.Popen]:
        """The ranks of a job of two hosts, each at its switch."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            store = f"127.0.0.1:{free.getsockname()[1]}"
        environment = {name: value for name, value in os.environ.items() if name != "ATP_KEY_FILE"} | variables
        ranks = []
        for rank, switch in enumerate(switches):
            words = [ATP, "bench", "--rank", str(rank), "--world", str(len(switches)), "--rendezvous", store,
                     "--host-name", f"host{rank}", "--switch", switch, "--server", "switch", "--lanes", "64", "--bytes",
                     "16kB", "--warmup", "0", "--rounds", str(rounds)]  # fmt: skip
            ranks.append(subprocess.Popen(words, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, env=environment))  # fmt: skip
            self.addCleanup(ranks[-1].stdout.close)
            self.addCleanup(lambda rank=ranks[-1]: rank.poll() is None and rank.kill())
        return ranks

    def outputs(self, ranks: list[subprocess.Popen], status: int) -> list[str]:
        texts = [rank.communicate(timeout=DEADLINE_S)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [status] * len(ranks), texts)
        return texts

    def test_each_team_runs_within_its_limits_and_without_a_key_nobody_does(self) -> None:
        self.write(
            "name = 'vision'\nkeys = 'vision-leaf-1.key'\njobs = 1", "name = 'speech'\nkeys = 'speech-leaf-1.key'"
        )
        switch = self.start("--tenants", self.file)
        address = re.search(r"127\.0\.0\.1:\d+", switch.line("atp switch at"))[0]
        first = self.job([address] * 2, 1_000_000, ATP_KEY_FILE="vision.key")
        self.assertRegex(switch.line("job formed"), r"tenant=vision key=\d+ channels=1")
        switch.line("job ready")
        self.assertRegex(self.atp("stats", address), r"vision +1 of 1 +\d+ +\d+ +\d+ of \d+\n")

        for text in self.outputs(self.job([address] * 2, 1, ATP_KEY_FILE="vision.key"), 1):
            self.assertIn("tenant vision has 1 of 1 jobs on this switch", text)
        self.assertRegex(switch.line("job refused"), r"tenant=vision key=\d+ reason=.*1 of 1 jobs")
        self.outputs(self.job([address] * 2, 1, ATP_KEY_FILE="speech.key"), 0)
        self.assertIn("tenant=speech", switch.line("job formed.*tenant=speech"))
        for text in self.outputs(self.job([address] * 2, 1), 1):
            self.assertIn("no such job or key", text)
        for rank in first:
            rank.send_signal(signal.SIGINT)
        self.outputs(first, 130)

    def test_leaves_join_a_root_with_tenants_by_a_key_of_their_own(self) -> None:
        self.atp("key", "new", "fabric.key", "--tenant", "fabric")
        for tenant, switch in (("fabric", "root-1"), ("vision", "root-1"), ("vision", "leaf-2")):
            self.atp("key", "for", switch, f"{tenant}-{switch}.key", "--from", f"{tenant}.key")
        self.write(
            "name = 'vision'\nkeys = 'vision-root-1.key'",
            "name = 'fabric'\nkeys = 'fabric-root-1.key'\nfabric = true",
        )
        root = self.start("--tenants", self.file)
        above = re.search(r"127\.0\.0\.1:\d+", root.line("atp switch at"))[0]
        leaves = []
        for name in ("leaf-1", "leaf-2"):
            self.write(f"name = 'vision'\nkeys = 'vision-{name}.key'")
            key = self.folder / "fabric-root-1.key"
            leaf = self.start("--tenants", self.file, "--parent", above, "--parent-key", key)
            leaves.append(re.search(r"127\.0\.0\.1:\d+", leaf.line("atp switch at"))[0])
        self.outputs(self.job(leaves, 1, ATP_KEY_FILE="vision.key"), 0)
        self.assertIn("tenant=vision", root.line("job formed"))

    def test_key_for_the_parent_needs_tenants(self) -> None:
        self.atp("key", "for", "root-1", "root-1.key", "--from", "vision.key")
        words = [ATP, "switch", "--parent-key", "root-1.key"]
        done = subprocess.run(words, cwd=self.folder, text=True, capture_output=True, timeout=30, check=False)
        self.assertEqual((done.returncode, "--tenants" in done.stderr), (2, True), done.stderr)

    def test_hangup_does_not_end_an_open_switch(self) -> None:
        switch = self.start()
        address = re.search(r"127\.0\.0\.1:\d+", switch.line("atp switch at"))[0]
        self.assertIn("open: no tenants", switch.line("^  tenants "))
        self.assertIn("open: no tenants", switch.line("switch started"))
        self.assertIn("open: no tenants", self.atp("stats", address))
        self.assertTrue(self.report(address)["open"])
        switch.process.send_signal(signal.SIGHUP)
        self.assertIn("without --config and --tenants", switch.line("settings kept"))
        self.assertEqual(switch.stop(), 0)

    def test_a_wrong_file_is_no_start(self) -> None:
        self.write("name = 'vision'\nkeys = 'vision.key'")
        switch = self.start("--tenants", self.file)
        self.assertIn("no switch should hold", switch.line("atp switch: "))
        self.assertEqual(switch.process.wait(DEADLINE_S), 2)


if __name__ == "__main__":
    unittest.main()
