# SPDX-License-Identifier: Apache-2.0
"""The program for BMv2 with 352 lanes, as many as a frame of 1,500 bytes holds: all rows of decide.json, and full frames of
each form.
"""

import random
import unittest

import bmv2
import frames
import rows_test

LANES = 352
FORMS = {0x11: 32, 0x33: 16, 0x44: 8}  # `lanes` of a packet: bits of an element
Flag = frames.wire_format.Flag


def elements_of(word, bits):
    found = [(word >> at) % 2**bits for at in range(32 - bits, -1, -bits)]
    return [value - 2**bits if value >= 2 ** (bits - 1) else value for value in found]


def word_of(elements, bits):
    word = 0
    for element in elements:
        word = word << bits | element % 2**bits
    return word - 2**32 if word >= 2**31 else word


def saturated_sum(words, others, bits):
    """The words of the sum, and whether an element left its width."""
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    sums, overflowed = [], False
    for word, other in zip(words, others):
        exact = [sum(pair) for pair in zip(elements_of(word, bits), elements_of(other, bits))]
        overflowed = overflowed or min(exact) < least or max(exact) > most
        sums.append(word_of([min(max(value, least), most) for value in exact], bits))
    return sums, overflowed


class LongRowsTest(rows_test.RowsTest):
    lanes = LANES

    def gradient(self, worker, index, **fields):
        """The header of a gradient of one of two workers."""
        packet = {**self.rows[0]["before"]["packet"], "index": index, "seq": index, "mask0": 3}
        return {**packet, "worker": worker, "bitmap0": 1 << worker, **fields}

    def sent(self, switch, packet, words):
        frame = frames.upward(frames.packet_bytes(packet, words))
        return self.passed(switch, frame)

    def check_sum(self, onward, packet, words):
        expected = {**packet, "hop": 1, "bitmap0": 3}
        self.assertEqual(len(onward), 1)
        self.assertEqual(frames.payload_of(onward[0]).hex(), frames.packet_bytes(expected, words).hex())

    def test_full_frames_of_each_form_are_added(self):
        switch = self.start(0)
        choose = random.Random(3)
        index = 0
        for form, bits in FORMS.items():
            for reach in (bits - 2, bits - 1):  # the sums of numbers with one bit less fit
                with self.subTest(bits=bits, reach=reach):
                    words, others = (
                        [
                            word_of([choose.randrange(-(2**reach), 2**reach) for _ in range(32 // bits)], bits)
                            for _ in range(LANES)
                        ]
                        for _ in range(2)
                    )
                    first, second = (self.gradient(worker, index, lanes=form) for worker in range(2))
                    self.assertEqual(self.sent(switch, first, words), [[], []])
                    back, onward = self.sent(switch, second, others)
                    self.assertEqual(back, [])
                    sums, overflowed = saturated_sum(words, others, bits)
                    self.assertEqual(overflowed, reach == bits - 1)
                    self.check_sum(onward, {**second, "flags": Flag.OVERFLOW if overflowed else 0}, sums)
                    index += 1

    def test_a_flush_of_a_full_fragment_leaves_it_to_a_resend(self):
        switch = self.start(0)
        words = list(range(LANES))
        self.assertEqual(self.sent(switch, self.gradient(0, 7), words), [[], []])
        of_server = {"type": frames.wire_format.Type.FLUSH, "lanes": 0, "argument": 0, "worker": 0xFFFF, "bitmap0": 0}
        flush = {**self.gradient(0, 7), **of_server}
        self.assertEqual(self.sent(switch, flush, []), [[], []])
        self.assertEqual(switch.count("no_room", 0), 1)
        resend = self.gradient(1, 7, flags=Flag.RESEND)
        back, onward = self.sent(switch, resend, words)
        self.assertEqual(back, [])
        self.check_sum(onward, resend, [2 * word for word in words])


if __name__ == "__main__":
    bmv2.tool("p4c-bm2-ss")
    bmv2.tool("simple_switch")
    bmv2.in_own_network()
    unittest.main(verbosity=2)
