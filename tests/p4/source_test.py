# SPDX-License-Identifier: Apache-2.0
"""The P4 sources against format.h, decide.h and check.h: offsets and widths of the header, and all constants.

usage: source_test.py SOURCE_DIR. Needs no tool of P4.
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
MACHINES = ROOT / "src" / "machines"
PIPELINE = ROOT / "src" / "lab" / "pipeline" / "decide_pipeline.h"
P4 = ROOT / "p4"
C_BITS = {"uint8_t": 8, "uint16_t": 16, "uint32_t": 32, "uint64_t": 64}


def text(path):
    return path.read_text()


def number(expression, names):
    """The value of a constant expression in C or P4."""
    expression = re.sub(r"\(unsigned\)|\(uint32_t\)", "", expression)
    expression = re.sub(r"\b(0x[0-9A-Fa-f]+|\d+)u\b", r"\1", expression)
    return eval(expression, {"__builtins__": {}}, names)


def c_constants(*files):
    """Enumerators and macros that are constant expressions."""
    found = {}
    for path in files:
        source = re.sub(r"/\*.*?\*/", "", text(path), flags=re.S)
        pairs = re.findall(r"^#define (ATP_\w+) (.+)$|^\s+(ATP_\w+) = ([^,]+),", source, flags=re.M)
        for macro, value, enumerator, expression in pairs:
            try:
                found[macro or enumerator] = number(value or expression, found)
            except (NameError, SyntaxError, TypeError):
                continue  # a macro of code, or one that uses names of C
    return found


def p4_constants(*files):
    """Values and widths."""
    found = {}
    for path in files:
        for bits, name, value in re.findall(r"^const bit<(\d+)> (\w+) = (.+?);", text(path), flags=re.M):
            found[name] = (number(value, {}), int(bits))
    return found


def cells_of(source):
    """Programs of each register of cells.p4, in order."""
    found = {}
    source = re.sub(r"//.*", "", source)
    for register, program in re.findall(r"ATP_PROGRAM(?:_OF_PAIRS)?\((?:bit<\d+>, )?([\w#]+), ([\w#]+),", source):
        found.setdefault(register, []).append(program)
    return found


def statements(block):
    """The statements of a block of P4. A chain of if and else is one statement."""
    found, depth, start = [], 0, 0
    for at, sign in enumerate(block):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        ends = sign == ";" or (sign == "}" and not re.match(r"\s*else\b", block[at + 1 :]))
        if depth == 0 and ends:
            found.append(block[start : at + 1])
            start = at + 1
    return found


class SourceTest(unittest.TestCase):
    def test_header_has_the_offsets_and_widths_of_the_format(self):
        body = re.search(r"header atp_t \{(.*?)\}", text(P4 / "headers.p4"), flags=re.S)[1]
        fields = [(name, int(bits)) for bits, name in re.findall(r"bit<(\d+)> (\w+);", body)]
        struct = re.search(r"struct atp_header \{(.*?)\};", text(MACHINES / "wire" / "format.h"), flags=re.S)[1]
        expected = [(name, C_BITS[kind]) for kind, name in re.findall(r"^\s+(uint\d+_t) (\w+);", struct, flags=re.M)]
        self.assertEqual(fields, expected)
        asserted = dict(
            re.findall(r"^ATP_ASSERT_AT\((\w+), (\w+)\);", text(MACHINES / "wire" / "format.h"), flags=re.M)
        )
        offsets = c_constants(MACHINES / "wire" / "format.h")
        at = 0
        for name, bits in fields:
            self.assertEqual(at, 8 * offsets[asserted[name]], name)
            at += bits
        self.assertEqual(at, 8 * offsets["ATP_HEADER_BYTES"])

    def test_constants_have_the_values_of_c(self):
        expected = c_constants(MACHINES / "wire" / "format.h", MACHINES / "wire" / "check.h",
                               MACHINES / "protocol" / "decide.h", MACHINES / "protocol" / "pipeline_cells.h",
                               PIPELINE)  # fmt: skip
        expected["ATP_AGGREGATOR_KIND"] = ~expected["ATP_AGGREGATOR_MARKS"] & 0xFF
        found = p4_constants(P4 / "headers.p4", P4 / "actions.p4", P4 / "decision.p4", P4 / "pass_constants.p4")
        compared = 0
        for name, (value, bits) in found.items():
            self.assertLess(value, 1 << bits, name)
            if name.startswith("ATP_"):
                self.assertEqual(value, expected[name], name)
                compared += 1
        self.assertGreater(compared, 85)

    def test_no_enumerator_of_the_decision_is_missing(self):
        found = p4_constants(P4 / "actions.p4", P4 / "decision.p4", P4 / "pass_constants.p4")
        headers = (MACHINES / "protocol" / "decide.h", MACHINES / "protocol" / "pipeline_cells.h", PIPELINE)
        source = "".join(text(header) for header in headers)
        for kind in ("ATP_AGGREGATOR_", "ATP_PACKET_", "ATP_LANES_", "ATP_EVENT_", "ATP_PASS_", "ATP_PAIRS_",
                     "ATP_PIPELINE_"):  # fmt: skip
            for name in re.findall(rf"^\s+({kind}\w+) = ", source, flags=re.M):
                self.assertIn(name, found)

    def test_port_and_ageing_are_those_of_the_other_switches(self):
        agent = text(ROOT / "src" / "drivers" / "xdp" / "agent.h")
        port = re.search(r"port = (\d+);", agent)[1]
        self.assertIn(f"#define ATP_PORT {port}\n", text(P4 / "parser.p4"))
        ageing_ms = int(re.search(r"ageing = std::chrono::milliseconds\((\d+)\)", agent)[1])
        self.assertIn(f"#define ATP_AGEING_US {1000 * ageing_ms}\n", text(P4 / "frame.v1model.p4"))

    def test_aggregator_has_the_fields_of_c(self):
        struct = re.search(r"struct atp_aggregator \{(.*?)\};", text(MACHINES / "protocol" / "decide.h"), flags=re.S)[1]
        struct = re.sub(r"/\*.*?\*/", "", struct, flags=re.S)
        expected = {name: C_BITS[kind] for kind, name in re.findall(r"(uint\d+_t) (\w+);", struct)}
        body = re.search(r"struct aggregator_t \{(.*?)\}", text(P4 / "decision.p4"), flags=re.S)[1]
        found = {name: int(bits) for bits, name in re.findall(r"bit<(\d+)> (\w+);", body)}
        self.assertEqual(found, expected)
        program = text(P4 / "atp.v1model.p4")
        del expected["token"]
        for name, bits in expected.items():
            self.assertIn(f"register<bit<{bits}>>(ATP_AGGREGATORS) aggregator_{name};", program)
            self.assertIn(f"aggregator_{name}.read(aggregator.{name}, at);", program)
            self.assertIn(f"aggregator_{name}.write(at, aggregator.{name});", program)

    def test_registers_of_a_pipeline_have_the_programs_and_the_order_of_c(self):
        source = text(MACHINES / "protocol" / "pipeline_cells.h")
        enumerators = re.search(r"enum atp_cell \{(.*?)\}", source)[1]
        cells = [name.lower() for name in re.findall(r"ATP_CELL_(\w+) =", enumerators)]
        found = cells_of(text(P4 / "cells.p4"))
        self.assertEqual(list(found)[:-1], cells)
        self.assertEqual(list(found)[-1], "pair##AT")
        programs = re.findall(r"\batp_cell_(\w+)\(struct", source)
        self.assertEqual([program for cell in cells for program in found[cell]], programs)
        for cell, names in found.items():
            # A register of Tofino has four programs at most.
            self.assertLessEqual(len(names), 4, cell)

    def test_a_pass_accesses_each_register_once_and_in_order(self):
        programs = {
            name.replace("##AT", ""): cell for cell, names in cells_of(text(P4 / "cells.p4")).items() for name in names
        }
        source = text(P4 / "passes.p4")
        for name, program in re.findall(r"#define (\w+)\(AT\) (\w+)##AT\(\);", source):
            programs[name] = programs[program]
        source = re.sub(r"//.*|^#.*", "", source, flags=re.M)
        apply = source[source.index("    apply {") :]
        accessed = []
        for statement in statements(apply[apply.index("{") + 1 : apply.rindex("}")].rsplit("}", 1)[0]):
            # A statement is a chain of branches: a packet takes one of them.
            branches = re.split(r"[{}]", statement)
            calls = [re.findall(r"\b(?:ATP_EACH_PAIR\()?(\w+)(?:\(\);|\))", branch) for branch in branches]
            calls = [[programs[name] for name in names if name in programs] for names in calls]
            self.assertLessEqual(max(map(len, calls)), 1, statement)
            found = {name for names in calls for name in names}
            self.assertLessEqual(len(found), 1, statement)
            accessed += found
        cells = list(cells_of(text(P4 / "cells.p4")))
        self.assertEqual(accessed, cells)

    def test_both_architectures_use_the_same_registers_in_one_order(self):
        tofino = text(P4 / "cells.tna.p4")
        self.assertIn('#include "cells.p4"', tofino)
        self.assertIn('#include "cells.p4"', text(P4 / "passes.p4"))
        tables = dict(re.findall(r"^    ATP_TABLE\((\w+), \d+,.*?;,(.*?)\)$", tofino, flags=re.S | re.M))
        found = []
        applied = re.findall(r"(\w+)\.apply\(\);", tofino[tofino.rindex("    apply {\n        if (headers.atp") :])
        for table in applied:
            for cell, names in cells_of(text(P4 / "cells.p4")).items():
                if any(f" {name};" in tables.get(table, "") for name in names):
                    found.append(cell)
        self.assertEqual(found, list(cells_of(text(P4 / "cells.p4")))[:-1])

    def test_each_number_of_lanes_is_repeated_that_often(self):
        source = text(P4 / "lanes.p4")
        for lanes, work in re.findall(r"ATP_LANES == (\d+)\n#define ATP_EACH_LANE\(WORK\) (.+)", source):
            parts = [(int(count), int(at)) for count, at in re.findall(r"ATP_(\d+)\(WORK, (\d+)\)", work)]
            places = [place for count, at in parts for place in range(at, at + count)]
            self.assertEqual(places, list(range(int(lanes))))


if __name__ == "__main__":
    unittest.main()
