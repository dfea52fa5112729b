#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the table of docs/spec/hazards.md against the names of the tests.

usage: hazard_table_test.py SOURCE_DIR

`ctest -R H07` must run all tests of hazard 7. Each file that the table names for a hazard must therefore have a
test whose name starts with the tag of the hazard. The table must name every file that has such a test.
"""

import re
import sys
import unittest
from pathlib import Path

SOURCES = Path(sys.argv.pop(1))
TESTS = SOURCES / "tests"
ROW = re.compile(r'^\| <a name="h(\d+)"></a>\1 \|(.*)\|$', re.MULTILINE)
GTEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\w+,\s*H(\d{2,3})_", re.MULTILINE)
NETWORK_TEST = re.compile(r"^\s*atp_network_test\((\w+) H(\d{2,3})\)", re.MULTILINE)


def files_in_table() -> dict[int, set[str]]:
    rows = ROW.findall((SOURCES / "docs" / "spec" / "hazards.md").read_text())
    return {int(number): set(re.findall(r"(?:\w+/)+\w+_test\b", cells.split("|")[-1])) for number, cells in rows}


def files_with_tag() -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for path in TESTS.rglob("*_test.cc"):
        for number in GTEST.findall(path.read_text()):
            found.setdefault(int(number), set()).add(str(path.relative_to(TESTS).with_suffix("")))
    for name, number in NETWORK_TEST.findall((TESTS / "xdp" / "CMakeLists.txt").read_text()):
        found.setdefault(int(number), set()).add(f"xdp/{name}_test")
    return found


class HazardTable(unittest.TestCase):
    def test_rows_are_in_order_and_include_hazards_1_to_40(self) -> None:
        numbers = list(files_in_table())
        self.assertEqual(numbers[:40], list(range(1, 41)))
        self.assertEqual(numbers, sorted(numbers))

    def test_each_row_names_the_files_with_tests_of_its_hazard(self) -> None:
        tagged = files_with_tag()
        for number, named in files_in_table().items():
            with self.subTest(hazard=number):
                self.assertEqual(named, tagged.get(number, set()))

    def test_each_tag_of_a_test_has_a_row(self) -> None:
        self.assertLessEqual(set(files_with_tag()), set(files_in_table()))


if __name__ == "__main__":
    unittest.main()
