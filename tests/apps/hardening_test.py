#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the program may lie at any address, and that its tables of functions are read-only once it runs.

usage: hardening_test.py PROGRAM
"""

from __future__ import annotations

import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


class Hardening(unittest.TestCase):
    def test_program_is_position_independent_and_binds_all_functions_at_start(self) -> None:
        done = subprocess.run(["readelf", "-hld", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
        self.assertRegex(done.stdout, r"Type: +DYN")
        self.assertRegex(done.stdout, r"FLAGS_1.*NOW.*PIE")
        self.assertIn("GNU_RELRO", done.stdout)


if __name__ == "__main__":
    unittest.main()
