#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the JUnit files that ctest wrote. Prints how many tests passed, failed and were skipped, as three numbers in one
line, and then the name of each failed test in a line of its own."""

import sys
import xml.etree.ElementTree as ElementTree

# Messages of ctest for a test that skipped itself. ctest reports any other test that did not run, such as one that was
# not built, as a failure; so does this script.
SKIPPED_ON_PURPOSE = ("SKIP_REGULAR_EXPRESSION_MATCHED", "SKIP_RETURN_CODE", "Disabled")


def outcome(case):
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    message = "" if skipped is None else skipped.get("message", "")
    if case.get("status") == "disabled" or message.startswith(SKIPPED_ON_PURPOSE):
        return "skipped"
    return "failed"


def main(paths):
    names = {"passed": [], "failed": [], "skipped": []}
    for path in paths:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            names[outcome(case)].append(case.get("name"))
    print(*(len(of_outcome) for of_outcome in names.values()))
    print("\n".join(names["failed"]))


main(sys.argv[1:])
