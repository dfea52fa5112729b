#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many tests passed, failed and were skipped in the JUnit files that ctest wrote, as three numbers."""

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
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for path in paths:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            counts[outcome(case)] += 1
    print(counts["passed"], counts["failed"], counts["skipped"])


main(sys.argv[1:])
