# SPDX-License-Identifier: Apache-2.0
"""Tests that p4testgen derives from the program, replayed on BMv2: for each one, p4testgen chooses a path through the
program, and computes a frame, table entries, and the frame that leaves.
"""

import re
import subprocess
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path

import bmv2
import frames
from rows_case import RowsCase, mark_to

OPTIONS = ("ATP_LANES=8", "ATP_FIXED_CLOCK")
TESTS = 12  # of each policy; a deep path takes seconds to solve
# The first policy enumerates paths in the order of the program. The second one prefers statements that no test executed.
POLICIES = ("DEPTH_FIRST", "GREEDY_STATEMENT_SEARCH")
SEED = "1"
PATIENCE_S = 900
SHORTEST_FRAME_BITS = 14 * 8  # the kernel sends no shorter one
LONGEST_FRAME_BITS = 1514 * 8


@dataclass
class Case:
    """One test of the format STF. A digit `*` of an expected frame may have any value."""

    entries: list = field(default_factory=list)  # (table, keys, action, arguments)
    sent: tuple = ()  # port and frame
    expected: list = field(default_factory=list)  # of (port, frame as hexadecimal digits)
    mirrors: bool = False  # the copy of a control message goes to a port that the switch of this test does not have


def bytes_of(number):
    digits = number.removeprefix("0x")
    return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))


def entry_of(line):
    table, keys, action, arguments = re.fullmatch(
        r'add "AtpIngress\.([\w.]+)" (.*) "AtpIngress\.([\w.]+)"\((.*)\)', line
    ).groups()
    numbers = [
        [bytes_of(number) for number in re.findall(r'"[^"]*":(0x[0-9A-Fa-f]+)', text)] for text in (keys, arguments)
    ]
    return table, numbers[0], action, numbers[1]


def case_of(text):
    case = Case()
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "add":
            case.entries.append(entry_of(line.strip()))
        elif word == "packet":
            port, digits = rest.split()
            case.sent = (int(port), bytes.fromhex(digits))
        elif word == "expect":
            port, _, digits = rest.partition(" ")
            case.expected.append((int(port), digits.strip()))
        elif word == "mirroring_add":
            case.mirrors = True
        elif word and not word.startswith("#"):
            raise ValueError(f"'{line}' is no line of a test that this program replays")
    return case


def matches(digits, frame):
    pattern = digits.removesuffix("$").replace("*", ".") + ("" if digits.endswith("$") else ".*")
    return re.fullmatch(pattern, frame.hex(), flags=re.IGNORECASE) is not None


class TestgenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program = bmv2.compiled(folder.name, *OPTIONS)

    def generated(self, policy):
        """The tests, by name."""
        with tempfile.TemporaryDirectory() as folder:
            sizes = f"{SHORTEST_FRAME_BITS}:{LONGEST_FRAME_BITS}"
            words = [bmv2.tool("p4testgen"), "--target", "bmv2", "--arch", "v1model", "--test-backend", "STF", "--test-name", "atp",
                     "--max-tests", str(TESTS), "--seed", SEED, "--path-selection", policy, "--port-ranges", "0:1",
                     "--packet-size-range", sizes, "--output-packet-only", "--out-dir", folder,
                     *(f"-D{option}" for option in OPTIONS), str(bmv2.PROGRAM)]  # fmt: skip
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            return {path.name: case_of(path.read_text()) for path in sorted(Path(folder).glob("*.stf"))}

    def replay(self, switch, case):
        switch.thrift.call(bmv2.STANDARD, "bm_reset_state")
        for station, port in ((frames.WORKER, 0), (frames.SERVER, 1)):
            switch.add_entry("forwarding.stations", [station], "forwarding.forward", bytes([0, port]))
        for table, keys, action, arguments in case.entries:
            switch.add_entry(table, keys, action, *arguments)
        port, frame = case.sent
        switch.ports[port].send(frame)
        for station in (frames.WORKER, frames.SERVER):
            switch.ports[port].send(mark_to(station))
        left = [(port, frame) for port in range(2) for frame in RowsCase.frames_until_mark(switch, port)]
        shown = [(port, frame.hex()) for port, frame in left]
        self.assertEqual(len(left), len(case.expected), shown)
        for (port, frame), (expected_port, digits) in zip(left, sorted(case.expected)):
            self.assertEqual(port, expected_port, shown)
            self.assertTrue(matches(digits, frame), f"{frame.hex()}\n{digits}")

    def test_generated_tests_pass(self):
        switch = bmv2.Switch(self.program)
        self.addCleanup(switch.close)
        for policy in POLICIES:
            cases = {name: case for name, case in self.generated(policy).items() if not case.mirrors}
            self.assertGreater(len(cases), TESTS / 2, policy)
            for name, case in cases.items():
                with self.subTest(policy=policy, test=name):
                    self.replay(switch, case)
            admitted = sum(any(table == "jobs" for table, *_ in case.entries) for case in cases.values())
            print(f"{policy}: {len(cases)} tests, {admitted} of packets of a job")


if __name__ == "__main__":
    for each in ("p4c-bm2-ss", "simple_switch", "p4testgen"):
        bmv2.tool(each)
    bmv2.in_own_network()
    unittest.main()
