# SPDX-License-Identifier: Apache-2.0
"""What became of one of PyTorch's own tests."""

from __future__ import annotations

import unittest
from typing import Any

PASSED = "passed"


class Results(unittest.TestResult):
    """The result of one test."""

    outcome = PASSED
    text = ""

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.outcome, self.text = "skipped", reason

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.outcome, self.text = "failed", self.failures[-1][1]

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.outcome, self.text = "failed", self.errors[-1][1]
