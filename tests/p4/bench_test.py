# SPDX-License-Identifier: Apache-2.0
"""bench/cluster/run --switch p4: verified sums through BMv2 in its namespaces, over links that lose, duplicate and
reorder frames, and in racks.

usage: bench_test.py FOLDER_OF_PROGRAMS
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import bmv2

RUN = Path(__file__).resolve().parents[2] / "bench" / "cluster" / "run"
PATIENCE_S = 900


class BenchTest(unittest.TestCase):
    def measure(self, *flags, switch="p4"):
        """Returns the results of the systems. The benchmark fails if a sum is wrong."""
        words = [sys.executable, "-B", str(RUN), "--switch", switch, "--bin", sys.argv[1], "--rounds", "1", "--operations", "2",
                 "--timeout", "300", "--json", *flags]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode == bmv2.SKIPPED:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["systems"]

    def test_four_workers_sum_and_the_bridges_serve_the_next_system(self):
        others = ",gloo" if os.path.exists(os.path.join(sys.argv[1], "bench_gloo")) else ""
        measured = self.measure("--systems", f"atp{others}", "--gloo-algorithm", "ring")
        self.assertGreater(measured["atp-p4"]["in_network_share"], 0.5)
        for system in measured.values():
            self.assertGreater(system["goodput_bps"], 0)

    def test_both_programs_sum_in_turns(self):
        measured = self.measure("--systems", "atp-p4,atp-p4-passes", "--bytes", "8000", switch="user")
        for name in ("atp-p4", "atp-p4-passes"):
            self.assertGreater(measured[name]["in_network_share"], 0.5)

    def test_narrow_lanes_sum_through_passes(self):
        measured = self.measure("--systems", "atp", "--lane-type", "int16", "--bytes", "8000", switch="p4-passes")
        self.assertGreater(measured["atp-p4-passes"]["in_network_share"], 0.5)

    def check_faults(self, links, *flags):
        if not os.path.exists(os.path.join(sys.argv[1], "link_fault")):
            self.skipTest("there is no link_fault")
        faults = [f"--fault={kind}@{link}" for kind in ("loss=1%", "duplicates=5%", "reorder=10%") for link in links]
        measured = self.measure("--systems", "atp", *flags, *faults)["atp-p4"]
        counts = measured["faults"].values()
        self.assertGreater(sum(each["lost"] for each in counts), 0)
        self.assertGreater(sum(each["duplicated"] for each in counts), 0)
        self.assertGreater(sum(each["delayed"] for each in counts), 0)
        self.assertGreater(measured["in_network_share"], 0.5)

    def test_lost_duplicated_and_reordered_frames_change_no_sum(self):
        self.check_faults(("hosts", "server"), "--bytes", "8000")

    def test_lost_duplicated_and_reordered_frames_between_racks_change_no_sum(self):
        self.check_faults(("hosts", "uplinks", "server"), "--racks", "2x2", "--bytes", "4000")

    def test_eight_workers_in_two_racks_sum_at_two_levels(self):
        measured = self.measure("--systems", "atp", "--racks", "2x4", "--bytes", "4000")["atp-p4"]
        self.assertGreater(measured["in_network_share"], 0.5)


if __name__ == "__main__":
    bmv2.tool("p4c-bm2-ss")
    bmv2.tool("simple_switch")
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
