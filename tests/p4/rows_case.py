# SPDX-License-Identifier: Apache-2.0
"""Rows of a table of decisions as packets through BMv2: what tests of several programs have in common."""

import struct
import unittest

import frames

PACKET_OUTGOING = 4
# A frame that shows that all earlier frames to a port have left.
MARK_KIND = 0x88B5


def is_refused(packet):
    """A packet whose bitmap has a bit outside its mask passes unread. Other switches drop such a FLUSH."""
    return packet["bitmap0"] & ~packet["mask0"] != 0 or packet["bitmap1"] & ~packet["mask1"] != 0


def mark_to(station):
    return frames.ethernet(frames.WORKER, station, bytes(46), MARK_KIND)


class RowsCase(unittest.TestCase):
    @staticmethod
    def frames_until_mark(switch, port):
        found = []
        while True:
            frame, address = switch.ports[port].recvfrom(4096)
            if address[2] == PACKET_OUTGOING:
                continue
            if frame[12:14] == struct.pack(">H", MARK_KIND):
                return found
            found.append(frame)

    def passed(self, switch, frame, passes=lambda: None):
        """Sends the frame to port 0. Returns the frames that leave by each port because of it. `passes` returns after its
        last pass."""
        switch.ports[0].send(frame)
        passes()
        switch.ports[0].send(mark_to(frames.WORKER))
        switch.ports[0].send(mark_to(frames.SERVER))
        return [self.frames_until_mark(switch, port) for port in range(2)]

    def check_frames(self, back, onward, action, expected, with_checksum):
        self.assertEqual(len(back), 1 if action == "return" else 0)
        self.assertEqual(len(onward), 1 if action == "forward" else 0)
        for frame in back + onward:
            self.assertEqual(frames.payload_of(frame).hex(), expected.hex())
            self.assertEqual(frame[40:42] == b"\0\0", not with_checksum)
        for frame in back:
            self.assertEqual(frame[:12], frames.WORKER + frames.SERVER)
            self.assertEqual(frame[26:34], frames.SERVER_HOST + frames.WORKER_HOST)
        for frame in onward:
            self.assertEqual(frame[:12], frames.SERVER + frames.WORKER)

    def check_other_frames(self, switch, fields, most_lanes):
        """They pass bit for bit. `fields`: the header of a gradient that the switch would add."""
        packet = frames.packet_bytes(fields, [1, 2, 3])
        inner = frames.datagram(frames.WORKER_HOST, frames.SERVER_HOST, packet)
        damaged = bytearray(frames.upward(packet))
        damaged[-1] ^= 1
        foreign = {**fields, "token": 9}
        long_packet = frames.packet_bytes(fields, range(most_lanes + 1))

        def from_worker(payload, **words):
            return frames.ethernet(
                frames.WORKER, frames.SERVER, frames.ip(frames.WORKER_HOST, frames.SERVER_HOST, payload, **words)
            )

        cases = {
            "damaged": bytes(damaged),
            "another token": frames.upward(frames.packet_bytes(foreign, [1, 2, 3])),
            "too many lanes": frames.upward(long_packet),
            "half a lane": frames.upward(packet[:-2]),
            "half a header": frames.upward(packet[:30]),
            "one byte": frames.upward(b"\xa4"),
            "nothing": frames.upward(b""),
            "another version": frames.upward(b"\xa3" + packet[1:]),
            "a control message": frames.upward(b"\xa4\x10" + bytes(60)),
            "a fragment": from_worker(inner, fragment=0x2000),
            "options": from_worker(inner, options=bytes(4)),
            "tcp": from_worker(inner, protocol=6),
            "another port": from_worker(frames.datagram(frames.WORKER_HOST, frames.SERVER_HOST, packet, (9, 9))),
            "a padded frame": frames.upward(packet[:20]) + bytes(30),
            "ipv6": frames.ethernet(frames.WORKER, frames.SERVER, b"\x60" + bytes(60), 0x86DD),
            "a short frame": frames.ethernet(frames.WORKER, frames.SERVER, b"\x45"),
        }
        for name, frame in cases.items():
            with self.subTest(name):
                self.assertEqual(self.passed(switch, frame), [[], [frame]])
