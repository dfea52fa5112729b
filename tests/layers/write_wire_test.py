#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows tools/write_wire a definition with further fields, definitions that it must refuse, and files that are not its own.

usage: write_wire_test.py C_COMPILER CPP_COMPILER
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import unittest
from types import ModuleType

CPP_COMPILER = sys.argv.pop(2) if len(sys.argv) > 2 else "c++"

from tools_test import COMPILER, ToolTest, Written  # noqa: E402

DEFINITION = "src/machines/wire/wire.toml"
SOURCES = ("format.h", "check.h", "bytes.h", "packet.h", "packet.cc", "control.h", "control.cc", "join_messages.h",
           "query_messages.h", "formation_messages.h", "messages.cc", "message_code.h", "message_rules.h",
           "message_rules.cc")  # fmt: skip
READERS = ("src/machines/wire/format.h", "src/machines/wire/packet.h", "tools/atp.lua", "p4/headers.p4",
           "docs/spec/packet.md")  # fmt: skip
# The reader in Python reads the definition itself.
PYTHON = ("tests/support/wire_format.py", "tools/wire/definition.py", "tools/written.py", "tools/source_tree.py")

# What the definition may say and version 1 does not use: parts of bytes, zeros, 64 bits in the header; in messages a
# list whose length is not in front of it, lists in lists, and bytes of variable length.
HEADER_FIELDS = """\
    { name = "traits", type = "u8", writers = ["worker"], meaning = "what the words are", parts = [ \
{ name = "form", bits = [7, 4], meaning = "agreed form" }, \
{ name = "kind", bits = [3, 0], meaning = "type of the words" } ] },
    { name = "reserved", type = "zero[7]", writers = ["worker"], meaning = "padding" },
    { name = "stamp", type = "u64", hex = true, writers = ["worker"], meaning = "a number of 64 bits" },
"""
MESSAGE = """
[struct.run]
cpp = "Run"
file = "query"
title = "A *run*"
meaning = "A run of ranks."
field = [
    { name = "member", type = "u8", most = 31, meaning = "first member" },
    { name = "rank_count", type = "u8", counts = "ranks", meaning = "number of ranks" },
    { name = "ranks", type = "list", each = "u16", count = "rank_count", most = 8, meaning = "its ranks" },
]

[message.ticket]
number = 25
cpp = "Ticket"
file = "query"
sender = "switch"
padded = true
meaning = "what a switch admitted"
field = [
    { name = "nonce", type = "u64", meaning = "of the question" },
    { name = "run_count", type = "u8", counts = "runs", meaning = "number of runs" },
    { name = "ticket_bytes", type = "u8", counts = "ticket", meaning = "length of the ticket" },
    { name = "reserved", type = "zero[2]", meaning = "0" },
    { name = "runs", type = "list", each = "run", count = "run_count", most = 4, meaning = "runs of ranks" },
    { name = "ticket", type = "bytes", count = "ticket_bytes", most = 48, meaning = "under the key of the switch" },
]
"""
# Writes a packet and a TICKET as hexadecimal lines, and fails unless both decode to what was written.
PROGRAM = r"""
#include <cstdio>
#include <vector>
#include "wire/control.h"
#include "wire/packet.h"
using namespace atp::wire;
static void print(std::span<const std::byte> bytes) {
    for (const std::byte each : bytes) std::printf("%02x", std::to_integer<unsigned>(each));
    std::printf("\n");
}
int main() {
    atp_header header{};
    header.type = ATP_TYPE_PROBE;
    header.token = 5;
    header.traits = 3U << ATP_TRAITS_FORM_SHIFT | 2U;
    header.stamp = 0x1122334455667788;
    std::vector<std::byte> bytes(ATP_HEADER_BYTES, std::byte{0xFF});
    encode_header(header, bytes);
    print(bytes);
    Packet packet;
    if (decode(bytes, packet) != DecodeError::none || packet.header.stamp != header.stamp) return 1;
    if (atp_traits_form(&packet.header) != 3 || atp_traits_kind(&packet.header) != 2) return 2;

    const Ticket ticket{.nonce = 0xAABBCCDDEEFF0011,
                        .runs = {{.member = 1, .ranks = {0x0203, 0x0405}}, {.member = 31, .ranks = {}}},
                        .ticket = {std::byte{7}, std::byte{8}, std::byte{9}}};
    std::vector<std::byte> room(64);
    room.resize(encode(ticket, room, 40));
    print(room);
    const auto read = decode<Ticket>(room);
    if (!read || read->runs != ticket.runs || read->ticket != ticket.ticket) return 3;
    room[15] = std::byte{1};  // a reserved byte is ignored
    if (!decode<Ticket>(room)) return 4;
    room[16] = std::byte{32};  // the first member of a run
    if (decode<Ticket>(room)) return 5;
    room[16] = std::byte{1};
    room[12] = std::byte{5};  // more runs than the bound
    if (decode<Ticket>(room)) return 6;
    room[12] = std::byte{2};
    room.resize(26);  // cuts the ticket
    return decode<Ticket>(room) ? 7 : 0;
}
"""


