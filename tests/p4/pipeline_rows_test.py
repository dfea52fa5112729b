# SPDX-License-Identifier: Apache-2.0
"""All rows of tests/conformance/decide_pipeline.json as packets through the pipeline on BMv2: each pass, the frame that
leaves, and the registers after it.
"""

import json
import struct
import tempfile
import time
import unittest
from pathlib import Path

import bmv2
import frames
from rows_case import RowsCase, is_refused

ROWS = Path(__file__).resolve().parents[1] / "conformance" / "decide_pipeline.json"
LANES = 8
PAIRS = 4
INDEX = 5
AGEING_US = 500_000
KINDS = ("first", "claim", "expire", "fetch", "harvest", "take", "return")
ACTIONS = ("drop", "forward", "return", "resubmit", "recirculate")
LANES_ACTIONS = ("none", "store", "add", "add_emit_upper", "emit_upper", "emit_lower")
EVENTS = ("passed", "claimed", "added", "completed", "single", "duplicate", "reemitted", "collided", "bypassed", "late",
          "resent", "fetched", "released", "expired", "taken_over", "superseded", "flushed", "closed",
          "misfit")  # fmt: skip
ACK_LIST = 8  # type of a packet
# A register begins at 0 in BMv2, where a tag is free.
TAG_FREE = 1 << 31
REGISTERS = {
    "tomb": "tomb_upper",
    "tomb_seq": "tomb_lower",
    "tag": "tag",
    "body": "body_lower",
    "bitmap": "body_upper",
    "touched_us": "time",
    "marks": "mark",
}


def registers_of(state):
    words = {**state["words"], "tag": state["words"]["tag"] ^ TAG_FREE}
    found = {f"one_pass.{REGISTERS[name]}": value for name, value in words.items()}
    for lane, value in enumerate(state["held"]):
        half = "lower" if lane % 2 else "upper"
        found[f"one_pass.pair{lane // 2}_{half}"] = value % 2**32
    return found


def join_frame(cookie, int32_path, with_checksum=True):
    message = frames.wire_format.write_message(
        frames.wire_format.Message.JOIN, 288, cookie=cookie, int32_path=int32_path
    )
    return frames.upward(message, with_checksum=with_checksum)


def cookie_for(checksum):
    """The cookie with which an unmarked JOIN has this checksum of UDP."""
    found = struct.unpack(">H", join_frame(0, 0)[40:42])[0]
    grows = (found - checksum) % 0xFFFF
    return grows >> 8 | (grows & 0xFF) << 8  # it begins at an odd byte


