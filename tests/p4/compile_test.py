# SPDX-License-Identifier: Apache-2.0
"""The programs compile for BMv2 without a warning, with 8 and 62 lanes; long_rows_test.py compiles 352. The registers of a
pipeline compile for all stages of Tofino 1, if its compiler is there.
"""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import bmv2

# As in docs/develop/p4.md. Stages 4 to 11 have 31 pairs of lanes.
REGISTERS_OF_STAGES = [0, 1, 1, 3, 3, 4, 4, 4, 4, 4, 4, 4]


class CompileTest(unittest.TestCase):
    def test_short_and_usual_lanes_compile(self):
        for lanes in (8, 62):
            with self.subTest(lanes=lanes), tempfile.TemporaryDirectory() as folder:
                self.assertTrue(bmv2.compiled(folder, f"ATP_LANES={lanes}").is_file())

    def test_a_pipeline_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(bmv2.compiled(folder, program=bmv2.PIPELINE).is_file())

    def test_registers_of_a_pipeline_take_twelve_stages_of_tofino(self):
        compiler = bmv2.find("p4c-barefoot")
        if not compiler:
            self.skipTest("p4c-barefoot is neither on PATH nor in ATP_P4_TOOLS")
        with tempfile.TemporaryDirectory() as folder:
            installed = Path(compiler).resolve().parents[1] / "share" / "p4c" / "p4include"
            words = [compiler, "-g", "--target", "tofino", "--arch", "tna", "-D__TARGET_TOFINO__=1", "-DATP_PAIRS=31",
                     "-I", str(installed), "-o", folder]  # fmt: skip
            done = subprocess.run([*words, str(bmv2.SOURCES / "cells.tna.p4")], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            assembly = Path(folder, "pipe", "cells.bfa").read_text()
            report = json.loads(Path(folder, "pipe", "logs", "resources.json").read_text())
        self.assertEqual(max(map(int, re.findall(r"^stage (\d+) ingress", assembly, flags=re.M))), 11)
        stages = report["resources"]["mau"]["mau_stages"]
        self.assertEqual([len(stage["meter_alus"]["meters"]) for stage in stages], REGISTERS_OF_STAGES)


if __name__ == "__main__":
    bmv2.tool("p4c-bm2-ss")
    unittest.main()
