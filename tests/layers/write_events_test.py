#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows tools/write_events definitions with another event, definitions that it must refuse, and files that are not its
own.

usage: write_events_test.py C_COMPILER CPP_COMPILER
"""

from __future__ import annotations

import subprocess
import sys
import unittest

CPP_COMPILER = sys.argv.pop(2) if len(sys.argv) > 2 else "c++"

from tools_test import ToolTest, Written  # noqa: E402

sys.dont_write_bytecode = True
DEFINITION = "src/events.toml"
REPORT = "src/drivers/client/switch_report.cc"
EVENTS = "src/drivers/observe/events.h"


class WriteEvents(Written, ToolTest):
    tool = "write_events"
    reads = (DEFINITION,)
    edits = {
        EVENTS: ("    rank_slow,", "    rank_late,"),
        "src/drivers/observe/events.cc": ('"rank slow"', '"rank late"'),
        "src/drivers/capi/log_lines.cc": ("{5, 10,", "{5, 9,"),
        "python/atp/_log.py": ('"warn": 30', '"warn": 40'),
        "src/machines/protocol/worker.h": ("&WorkerCounters::echoes>", "&WorkerCounters::acks>"),
        "src/machines/protocol/server.h": ('("reacks")', '("repeats")'),
        "src/machines/protocol/switch.h": ('("late")', '("slow")'),
        "src/machines/control/join_tree.h": ("std::uint64_t deferred = 0", "std::uint32_t deferred = 0"),
        "src/drivers/net/udp_report.h": ('("overrun")', '("full")'),
        "src/drivers/client/switch_report.h": ('("damaged")', '("wrong")'),
        "src/apps/atp/bench_rank.h": ("// PROBEs sent", "// questions"),
        "src/drivers/comm/rank_counters.h": ("// bytes copied", "// bytes moved"),
        "src/drivers/comm/rank_help.h": ("Datagrams sent", "Packets sent"),
        "include/atp/atp.h": ("uint64_t copied_bytes; ", "uint32_t copied_bytes; "),
        "src/drivers/capi/counters.cc": ("known.resent = counted.resent", "known.resent = counted.fragments"),
        "python/atp/_counters.py": ("    copied_bytes: int", "    copied_bytes: str"),
        "src/drivers/metrics/counter_help.h": ("resent or late", "resent or slow"),
        "src/drivers/metrics/counter_sums.h": ('"late", "misfits"', '"misfits"'),
        "src/drivers/metrics/page.html": ("'late', 'misfits'", "'misfits'"),
        "docs/reference/events.md": ("| `rank slow` | warn |", "| `rank slow` | info |"),
        "docs/reference/counters.md": ("| `kernel.damaged` |", "| `damaged` |"),
    }

    def setUp(self) -> None:
        super().setUp()
        self.copy(REPORT)

    def compiles(self, code: str) -> bool:
        self.write("main.cc", f'#include "observe/events.h"\n{code}\n')
        command = [CPP_COMPILER, "-std=c++20", "-fsyntax-only", f"-I{self.root}/src/drivers", self.root / "main.cc"]
        return subprocess.run(command, capture_output=True).returncode == 0

    def test_a_changed_definition_changes_code_and_pages(self) -> None:
        self.replace(DEFINITION, 'name = "rank slow"', 'name = "rank late"')
        self.replace(DEFINITION, 'name = "damaged", unit', 'name = "damaged", member = "broken", unit')
        self.expect(0)
        for name, text in ((EVENTS, "    rank_late,"), ("docs/reference/events.md", "| `rank late` | warn |"),
                           ("src/drivers/observe/events.cc", '{"rank late", Severity::warn, {"", "job rank reason"}}'),
                           ("src/drivers/client/switch_report.h", 'counter<&KernelReport::broken>("damaged"),')):  # fmt: skip
            self.assertIn(text, self.read(name))
        self.expect(0, arguments=("--check",))

    def test_an_event_without_a_definition_does_not_compile(self) -> None:
        code = "constexpr auto event = atp::observe::LogEvent::rank_slow;"
        self.assertTrue(self.compiles(code))
        self.replace(DEFINITION, 'name = "rank slow"', 'name = "rank late"')
        self.expect(0)
        self.assertFalse(self.compiles(code))

    def test_a_definition_that_nobody_could_follow_is_an_error_with_its_line(self) -> None:
        lines = self.read(DEFINITION).splitlines()
        for entry, old, new, problem in (
            ('name = "rank slow"', '"warn"', '"loud"', "rank slow has the unknown severity loud: use trace, debug"),
            ('name = "rank slow"', "severity", "gravity", "rank slow has the unknown key gravity"),
            ('name = "rank slow"', '"job rank reason"', '"job rank why"', "rank slow has the unknown key why"),
            ('name = "rank slow"', 'rank = "job rank reason"', 'rank = ""', "rank slow: nobody writes it"),
            ('name = "rank slow"', "rank slow", "slow", "slow is no noun and verb"),
            ('name = "rank slow"', "when =", "then =", "rank slow has the unknown key then"),
            ('name = "world"', "world", "globe", "job ready has the unknown key world"),
            ('name = "damaged"', 'unit = "packets", ', "", "damaged lacks"),
            ('name = "sent_messages"', '"struct"', '"code"', "sent_messages is only for code: use struct or page"),
            ('page = "servers"', "servers", "hosts", "server has the unknown page hosts"),
        ):
            with self.subTest(problem=problem):
                at = next(number for number, line in enumerate(lines) if entry in line)
                edited = [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]
                self.write(DEFINITION, "\n".join(edited))
                self.expect(2, f"{DEFINITION}:", problem, arguments=("--check",))
                if entry == 'name = "rank slow"':
                    self.expect(2, f"{DEFINITION}:{at + 1}: ", arguments=("--check",))

    def test_a_key_that_nobody_writes_and_a_name_twice_are_errors(self) -> None:
        self.replace(DEFINITION, "key = [\n", 'key = [\n    { name = "colour", meaning = "x" },\n')
        self.expect(2, "colour is a key of no event: remove it")
        self.copy(DEFINITION)
        self.replace(DEFINITION, '    { name = "hellos",', '    { name = "greetings",')
        self.expect(2, "greetings is a key of a report no longer")
        self.copy(DEFINITION)
        self.replace(REPORT, '"hellos", report.hellos);', '"hellos", report.hellos), archive.value("x", 1);')
        self.expect(2, "x is a key of a report without a meaning")
        self.copy(REPORT)
        self.replace(DEFINITION, 'name = "acks", unit = "ACKs"', 'name = "nacks", unit = "ACKs"')
        self.expect(2, "two values with the name nacks")


# The base class has no tests of its own; the cases of the other tools run in tools_test.py.
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "WriteEvents"])