class WriteWire(Written, ToolTest):
    tool = "write_wire"

    reads = (DEFINITION,)
    edits = {
        "src/machines/wire/format.h": ("ATP_OFFSET_SEQ = 24", "ATP_OFFSET_SEQ = 20"),
        "src/machines/wire/check.h": ("header->hop > ATP_LEVELS", "header->hop > 7"),
        "src/machines/wire/packet.h": ("load_u32(at + ATP_OFFSET_SEQ)", "load_u32(at + ATP_OFFSET_INDEX)"),
        "src/machines/wire/packet.cc": ('return "GRADIENT"', 'return "SUM"'),
        "src/machines/wire/control.h": ("hello = 20", "hello = 25"),
        "src/machines/wire/control.cc": ('return "HELLO"', 'return "HI"'),
        "src/machines/wire/join_messages.h": ("bool begun = false", "bool started = false"),
        "src/machines/wire/query_messages.h": ("std::uint32_t aggregators", "std::uint16_t aggregators"),
        "src/machines/wire/messages.cc": ("codec.field(value.layout, 0, 3)", "codec.field(value.layout, 0, 4)"),
        "tools/atp.lua": ("local HEADER_BYTES = 56", "local HEADER_BYTES = 44"),
        "docs/spec/packet.md": ("| 24 | 4 | seq |", "| 20 | 4 | seq |"),
        "docs/spec/joining.md": ("within `mask0`; not 0 |", "within `mask0` |"),
        "docs/spec/formation.md": ("number of that rank; 0 to 1,023 |", "number of that rank; 0 to 4,095 |"),
    }

    def setUp(self) -> None:
        super().setUp()
        self.copy(*(f"src/machines/wire/{name}" for name in SOURCES), *READERS[2:])
        self.copy("src/machines/base/text.h", "src/machines/base/text.cc")

    def add_fields(self) -> None:
        text = self.read(DEFINITION)
        text = text.replace("value = 16362", "value = 16358")  # the header grows by four lanes
        at = text.index("]\n# A receiver applies these checks")
        self.write(DEFINITION, text[:at] + HEADER_FIELDS + text[at:] + MESSAGE)
        self.expect(0)

    def reader(self) -> ModuleType:
        self.copy(*PYTHON)
        spec = importlib.util.spec_from_file_location("reader", self.root / PYTHON[0])
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_a_field_of_the_definition_appears_in_each_reader(self) -> None:
        self.add_fields()
        for name in READERS:
            with self.subTest(name=name):
                self.assertIn("stamp", self.read(name))
        self.expect(0, arguments=("--check",))

    def test_further_fields_pass_between_cpp_and_python(self) -> None:
        self.add_fields()
        self.write("main.cc", PROGRAM)
        include = self.root / "src" / "machines"
        sources = [
            include / f"{name}.cc" for name in ("base/text", "wire/control", "wire/messages", "wire/message_rules")
        ]
        options = ["-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY"]
        subprocess.run([CPP_COMPILER, "-std=c++20", *options, f"-I{include}", "-o", self.root / "program",
                        self.root / "main.cc", *sources], check=True)  # fmt: skip
        ran = subprocess.run([self.root / "program"], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        packet, message = (bytes.fromhex(line) for line in ran.stdout.split())
        reader = self.reader()
        header = reader.read_header(packet)
        self.assertEqual((header["token"], header["stamp"]), (5, 0x1122334455667788))
        self.assertEqual((header["traits"], header["traits_form"], header["traits_kind"]), (0x32, 3, 2))
        self.assertEqual(
            reader.write_header(type=4, token=5, traits_form=3, traits_kind=2, stamp=header["stamp"]), packet
        )
        kind, fields = reader.read_message(message)
        self.assertEqual(kind, reader.Message.TICKET)
        runs = [{"member": 1, "ranks": [0x0203, 0x0405]}, {"member": 31, "ranks": []}]
        self.assertEqual(fields, {"nonce": 0xAABBCCDDEEFF0011, "runs": runs, "ticket": b"\7\10\11"})
        self.assertEqual(reader.write_message(kind, 40, **fields), message)

    def test_written_layout_compiles_as_freestanding_c(self) -> None:
        self.add_fields()
        types = "".join(f"typedef __UINT{bits}_TYPE__ uint{bits}_t;\n" for bits in (8, 16, 32, 64))
        code = f'{types}#define ATP_FREESTANDING_TYPES\n#include "wire/check.h"\n'
        code += "int f(struct atp_header* header) { return atp_check_header(header, 0) + atp_traits_form(header); }\n"
        options = ("-c", "-std=gnu11", "-ffreestanding", "-nostdinc", "-Wall", "-Wextra", "-Werror")
        self.compile("freestanding.o", code, *options, f"-I{self.root}/src/machines")
        self.replace("src/machines/wire/format.h", "ATP_OFFSET_STAMP = 64", "ATP_OFFSET_STAMP = 56")
        command = [COMPILER, *options, f"-I{self.root}/src/machines", "-o", os.devnull, self.root / "source.c"]
        moved = subprocess.run(command, capture_output=True, text=True)
        self.assertNotEqual(moved.returncode, 0)
        self.assertIn("stamp has left its place on the wire", moved.stderr)

    def test_a_definition_that_no_reader_could_follow_is_an_error(self) -> None:
        seq = 'name = "seq", type = "u32"'
        for old, new, problem in (
            ('name = "index", type = "u32"', 'name = "index", type = "u64"', "packet.index is at 28, no multiple of its 8"),
            ('name = "mask1", type = "u32", hex = true, writers', 'name = "mask1", type = "u16", writers',
             "packet has 54 bytes, no multiple of 8"),
            (seq, 'name = "seq", kind = "u32"', "packet.seq has the unknown key kind"),
            (seq, 'name = "seq", type = "u31"', "seq has the unknown type u31"),
            (seq, 'name = "job", type = "u32"', "packet has two values with the name job"),
            (seq + ', writers = ["worker", "server"]', seq, "packet.seq has no writers"),
            (seq, seq + ', most = "fragments"', "fragments is no constant"),
            (seq, seq + ', parts = [{ name = "low", bits = [7, 0], meaning = "" }]', "do not cover each bit of u32"),
            ("value = 16362", "value = 16363", "a packet of max_lanes has 65508 bytes, more than 65507: lower max_lanes"),
            ('name = "ack", number = 2', 'name = "ack", number = 1', "two values with the number 1"),
            ('count = "unit_count", least = 1, most = "bitmap_bits"', 'count = "unit_count"', "has no bound: add most"),
            ('count = "unit_count"', 'count = "level"', "level is no integer in front of it that counts it"),
            ("[message.hello]\nnumber = 20", "[message.hello]\nnumber = 19", "two values with the number 19"),
            ("[message.hello]\nnumber = 20", "[message.hello]\nnumber = 3", "hello has the number 3"),
            ("[prefix]\n", "[prefix\n", "wire.toml: "),
        ):  # fmt: skip
            with self.subTest(problem=problem):
                before = self.read(DEFINITION)
                self.replace(DEFINITION, old, new)
                self.expect(2, problem, arguments=("--check",))
                self.write(DEFINITION, before)


# The base class has no tests of its own; the cases of the other tools run in tools_test.py.
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "WriteWire"])
