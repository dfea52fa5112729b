#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the program may lie at any address, and that program and library end at errors in memory, and have tables
of functions that nobody writes once they are loaded.

usage: hardening_test.py PROGRAM LIBRARY
"""

from __future__ import annotations

import subprocess
import sys
import unittest

PROGRAM, LIBRARY = sys.argv.pop(1), sys.argv.pop(1)


def read(*words: str) -> str:
    return subprocess.run(["readelf", "-W", *words], capture_output=True, text=True, timeout=60, check=True).stdout


class Hardening(unittest.TestCase):
    def test_program_is_position_independent(self) -> None:
        text = read("-hd", PROGRAM)
        self.assertRegex(text, r"Type: +DYN")
        self.assertRegex(text, r"FLAGS_1.*PIE")

    def test_all_functions_are_bound_at_start_and_their_tables_are_read_only_then(self) -> None:
        for path in (PROGRAM, LIBRARY):
            with self.subTest(path=path):
                text = read("-ld", path)
                self.assertIn("GNU_RELRO", text)
                self.assertRegex(text, r"FLAGS_1.*NOW")
                self.assertNotIn("TEXTREL", text)
                self.assertNotRegex(text, r"GNU_STACK.*RWE")

    def test_stack_and_calls_of_the_c_library_are_checked(self) -> None:
        for path in (PROGRAM, LIBRARY):
            with self.subTest(path=path):
                symbols = read("--dyn-syms", path)
                self.assertRegex(symbols, r"UND __stack_chk_fail\b")
                self.assertRegex(symbols, r"UND __(memcpy|memmove|memset|read|recv|poll)_chk\b")


if __name__ == "__main__":
    unittest.main()