class PipelineRowsTest(RowsCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = json.loads(ROWS.read_text())
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.programs = {}

    def compiled(self, full_lanes):
        if full_lanes not in self.programs:
            folder = Path(self.folder, str(full_lanes))
            folder.mkdir()
            self.programs[full_lanes] = bmv2.compiled(
                folder,
                f"ATP_LANES={LANES}",
                f"ATP_PAIRS={PAIRS}",
                f"ATP_FULL_LANES={full_lanes}",
                "ATP_AGGREGATORS=8",
                "ATP_TRACE",
                f"ATP_AGEING_US={AGEING_US}",
                program=bmv2.PIPELINE,
            )
        return self.programs[full_lanes]

    def start(self, full_lanes):
        switch = bmv2.Switch(self.compiled(full_lanes))
        self.addCleanup(switch.close)
        switch.add_entry("forwarding.stations", [frames.SERVER], "forwarding.forward", b"\0\1")
        switch.add_entry("forwarding.stations", [frames.WORKER], "forwarding.forward", b"\0\0")
        packet = self.rows[0]["before"]["packet"]
        self.stream = self.rows[0]["place"]["stream"]
        keys = [
            struct.pack(">I", packet["job"]),
            struct.pack(">Q", packet["token"]),
            struct.pack(">H", packet["channel"]),
        ]
        switch.add_entry("streams", keys, "admit", bytes([self.stream]), b"\0\1")
        self.place = None
        return switch

    def admit(self, switch, row):
        """The one place that the row needs."""
        packet, place = row["before"]["packet"], row["place"]
        self.assertEqual(place["stream"], self.stream)
        unit = packet["bitmap1"] if packet["hop"] == 0 else 0
        wanted = (packet["hop"], unit, place["place"], place["mask"])
        if wanted == self.place:
            return
        switch.clear_entries("places")
        if place["place"] != 0:
            keys = [bytes([self.stream]), bytes([packet["hop"]]), struct.pack(">I", unit)]
            switch.add_entry("places", keys, "serve", bytes([place["place"]]), struct.pack(">I", place["mask"]))
        self.place = wanted

    @staticmethod
    def wait_for_last_pass(switch):
        deadline = time.monotonic() + bmv2.PATIENCE_S
        while switch.read_register("traced_passes", 0) == 0:
            if time.monotonic() > deadline:
                raise AssertionError("the last pass did not come")

    def passes_of(self, switch):
        found = []
        for at in range(switch.read_register("traced_passes", 0)):
            kind, action, lanes, event = struct.pack(">I", switch.read_register("traced_outcomes", at))
            found.append(
                {
                    "kind": KINDS[kind],
                    "seen": switch.read_register("traced_seen", at),
                    "packet_action": ACTIONS[action],
                    "lanes_action": LANES_ACTIONS[lanes],
                    "event": EVENTS[event],
                }
            )
        return found

    @staticmethod
    def registers_in(switch, row):
        return {name: switch.read_register(name, INDEX) for name in registers_of(row["after"])}

    def check_row(self, switch, row, with_checksum):
        before = row["before"]
        self.admit(switch, row)
        for name, value in registers_of(before).items():
            switch.write_register(name, INDEX, value)
        switch.write_register("standing_now_us", 0, row["now_us"])
        switch.write_register("traced_passes", 0, 0)
        sent = frames.upward(frames.packet_bytes(before["packet"], before["lanes"]), with_checksum=with_checksum)
        if before["packet"]["type"] == ACK_LIST:
            # The parser does not read it.
            self.assertEqual(self.passed(switch, sent), [[], [sent]])
            self.assertEqual(self.registers_in(switch, row), registers_of(row["after"]))
            return
        back, onward = self.passed(switch, sent, lambda: self.wait_for_last_pass(switch))
        if is_refused(before["packet"]):
            self.assertEqual((back, onward), ([], [sent]))
            return
        self.assertEqual(self.passes_of(switch), row["passes"])
        expected = frames.packet_bytes(row["after"]["packet"], row["after"]["lanes"])
        self.check_frames(back, onward, row["passes"][-1]["packet_action"], expected, with_checksum)
        self.assertEqual(self.registers_in(switch, row), registers_of(row["after"]))

    def check_length(self, full_lanes):
        switch = self.start(full_lanes)
        rows = [row for row in self.rows if row["full_lanes"] == full_lanes]
        for row in rows:
            for with_checksum in (True, False):
                with self.subTest(row=row["description"], with_checksum=with_checksum):
                    self.check_row(switch, row, with_checksum)
        print(f"{full_lanes} lanes: {len(rows)} rows")

    def test_other_frames_pass_bit_for_bit(self):
        switch = self.start(3)
        self.admit(switch, self.rows[0])
        self.check_other_frames(switch, self.rows[0]["before"]["packet"], LANES)

    def test_a_join_says_that_its_path_adds_int32_alone(self):
        switch = self.start(3)
        for checksum in (0xFFFF, 1, 256, 257, 0x5A5A, None):
            with self.subTest(checksum=checksum):
                cookie = 0 if checksum is None else cookie_for(checksum)
                before, after = (join_frame(cookie, mark, checksum is not None) for mark in (0, 1))
                if checksum is not None:
                    self.assertEqual(struct.unpack(">H", before[40:42])[0], checksum)
                self.assertEqual(self.passed(switch, before), [[], [after]])
                # A second pipeline leaves it as it is.
                self.assertEqual(self.passed(switch, after), [[], [after]])
        joined = frames.wire_format.write_message(frames.wire_format.Message.JOINED, 288)
        short = frames.payload_of(before)[:122]
        for other in (frames.upward(joined), frames.upward(short)):
            self.assertEqual(self.passed(switch, other), [[], [other]])

    def test_rows_of_3_lanes(self):
        self.check_length(3)

    def test_rows_of_6_lanes(self):
        self.check_length(6)


if __name__ == "__main__":
    bmv2.tool("p4c-bm2-ss")
    bmv2.tool("simple_switch")
    bmv2.in_own_network()
    unittest.main(verbosity=2)
