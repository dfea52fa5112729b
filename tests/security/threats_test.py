#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each row of docs/operate/threats.md names tests, and that ctest has them.

usage: threats_test.py SOURCE BUILD
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, BUILD = map(Path, (sys.argv.pop(1), sys.argv.pop(1)))
PAGE = SOURCE / "docs" / "operate" / "threats.md"
NAME = re.compile(r"`(\w+\.\w+)`")


class Threats(unittest.TestCase):
    def setUp(self) -> None:
        listed = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True,
                                timeout=120, check=True)  # fmt: skip
        self.known = {test["name"] for test in json.loads(listed.stdout)["tests"]}
        self.lines = PAGE.read_text(encoding="utf-8").splitlines()

    def test_each_row_names_tests(self) -> None:
        rows = [line for line in self.lines if line.startswith("| ") and "shown by" not in line]
        self.assertGreater(len(rows), 20)
        for row in rows:
            with self.subTest(row=row):
                statement, tests = row.strip("| ").split(" | ")
                self.assertNotRegex(statement, NAME)
                self.assertRegex(tests, rf"^{NAME.pattern}( {NAME.pattern})*$")

    def test_each_test_exists(self) -> None:
        named = [name for line in self.lines for name in NAME.findall(line)]
        self.assertEqual([name for name in named if name not in self.known], [])

    def test_each_test_of_the_folder_is_named(self) -> None:
        sources = sorted(Path(__file__).parent.glob("*_test.cc"))
        self.assertTrue(sources)
        own = [".".join(match) for source in sources
               for match in re.findall(r"^TEST_F\((\w+), (\w+)\)", source.read_text(), re.MULTILINE)]  # fmt: skip
        page = "\n".join(self.lines)
        self.assertEqual([name for name in own if f"`{name}`" not in page], [])


if __name__ == "__main__":
    unittest.main()
