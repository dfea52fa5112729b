#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Invalid and repeated frames, derived from valid gradients.

usage: garbage.py listen COUNT                    prints COUNT gradients that leave eth0: every hundredth
       garbage.py send SEED LEAST SERVER SENDER [RATE]
                                                  reads such gradients up to an empty line, and sends invalid frames
                                                  from eth0 to SERVER (MAC/IP) with source SENDER (IP): at least LEAST
                                                  frames, and further ones until its input ends; RATE a second at most
"""

import ipaddress
import random
import select
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import wire_format  # noqa: E402
from wire_format import Type  # noqa: E402

PORT = 4790
CONTROL_TYPES = range(wire_format.TYPE_CONTROL, 32)
TYPE_IPV4, TYPE_IPV6, TYPE_VLAN = 0x0800, 0x86DD, 0x8100
UDP = 17
EVERY = 100
LONGEST_PAYLOAD = 1472


def sum_of(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksum(data):
    return ~sum_of(data) & 0xFFFF


class Packet:
    """A packet of ATP, read from the payload of a datagram."""

    def __init__(self, payload):
        self.fields = wire_format.read_header(payload)
        self.lanes = payload[wire_format.HEADER_BYTES :]

    def bytes(self, payload=None, **changes):
        return wire_format.write_header(**{**self.fields, **changes}) + (self.lanes if payload is None else payload)


class Wire:
    """Writes frames around payloads, with the addresses of one sender and one receiver."""

    def __init__(self, own_mac, mac, sender, receiver):
        self.ethernet = mac + own_mac
        self.sender, self.receiver = sender.packed, receiver.packed

    def udp(self, payload, addresses, wrong=False):
        length = 8 + len(payload)
        header = struct.pack(">HHH", PORT + 1, PORT, length)
        check = checksum(addresses + struct.pack(">HH", UDP, length) + header + payload) or 0xFFFF
        if wrong:
            check = check % 0xFFFF + 1
        return header + struct.pack(">H", check) + payload

    def ipv4(self, payload, options=b"", fragment=0, wrong=False, excess=0, tags=0):
        datagram = self.udp(payload, self.sender + self.receiver, wrong)
        words = 5 + len(options) // 4
        header = struct.pack(">BBHHHBBH", 0x40 | words, 0, 4 * words + len(datagram) + excess, 7, fragment, 64, UDP, 0)
        header += self.sender + self.receiver + options
        header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
        return self.frame(TYPE_IPV4, header + datagram, tags)

    def ipv6(self, payload):
        addresses = ipaddress.ip_address("fd77::1").packed + ipaddress.ip_address("fd77::2").packed
        datagram = self.udp(payload, addresses)
        return self.frame(TYPE_IPV6, struct.pack(">IHBB", 6 << 28, len(datagram), UDP, 64) + addresses + datagram)

    def frame(self, kind, data, tags=0):
        tag = struct.pack(">HH", TYPE_VLAN, 100)
        return self.ethernet + tags * tag + struct.pack(">H", kind) + data


def words(draw):
    return draw.getrandbits(32)


def another_token(draw, packet, wire):
    changes = {name: words(draw) for name in draw.sample(["seq", "index", "bitmap0", "bitmap1", "argument"], 2)}
    return wire.ipv4(packet.bytes(type=draw.choice(list(Type)), token=words(draw) | 1, **changes))


def another_job(draw, packet, wire):
    return wire.ipv4(packet.bytes(job=words(draw)))


def nonsense_in_the_header(draw, packet, wire):
    nonsense = [{"hop": 3}, {"type": 8}, {"lanes": 9}, {"flags": 0x8000}, {"part": 1}, {"window_log2": 17}, {"token": 0},
                {"bitmap0": 0xFFFFFFFF}, {"bitmap1": 0xFFFFFFFF}, {"bitmap0": 0}, {"mask0": 0}]  # fmt: skip
    return wire.ipv4(packet.bytes(**draw.choice(nonsense)))


def cut_short(draw, packet, wire):
    payload = packet.bytes()
    return wire.ipv4(payload[: 4 * draw.randrange(len(payload) // 4) + draw.randint(1, 3)])


def more_lanes(draw, packet, wire):
    return wire.ipv4((packet.bytes() + bytes(LONGEST_PAYLOAD))[:LONGEST_PAYLOAD])


def a_wrong_checksum(draw, packet, wire):
    lanes = bytearray(packet.lanes)
    lanes[draw.randrange(len(lanes))] ^= 1 << draw.randrange(8)
    return wire.ipv4(packet.bytes(payload=bytes(lanes)), wrong=True)


def a_bit_turned(draw, packet, wire):
    frame = bytearray(wire.ipv4(packet.bytes()))
    frame[draw.randrange(12, len(frame))] ^= 1 << draw.randrange(8)
    return bytes(frame)


def repeated(draw, packet, wire):
    """Repeats a packet without changes, in a frame with headers that a network may add."""
    wrappings = [{}, {"tags": 1}, {"tags": 2}, {"fragment": 0x2000}, {"fragment": 0x10}, {"excess": 40}]
    return wire.ipv4(packet.bytes(), **draw.choice(wrappings))


def with_options(draw, packet, wire):
    lanes = packet.lanes[: 4 * draw.randrange(300)]
    return wire.ipv4(packet.bytes(token=words(draw) | 1, payload=lanes), options=bytes([1] * 4 * draw.randint(1, 10)))


def over_ipv6(draw, packet, wire):
    return wire.ipv6(packet.bytes(token=words(draw) | 1)[: draw.choice([40, 56, 200, 1400])])


def a_control_message(draw, packet, wire):
    job = struct.pack(">IQ", packet.fields["job"], words(draw) | 1)
    body = draw.choice([b"", job]) + draw.randbytes(draw.randrange(200))
    return wire.ipv4(bytes([wire_format.CONTROL_VERSION, draw.choice(CONTROL_TYPES)]) + body)


def noise(draw, packet, wire):
    kind = draw.choice([TYPE_IPV4, TYPE_IPV6, TYPE_VLAN, draw.getrandbits(16)])
    return draw.choice([
        wire.ipv4(draw.randbytes(draw.randrange(LONGEST_PAYLOAD))),
        wire.ipv4(bytes([wire_format.VERSION]) + draw.randbytes(draw.randrange(LONGEST_PAYLOAD - 1))),
        wire.frame(kind, draw.randbytes(draw.randrange(1, 1500))),
    ])  # fmt: skip


MISCHIEF = [another_token, another_job, nonsense_in_the_header, cut_short, more_lanes, a_wrong_checksum, a_bit_turned,
            repeated, with_options, over_ipv6, a_control_message, noise]  # fmt: skip


def listen(count):
    everything = 3
    outgoing = 4
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(everything)) as ear:
        ear.bind(("eth0", everything))
        ear.settimeout(30)
        seen = 0
        while seen < count * EVERY:
            frame, (_, _, kind, *_) = ear.recvfrom(65536)
            payload = frame[42:]
            if kind != outgoing or payload[:2] != bytes([wire_format.VERSION, Type.GRADIENT]):
                continue
            if seen % EVERY == 0:
                print(payload.hex(), flush=True)
            seen += 1


def has_ended(stream):
    return select.select([stream], [], [], 0)[0]


def send(seed, least, server, sender, rate=None):
    draw = random.Random(seed)
    mac, receiver = server.split("/")
    packets = [Packet(bytes.fromhex(line)) for line in iter(sys.stdin.readline, "\n")]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as mouth:
        mouth.bind(("eth0", 0))
        wire = Wire(mouth.getsockname()[4], bytes.fromhex(mac.replace(":", "")), ipaddress.ip_address(sender),
                    ipaddress.ip_address(receiver))  # fmt: skip
        sent = 0
        while sent < least or not has_ended(sys.stdin):
            sent += 1
            if rate:
                time.sleep(1 / rate)
            mouth.send(draw.choice(MISCHIEF)(draw, draw.choice(packets), wire))


if __name__ == "__main__":
    if sys.argv[1] == "listen":
        listen(int(sys.argv[2]))
    else:
        send(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5], *map(float, sys.argv[6:]))
