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
