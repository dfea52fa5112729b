# SPDX-License-Identifier: Apache-2.0
"""Frames of Ethernet that hold packets, and their checksums, for tests of switches that see frames."""

import ipaddress
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import wire_format  # noqa: E402

PORT = 4790
WORKER = bytes.fromhex("020000000001")
SERVER = bytes.fromhex("020000000002")
WORKER_HOST = ipaddress.ip_address("10.77.0.1").packed
SERVER_HOST = ipaddress.ip_address("10.77.0.2").packed
ECT0, CE = 2, 3


def ones_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def udp_sum(source, destination, datagram):
    """0xFFFF if the datagram has a right checksum."""
    return ones_sum(source + destination + struct.pack(">BBH", 0, 17, len(datagram)) + datagram)


def datagram(source, destination, payload, ports=(PORT, PORT), with_checksum=True):
    head = struct.pack(">HHHH", *ports, 8 + len(payload), 0)
    check = 0xFFFF - udp_sum(source, destination, head + payload) or 0xFFFF
    return head[:6] + struct.pack(">H", check if with_checksum else 0) + payload


def ip(source, destination, payload, ecn=ECT0, protocol=17, fragment=0, options=b""):
    words = 5 + len(options) // 4
    head = struct.pack(">BBHHHBBH", 0x40 | words, ecn, 4 * words + len(payload), 7, fragment, 64, protocol, 0)
    head += source + destination + options
    return head[:10] + struct.pack(">H", 0xFFFF - ones_sum(head)) + head[12:] + payload


def ethernet(source, destination, payload, kind=0x0800):
    return destination + source + struct.pack(">H", kind) + payload


def upward(payload, ecn=ECT0, with_checksum=True):
    """A frame of the worker to the server."""
    inner = datagram(WORKER_HOST, SERVER_HOST, payload, with_checksum=with_checksum)
    return ethernet(WORKER, SERVER, ip(WORKER_HOST, SERVER_HOST, inner, ecn))


def payload_of(frame):
    """The payload of the frame's datagram. Raises ValueError if a checksum or a length is wrong."""
    head, inner = frame[14:34], frame[34:]
    if ones_sum(head) != 0xFFFF:
        raise ValueError("the checksum of IP is wrong")
    inner = inner[: struct.unpack(">H", head[2:4])[0] - 20]
    bytes_of_udp, check = struct.unpack(">HH", inner[4:8])
    if bytes_of_udp != len(inner):
        raise ValueError("the lengths of IP and UDP differ")
    if check != 0 and udp_sum(head[12:16], head[16:20], inner) != 0xFFFF:
        raise ValueError("the checksum of UDP is wrong")
    return inner[8:]


def packet_bytes(fields, lanes):
    """The payload with the header `fields`, as rows of decide.json name them, and the lanes."""
    values = {"version": wire_format.VERSION, **fields}
    header = wire_format.HEADER.pack(*(values[name] for name in wire_format.HEADER_FIELDS))
    return header + b"".join(struct.pack(">i", lane) for lane in lanes)
