#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows tools/write_reference sources that it must refuse, changed sources, and pages that are not its own.

usage: write_reference_test.py C_COMPILER
"""

from __future__ import annotations

import sys
import unittest

from tools_test import ToolTest, Written

sys.dont_write_bytecode = True
PAGES = "docs/reference/"
HEADER = "include/atp/atp.h"
TEXTS = "src/machines/endpoint/channel_text.cc"
LEFT = "// errors.md, runs, failed: that rank raised an error"


class WriteReference(Written, ToolTest):
    tool = "write_reference"
    reads = (HEADER, "include/atp/options.h", "src", "python/atp")
    edits = {
        PAGES + "errors.md": ("| ... left the job: check its output |", "| ... went: check its output |"),
        PAGES + "c.md": ("enum atp_scaling\n", "enum atp_scale\n"),
        PAGES + "python.md": ("atp.pull(key", "atp.pull(name"),
        PAGES + "doctor.md": ("| clock | the clock source", "| time | the clock source"),
    }

    def expect_refusal(self, name: str, old: str, new: str, problem: str) -> None:
        text = self.read(name)
        self.replace(name, old, new)
        self.expect(2, problem, arguments=("--check",))
        self.write(name, text)

    def test_a_changed_source_changes_its_page(self) -> None:
        for name, old, new, page, text in (
            (TEXTS, '" left the job: check its', '" went away: check its', "errors.md", "| ... went away: check its"),
            (TEXTS, LEFT, LEFT + " early", "errors.md", "that rank raised an error early"),
            (HEADER, "/* a deadline passed */", "/* too late */", "errors.md", "| `timed out` | too late |"),
            (HEADER, "/* Sums a tensor of each rank. ", "/* Adds. ", "c.md", "\nAdds. `in` and `out` are"),
            (HEADER, " * Time: every wait", " * Time: each wait", "c.md", "- **Time.** Each wait"),
            ("python/atp/push_pull.py", "Adds this rank's values", "Puts its values", "python.md", "\nPuts its values"),
            ("src/drivers/doctor/check_table.cc", '"clock"', '"time"', "doctor.md", "| time | the clock source"),
        ):
            with self.subTest(name=name, new=new):
                self.replace(name, old, new)
                self.expect(1, f"{PAGES}{page}: differs", arguments=("--check",))
                self.expect(0)
                self.assertIn(text, self.read(PAGES + page))

    def test_a_text_of_an_error_needs_its_comment(self) -> None:
        forgotten = "a text that is not in errors.md: write `// errors.md, WHEN, REASON: MEANING` above it"
        for name, old, new, problem in (
            (TEXTS, LEFT, "// That rank raised an error", f"{TEXTS}:"),
            (TEXTS, LEFT, "// That rank raised an error", forgotten),
            (TEXTS, LEFT, "// errors.md, ran, failed: that", "WHEN is one of forms, refused"),
            (TEXTS, LEFT, "// errors.md, runs, broken: that", "'broken' is no reason"),
            (TEXTS, LEFT, "// errors.md, runs: that", "'' is no reason"),
            ("src/drivers/comm/formation.cc", "errors.md, forms, malformed", "errors.md, forms, failed",
             "the code gives this text the reason malformed"),
        ):  # fmt: skip
            with self.subTest(problem=problem):
                self.expect_refusal(name, old, new, problem)

    def test_a_new_text_is_reported_until_it_has_a_comment(self) -> None:
        name = "src/drivers/shm/new.cc"
        self.write(name, 'const char* text = "the memory is gone: start again with more of it";\n')
        self.expect(2, f"{name}:1: a text that is not in errors.md", arguments=("--check",))
        self.write(name, "// errors.md, runs, failed: it was removed\n" + self.read(name))
        self.expect(0)
        row = "| `failed` | the memory is gone: start again with more of it | it was removed |\n"
        self.assertIn(row, self.read(PAGES + "errors.md"))

    def test_sources_that_nobody_could_follow_are_errors(self) -> None:
        for name, old, new, problem in (
            (HEADER, "ATP_REASON_CLOSED = 14,", "ATP_REASON_ENDED = 14,", "needs the reasons of base/result.cc"),
            (HEADER, "/* Writes the defaults.", "int x; /* Writes", "a declaration without a comment"),
            (HEADER, " * Calling order: ", " * Order ", "has no rules"),
            ("python/atp/__init__.py", '    "pull",\n', '    "take",\n', "defines no take"),
            ("python/atp/push_pull.py", '    """Adds this', '    f"""Adds this', "push has no docstring"),
            ("src/drivers/doctor/check_table.cc", '"clock"', "clock", "the table of checks cannot be read"),
            ("src/apps/atp/doctor_command.cc", "// doctor.md, passed:", "// passed:", "above the keys checks, fix,"),
        ):
            with self.subTest(problem=problem):
                self.expect_refusal(name, old, new, problem)


# The base class has no tests of its own; the cases of the other tools run in tools_test.py.
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "WriteReference"])
