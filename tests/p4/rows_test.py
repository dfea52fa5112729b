# SPDX-License-Identifier: Apache-2.0
"""All rows of tests/conformance/decide.json as packets through BMv2: the frame that leaves and the registers after it."""

import json
import random
import struct
import tempfile
import unittest
from pathlib import Path

import bmv2
import frames
from rows_case import RowsCase, is_refused

ROWS = Path(__file__).resolve().parents[1] / "conformance" / "decide.json"
LANES = 8
INDEX = 5
AGEING_US = 500_000
FIELDS = ("token", "job", "seq", "channel", "status", "flags", "bitmap", "lanes", "purpose", "unit", "touched_us")
IDENTITY = ("token", "job", "seq", "channel", "status")


def level_of(row):
    packet = row["before"]["packet"]
    if packet["type"] == frames.wire_format.Type.FLUSH and not row["flush_here"]:
        return 1 - packet["hop"]
    return min(packet["hop"], 1)


def registers_of(aggregator, fields):
    found = {f"aggregator_{field}": aggregator[field] for field in fields}
    token = found.pop("aggregator_token")
    return {**found, "aggregator_token_upper": token >> 32, "aggregator_token_lower": token % 2**32}


class RowsTest(RowsCase):
    lanes = LANES

    def start(self, level):
        switch = bmv2.Switch(self.program)
        self.addCleanup(switch.close)
        packet = self.rows[0]["before"]["packet"]
        token = struct.pack(">Q", packet["token"])
        switch.add_entry("jobs", [struct.pack(">I", packet["job"]), token], "admit", bytes([level]), token, b"\0\1")
        switch.add_entry("forwarding.stations", [frames.SERVER], "forwarding.forward", b"\0\1")
        switch.add_entry("forwarding.stations", [frames.WORKER], "forwarding.forward", b"\0\0")
        return switch

    @classmethod
    def setUpClass(cls):
        cls.rows = json.loads(ROWS.read_text())
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program = bmv2.compiled(
            folder.name, f"ATP_LANES={cls.lanes}", "ATP_AGGREGATORS=8", "ATP_FIXED_CLOCK", f"ATP_AGEING_US={AGEING_US}"
        )

    def load(self, switch, row):
        for name, value in registers_of(row["before"]["aggregator"], FIELDS).items():
            switch.write_register(name, INDEX, value)
        for lane, value in enumerate(row["before"]["held"]):
            switch.write_register("held_lanes", INDEX * self.lanes + lane, value % 2**32)
        switch.write_register("standing_now_us", 0, row["now_us"])

    def check_registers(self, switch, row):
        after = row["after"]["aggregator"]
        fields = FIELDS if after["status"] != 0 else IDENTITY
        expected = registers_of(after, fields)
        self.assertEqual({name: switch.read_register(name, INDEX) for name in expected}, expected)
        if after["status"] != 0:
            held = [switch.read_register("held_lanes", INDEX * self.lanes + lane) for lane in range(after["lanes"])]
            self.assertEqual(held, [lane % 2**32 for lane in row["after"]["held"]])

    def check_row(self, switch, row, with_checksum):
        self.load(switch, row)
        before = row["before"]
        sent = frames.upward(frames.packet_bytes(before["packet"], before["lanes"]), with_checksum=with_checksum)
        back, onward = self.passed(switch, sent)
        if is_refused(before["packet"]):
            self.assertEqual((back, onward), ([], [sent]))
            return
        expected = frames.packet_bytes(row["after"]["packet"], row["after"]["lanes"])
        self.check_frames(back, onward, row["packet_action"], expected, with_checksum)
        self.check_registers(switch, row)

    def check_level(self, level):
        switch = self.start(level)
        count = 0
        for row in self.rows:
            if level_of(row) != level:
                continue
            for with_checksum in (True, False):
                with self.subTest(row=row["description"], with_checksum=with_checksum):
                    self.check_row(switch, row, with_checksum)
            count += 1
        print(f"level {level}: {count} rows")

    def test_rows_of_level_0(self):
        self.check_level(0)

    def test_rows_of_level_1(self):
        self.check_level(1)

    def test_other_frames_pass_bit_for_bit(self):
        self.check_other_frames(self.start(0), self.rows[0]["before"]["packet"], self.lanes)

    def test_garbage_changes_no_register(self):
        switch = self.start(0)
        row = self.rows[4]
        self.load(switch, row)
        choose = random.Random(7)
        packet = frames.packet_bytes(row["before"]["packet"], row["before"]["lanes"])
        for _ in range(300):
            garbage = bytearray(packet)
            # The token is never right.
            garbage[16:24] = choose.randbytes(8)
            for _ in range(choose.randrange(4)):
                garbage[choose.randrange(len(garbage))] = choose.randrange(256)
            garbage[16] ^= 1 if garbage[16:24] == packet[16:24] else 0
            frame = frames.upward(bytes(garbage[: choose.randrange(len(garbage) + 1)]))
            self.assertEqual(self.passed(switch, frame), [[], [frame]])
        held = {"after": {"aggregator": row["before"]["aggregator"], "held": row["before"]["held"]}}
        self.check_registers(switch, held)

    def test_a_congestion_mark_of_ip_becomes_a_flag(self):
        switch = self.start(0)
        switch.write_register("standing_now_us", 0, 1)
        packet = {**self.rows[0]["before"]["packet"], "mask0": 1}
        back, onward = self.passed(switch, frames.upward(frames.packet_bytes(packet, [4, 5, 6]), ecn=frames.CE))
        self.assertEqual(back, [])
        expected = {**packet, "hop": 1, "flags": frames.wire_format.Flag.ECN}
        self.assertEqual(frames.payload_of(onward[0]).hex(), frames.packet_bytes(expected, [4, 5, 6]).hex())
        self.assertEqual(onward[0][15], frames.ECT0)


if __name__ == "__main__":
    bmv2.tool("p4c-bm2-ss")
    bmv2.tool("simple_switch")
    bmv2.in_own_network()
    unittest.main(verbosity=2)
