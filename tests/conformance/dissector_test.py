#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the golden vectors with tshark and tools/atp.lua, and compares each field.

usage: dissector_test.py
Exit status 77: tshark is not installed, or it runs no Lua.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from vector_rows import bytes_of, lanes_of, message_of, rows_of, wire_format

TSHARK = shutil.which("tshark")
SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "atp.lua"
SKIPPED = 77
PORT = 4790
LINK_IPV4 = 228
LONGEST_PAYLOAD = 65_507
LENGTH_OF_TEXT = 2
LANES_SHOWN = 64
# Names of fields that packets and messages have in common.
SHARED = {"job", "token", "channel", "window_log2", "mask0", "mask1"}

Fields = dict[str, list[str]]


def frame(payload: bytes, ports: tuple[int, int]) -> bytes:
    udp = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    return struct.pack(">BBHHHBBH4s4s", 0x45, 2, 20 + len(udp), 1, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2") + udp


def capture(payloads: list[bytes], ports: tuple[int, int]) -> bytes:
    """Returns a pcap file with one datagram for each payload."""
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, LINK_IPV4)
    for payload in payloads:
        each = frame(payload, ports)
        data += struct.pack("<IIII", 0, 0, len(each), len(each)) + each
    return data


def dissected(payloads: list[bytes], script: Path = SCRIPT, ports: tuple[int, int] = (PORT, PORT)) -> list[Fields]:
    """Returns the texts that tshark shows for each name (without `atpnet.`), in the order of the bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "packets.pcap")
        path.write_bytes(capture(payloads, ports))
        command = [TSHARK or "tshark", "-X", f"lua_script:{script}", "-r", str(path), "-T", "pdml"]
        ran = subprocess.run(command, capture_output=True, timeout=120)
    if ran.returncode != 0 or b"Lua" in ran.stderr:
        raise AssertionError(ran.stderr.decode())
    packets = []
    for packet in ElementTree.fromstring(ran.stdout).iter("packet"):
        fields: Fields = {}
        for field in packet.iter("field"):
            name = field.get("name", "")
            if name.startswith("atpnet."):
                fields.setdefault(name.removeprefix("atpnet."), []).append(field.get("show", ""))
        packets.append(fields)
    if len(packets) != len(payloads):
        raise AssertionError(f"{len(packets)} packets of {len(payloads)}")
    return packets


def shown(value: Any, text: str) -> Any:
    """Converts `text`, which tshark shows, to the type of `value`."""
    if isinstance(value, bool):
        return text.lower() in ("1", "true")
    if isinstance(value, int):
        return int(text, 0)
    if isinstance(value, float):
        return float(text)
    return bytes.fromhex(text.replace(":", "")) if isinstance(value, bytes) else text


def differences(expected: dict[str, list[Any]], fields: Fields) -> list[str]:
    found = []
    for name, values in expected.items():
        texts = fields.get(name, [])
        actual = [shown(value, text) for value, text in zip(values, texts)]
        if len(texts) != len(values) or actual != values:
            found.append(f"{name}: {texts}, not {values}")
    return found


def of_packet(row: dict[str, Any]) -> dict[str, list[Any]]:
    expected: dict[str, list[Any]] = {name: [value] for name, value in row["header"].items()}
    for flag in wire_format.Flag:
        expected[f"flags.{flag.name.lower()}"] = [bool(row["header"]["flags"] & flag)]
    lanes = lanes_of(row)
    expected["lane_count"] = [row["lane_count"]]
    if lanes:
        expected["payload"] = [lanes]
    expected |= {"lanes.form": [row["header"]["lanes"] >> 4], "lanes.type": [row["header"]["lanes"] & 0xF]}
    expected |= {"part.packet": [row["header"]["part"] >> 6], "part.rank": [row["header"]["part"] & 0x3F]}
    kind = wire_format.Dtype(row["header"]["lanes"] & 0xF)
    codes = {wire_format.Dtype.INT32: ("i", 4), wire_format.Dtype.INT16: ("h", 2), wire_format.Dtype.INT8: ("b", 1)}
    if lanes and kind in codes:
        code, size = codes[kind]
        part = lanes[: LANES_SHOWN * wire_format.LANE_BYTES]
        expected[f"lane.{kind.name.lower()}"] = list(struct.unpack(f">{len(part) // size}{code}", part))
    return expected


def add_fields(expected: dict[str, list[Any]], prefix: str, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        path = name if name in SHARED else f"{prefix}.{name}"
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, dict):
                add_fields(expected, path, item)
            else:
                expected.setdefault(path, []).append(item)


def of_message(row: dict[str, Any]) -> dict[str, list[Any]]:
    kind, fields = message_of(row["fields"])
    expected: dict[str, list[Any]] = {"message": [int(kind)]}
    add_fields(expected, kind.name.lower(), fields)
    return expected


def datagrams() -> list[dict[str, Any]]:
    """Rows of control.json, without the messages of a store."""
    return [row for row in rows_of("control.json") if bytes_of(row)[1] >= wire_format.TYPE_CONTROL]


class Dissector(unittest.TestCase):
    def setUp(self) -> None:
        self.packets = [row for row in rows_of("wire.json") if "header" in row]
        self.messages = [row for row in datagrams() if row["accepted"]]

    def changed(self, *swaps: tuple[str, str]) -> Path:
        """Returns a copy of the dissector in which two of its texts are exchanged."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        text = SCRIPT.read_text()
        for one, other in swaps:
            self.assertIn(one, text)
            self.assertIn(other, text)
            text = text.replace(one, "\0").replace(other, one).replace("\0", other)
        path = Path(folder.name, "changed.lua")
        path.write_text(text)
        return path

    def test_dissector_shows_the_fields_of_each_valid_packet(self) -> None:
        self.assertGreaterEqual(len(self.packets), 25)
        for row, fields in zip(self.packets, dissected([bytes_of(row) for row in self.packets])):
            with self.subTest(row["description"]):
                self.assertEqual(differences(of_packet(row), fields), [])
                self.assertNotIn("cut", fields)
                self.assertNotIn("limit", fields)

    def test_dissector_shows_the_fields_of_each_valid_message(self) -> None:
        self.assertGreaterEqual(len(self.messages), 20)
        for row, fields in zip(self.messages, dissected([bytes_of(row) for row in self.messages])):
            with self.subTest(row["description"]):
                expected = of_message(row)
                self.assertEqual(differences(expected, fields), [])
                counts = {name for name in fields if name.endswith("_count")}
                self.assertEqual(fields.keys() - expected.keys() - counts - {"padding"}, set())
                self.assertNotIn("cut", fields)
                self.assertNotIn("limit", fields)

    def test_values_outside_their_range_are_marked(self) -> None:
        rows = [row for row in rows_of("wire.json") if row.get("error") in ("type", "flags", "hop", "window", "token")]
        self.assertGreaterEqual(len(rows), 8)
        for row, fields in zip(rows, dissected([bytes_of(row) for row in rows])):
            with self.subTest(row["description"]):
                self.assertIn("limit", fields)

    def test_datagrams_that_end_early_are_marked(self) -> None:
        rows = [row for row in datagrams() if "without its last byte" in row["description"]]
        rows += [row for row in rows_of("wire.json") if row["description"] == "one byte less than a header"]
        self.assertGreaterEqual(len(rows), 7)
        for row, fields in zip(rows, dissected([bytes_of(row) for row in rows])):
            with self.subTest(row["description"]):
                self.assertIn("cut", fields)

    def test_messages_of_earlier_programs_end_before_a_later_field(self) -> None:
        joins = [bytes_of(row) for row in self.messages if of_message(row).get("join.job_name") == [""]]
        bare = [join for join, fields in zip(joins, dissected(joins)) if not {"padding", "code.code"} & fields.keys()]
        self.assertGreaterEqual(len(bare), 1)
        for fields in dissected([join[:-LENGTH_OF_TEXT] for join in bare]):
            self.assertIn("join.statement_count", fields)
            self.assertFalse({"cut", "join.job_name"} & fields.keys())

    def test_each_vector_is_read_without_an_error_and_foreign_ones_are_ignored(self) -> None:
        rows = [row for row in rows_of("wire.json") + datagrams() if len(bytes_of(row)) <= LONGEST_PAYLOAD]
        foreign = [row for row in rows if row.get("error") == "version"]
        self.assertGreaterEqual(len(foreign), 2)
        for row, fields in zip(rows, dissected([bytes_of(row) for row in rows])):
            with self.subTest(row["description"]):
                self.assertFalse(row in foreign and fields)

    def test_packets_between_ports_of_ranks_are_recognised(self) -> None:
        rows = [row for row in self.packets if row["lane_count"] < 100]
        for row, fields in zip(rows, dissected([bytes_of(row) for row in rows], ports=(40_123, 50_321))):
            with self.subTest(row["description"]):
                self.assertEqual(differences(of_packet(row), fields), [])
        strangers = [b"\xa4\x09" + bytes(54), b"\xa4\x01" + bytes(20), b"\xa4\x20\0\0", b"GET /"]
        self.assertEqual(dissected(strangers, ports=(40_123, 50_321)), [{}] * len(strangers))

    def test_comparison_finds_exchanged_fields(self) -> None:
        row = self.packets[0]
        (fields,) = dissected([bytes_of(row)], self.changed(('{ name = "seq",', '{ name = "index",')))
        found = differences(of_packet(row), fields)
        self.assertEqual([text.split(":")[0] for text in found], ["seq", "index"])
        row = next(row for row in self.messages if row["fields"]["type"] == "JOINED")
        swap = ('{ name = "missing_units",', '{ name = "missing_members",')
        (fields,) = dissected([bytes_of(row)], self.changed(swap))
        self.assertEqual(len(differences(of_message(row), fields)), 2)


def reason_to_skip() -> str:
    if TSHARK is None:
        return "tshark is not installed: tools/setup.sh installs it where the distribution has it"
    version = subprocess.run([TSHARK, "--version"], capture_output=True, text=True, timeout=60).stdout
    return "" if "with Lua" in version else f"{TSHARK} is built without Lua"


if __name__ == "__main__":
    if reason := reason_to_skip():
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
