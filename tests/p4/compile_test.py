# SPDX-License-Identifier: Apache-2.0
"""The program compiles for BMv2 without a warning, with each number of lanes."""

import tempfile
import unittest

import bmv2


class CompileTest(unittest.TestCase):
    def test_each_number_of_lanes_compiles(self):
        for lanes in (8, 62):
            with self.subTest(lanes=lanes), tempfile.TemporaryDirectory() as folder:
                self.assertTrue(bmv2.compiled(folder, f"ATP_LANES={lanes}").is_file())


if __name__ == "__main__":
    bmv2.tool("p4c-bm2-ss")
    unittest.main()
