# SPDX-License-Identifier: Apache-2.0
"""Keeps the lines of a logger for a test."""

from __future__ import annotations

import logging
import time


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.all = []

    def emit(self, record):
        self.all.append(f"{record.levelname} {record.getMessage()}")

    def with_begin(self, begin):
        return [line for line in self.all if line.startswith(begin)]

    def wait_for(self, begin):
        """Returns the first line that begins so. A thread hands over the lines."""
        for _ in range(1000):
            if found := self.with_begin(begin):
                return found[0]
            time.sleep(0.01)
        raise AssertionError(f"no line begins with {begin}: {self.all}")
