# SPDX-License-Identifier: Apache-2.0
"""A rank in Python, written only from docs/spec: the chapters of a worker, joining and formation. It shares jobs of one
switch with ranks of this repository.

The rank is as simple as these chapters allow: one channel, no congestion window, no resend before a NACK, a fixed timer.
The layouts of packets come from wire_format. Its definition also generates the tables of the chapters.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import wire_format  # noqa: E402
from wire_format import Dtype, Flag, Message, StoreMessage, Type  # noqa: E402

Address = tuple[str, int]
Send = Callable[[int, int], None]

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
ECT_0 = 2
SCALE = 1e8
ASK_AFTER_S = 0.02
MOST_IN_FLIGHT = 64


def mix(x: int) -> int:
    x = (x ^ x >> 16) * 0x7FEB352D & MASK32
    x = (x ^ x >> 15) * 0x846CA68B & MASK32
    return x ^ x >> 16


def siphash_of_nothing(k0: int, k1: int) -> int:
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> 64 - bits) & MASK64

    for round_number in range(6):
        if round_number == 2:
            v[2] ^= 0xFF
        v[0] = v[0] + v[1] & MASK64
        v[2] = v[2] + v[3] & MASK64
        v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
        v[0] = rotate(v[0], 32) + v[3] & MASK64
        v[2] = v[2] + v[1] & MASK64
        v[3], v[1] = rotate(v[3], 21) ^ v[0], rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def index(job: int, token: int, channel: int, slot: int, attempt: int, aggregators: int) -> int:
    seed = siphash_of_nothing(token, job << 16 | channel) & MASK32
    inner = mix(seed + slot & MASK32)
    return mix(inner + attempt * 0x85EBCA6B & MASK32) * aggregators >> 32


def first_indices(job: int, token: int, channel: int, window: int, aggregators: int) -> list[int]:
    base: list[int] = []
    for slot in range(window if window == 1 << 16 else max(window // 4, min(window, 8))):
        tried = [index(job, token, channel, slot, attempt, aggregators) for attempt in range(4)]
        base.append(next((each for each in tried if each not in base), tried[-1]))
    return [base[slot % len(base)] for slot in range(window)]


def audit(job: int, token: int, channel: int, seq: int, worker: int) -> int:
    identity = mix(mix(job ^ token & MASK32) + (token >> 32) & MASK32)
    return mix(mix(identity + seq & MASK32) + (channel << 16) + worker & MASK32)


def purpose(operation: int, elements: int, detail: int) -> int:
    inner = mix(mix(operation + 0x9E37) + detail & MASK32)
    h = mix(inner + mix(elements & MASK32) + (elements >> 32) & MASK32)
    return (h ^ h >> 16) & 0xFFFF


class Store:
    """The client of a TCP store."""

    def __init__(self, server: Address, deadline: float) -> None:
        self._connection = self._connect(server, deadline)
        self._request(1, number=0x4154502053544F52)

    @staticmethod
    def _connect(server: Address, deadline: float) -> socket.socket:
        while True:
            try:
                return socket.create_connection(server, timeout=30)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._connection.recv(size - len(data))
            if not part:
                raise ConnectionError("the store closed the connection")
            data += part
        return data

    def _request(self, kind: int, number: int = 0, keys: tuple[str, ...] = (), value: bytes = b"") -> Any:
        message = struct.pack(">BBqH", 1, kind, number, len(keys))
        message += b"".join(struct.pack(">H", len(key)) + key.encode() for key in keys)
        message += struct.pack(">I", len(value)) + value
        self._connection.sendall(struct.pack(">I", len(message)) + message)
        reply = self._receive(struct.unpack(">I", self._receive(4))[0])
        version, status, answer, count = struct.unpack(">BBqH", reply[:12])
        fields, at = [], 12
        for _ in range(count):
            size = struct.unpack(">I", reply[at : at + 4])[0]
            fields.append(reply[at + 4 : at + 4 + size])
            at += 4 + size
        if (version, status) != (1, 1):
            raise RuntimeError(f"the store refuses: {fields}")
        return answer, fields

    def close(self) -> None:
        self._connection.close()

    def add(self, key: str, number: int) -> int:
        return int(self._request(3, number, (key,))[0])

    def set(self, key: str, value: bytes) -> None:
        self._request(2, 0, (key,), value)

    def get(self, key: str) -> bytes:
        return bytes(self._request(4, 0, (key,))[1][0])


class Rendezvous:
    def __init__(self, store: Store, prefix: str, rank: int, world: int) -> None:
        self._store, self._prefix, self._rank, self._world = store, prefix, rank, world

    def leave(self, name: str, message: bytes) -> None:
        key = f"{self._prefix}/0/{name}/{self._rank}"
        if self._store.add(key + "/came", 1) != 1:
            raise RuntimeError(f"the store already has {key}")
        self._store.set(key, struct.pack(">I", self._world) + message)

    def of(self, name: str, rank: int) -> bytes:
        value = self._store.get(f"{self._prefix}/0/{name}/{rank}")
        world = struct.unpack(">I", value[:4])[0]
        if world == 0:
            notice = wire_format.read_message(value[4:])[1]
            raise RuntimeError(f"rank {notice['rank']} gave up: {notice['text']}")
        if world != self._world:
            raise RuntimeError(f"rank {rank} has another number of ranks")
        return value[4:]

    def gather(self, name: str, message: bytes) -> list[bytes]:
        self.leave(name, message)
        return [self.of(name, rank) for rank in range(self._world)]

    def exchange(self, name: str, kind: StoreMessage, **fields: Any) -> list[dict[str, Any]]:
        messages = self.gather(name, wire_format.write_message(kind, **fields))
        return [wire_format.read_message(message)[1] for message in messages]


def greet(switch: Address) -> list[dict[str, int]]:
    """Returns the announcements of the switches on the path, from `switch` to the root."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(0.5)
        for _ in range(20):
            nonce = random.getrandbits(64)
            hello = wire_format.write_message(Message.HELLO, wire_format.LEAST_QUESTION_BYTES, nonce=nonce)
            asking.sendto(hello, switch)
            try:
                kind, answer = wire_format.read_message(asking.recv(65_507))
            except (TimeoutError, ValueError):
                continue
            if kind == Message.WELCOME and answer["nonce"] == nonce:
                return answer["path"]
    raise TimeoutError("no WELCOME")


class Mismatch(Exception):
    """The server sent WAIT with argument 1: ranks call different operations."""


class Rank:
    """A rank with one channel. All ranks of its job use one switch."""

    def __init__(self, store: Store, switch: Address, rank: int, world: int, audits: bool = False) -> None:
        self._rank, self._world, self._switch, self._audits = rank, world, switch, audits
        self._rendezvous = Rendezvous(store, "atp", rank, world)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT_0)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(ASK_AFTER_S)
        self._indices: list[int] = []  # of each slot: aggregator index that its last ACK named
        self._next_seq = 0
        self._ready = False
        self._join_at = 0.0
        self._nonce = random.getrandbits(64)
        self._cookie = 0  # of the last RETRY
        self._epoch = 0  # of the last JOIN
        self._newest = (0, 0)  # epoch and number of the newest JOINED
        self._data_address = switch
        self._agree()
        self._await_ready()

    def _agree(self) -> None:
        flag = "true" if self._audits else "false"
        terms = (
            "version=5 channels=1 lanes=0 window=0 scale=100000000 scaling=fixed lane_type=int32 "
            f"audit={flag} multicast=off server=3 host_level=true seal=none"
        )
        # This rank shares memory with nobody.
        facts = self._rendezvous.exchange("facts", StoreMessage.FACTS, token=1 + random.getrandbits(63), terms=terms)
        for each in facts:
            if each["terms"] != terms:
                raise RuntimeError(f"terms differ: {each['terms']!r} and {terms!r}")
        self._job, self._token = facts[0]["job"], facts[0]["token"]
        path, host = greet(self._switch), f"{self._socket.getsockname()[0]}:0"
        network = self._rendezvous.exchange("network-0", StoreMessage.NETWORK, path=path, lanes=1000, host=host)
        if len({each["path"][-1]["id"] for each in network}) != 1:
            raise RuntimeError(f"no switch is above all ranks: {network}")
        adding = [each for rank in network for each in rank["path"] if each["aggregators"] != 0]
        self._aggregators = min((each["aggregators"] for each in adding), default=1)
        self._lanes = min([rank["lanes"] for rank in network] + [each["lanes"] for each in adding])
        packets = 262_144 // (wire_format.HEADER_BYTES + wire_format.LANE_BYTES * self._lanes)
        self._window = 4 * max(8, min(256, 1 << packets.bit_length() - 1))
        self._indices = first_indices(self._job, self._token, 0, self._window, self._aggregators)

    def _send_join(self) -> None:
        log2_window = self._window.bit_length() - 1
        terms = {"job": self._job, "token": self._token, "lanes": self._lanes, "window_log2": log2_window,
                 "audit": self._audits, "aggregators": self._aggregators, "mask1": 1, "scale": SCALE}  # fmt: skip
        unit = {"members": 1 << self._rank, "mask0": (1 << self._world) - 1, "ranks": [self._rank]}
        self._epoch += 1
        message = wire_format.write_message(
            Message.JOIN, wire_format.LEAST_QUESTION_BYTES, nonce=self._nonce, terms=terms, cookie=self._cookie,
            epoch=self._epoch, begun=self._ready, units=[unit],
        )  # fmt: skip
        self._socket.sendto(message, self._switch)

    def _receive(self) -> bytes | None:
        """Sends a JOIN if one is due, then receives once. Returns a packet of the job, or None if none arrived."""
        now = time.monotonic()
        if now >= self._join_at:
            self._send_join()
            self._join_at = now + (1 if self._ready else 0.05)
        try:
            message, sender = self._socket.recvfrom(65_507)
        except TimeoutError:
            return None
        if message[:1] == bytes([wire_format.VERSION]) and message[1] < wire_format.TYPE_CONTROL:
            return message if sender == self._data_address and len(message) >= wire_format.HEADER_BYTES else None
        try:
            kind, fields = wire_format.read_message(message)
        except ValueError:
            return None
        own = (self._nonce, self._job, self._token, 0)
        if kind not in (Message.REFUSED, Message.RETRY, Message.JOINED):
            return None
        if (fields["nonce"], fields["job"], fields["token"], fields["channel"]) != own:
            return None
        if kind == Message.REFUSED:
            raise RuntimeError(f"refused: {fields['text']!r}")
        if kind == Message.RETRY and fields["cookie"] != self._cookie:
            self._cookie, self._join_at = fields["cookie"], 0.0
        if kind == Message.JOINED and self._newest < (fields["epoch"], fields["number"]):
            self._newest = (fields["epoch"], fields["number"])
            self._ready, self._data_address = fields["ready"], sender
        return None

    def _await_ready(self) -> None:
        deadline = time.monotonic() + 30
        while not self._ready:
            self._receive()
            if time.monotonic() > deadline:
                raise TimeoutError("the tree is not ready")

    def _index(self, seq: int) -> int:
        return self._indices[seq % self._window]

    def _header(self, kind: int, flags: int, form: int, seq: int, argument: int) -> bytes:
        log2_window = self._window.bit_length() - 1
        return wire_format.write_header(
            type=kind, flags=flags, lanes_form=form, lanes_type=form, window_log2=log2_window, job=self._job, token=self._token,
            worker=self._rank, seq=seq, peer=wire_format.WORKER_ALL, index=self._index(seq), argument=argument, bitmap0=1 << self._rank,
            mask0=(1 << self._world) - 1, bitmap1=1, mask1=1,
        )  # fmt: skip

    def reduce(self, lanes: list[int], plain: bool, argument: int) -> bytes:
        """Sums the lanes over all ranks. Returns the lanes of the result as bytes in network order."""
        elements = self._lanes - self._audits
        fragments = [lanes[at : at + elements] for at in range(0, len(lanes), elements)]
        results: list[bytes | None] = [None] * len(fragments)
        first, sent, expected = self._next_seq, 0, 0
        flags = Flag.PLAIN * plain | Flag.AUDIT * self._audits
        self._next_seq += len(fragments)

        def send(at: int, extra: int) -> None:
            body = struct.pack(f">{len(fragments[at])}i", *fragments[at])
            if self._audits:
                body += struct.pack(">I", audit(self._job, self._token, 0, first + at, self._rank))
            self._socket.sendto(
                self._header(Type.GRADIENT, flags | extra, Dtype.INT32, first + at, argument) + body, self._data_address
            )

        progress = time.monotonic()
        deadline = progress + 30
        while expected < len(fragments):
            while sent < min(len(fragments), expected + min(self._window, MOST_IN_FLIGHT)):
                send(sent, 0)
                sent += 1
            if (packet := self._receive()) is not None:
                at = self._handle(packet, first, sent, results, plain, send)
                if at is not None:
                    body = packet[wire_format.HEADER_BYTES :]
                    if len(body) != 4 * (len(fragments[at]) + self._audits):
                        raise RuntimeError("an ACK has another length than its fragment")
                    words = (audit(self._job, 0, 0, first + at, worker) for worker in range(self._world))
                    if self._audits and body[-4:] != struct.pack(">I", sum(words) & MASK32):
                        raise RuntimeError("a result with a wrong audit lane")
                    results[at] = body[: 4 * len(fragments[at])]
                    progress = time.monotonic()
                while expected < len(fragments) and results[expected] is not None:
                    expected += 1
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError("no result")
            if now - progress > ASK_AFTER_S:
                progress = now
                missing = [at for at in range(expected, sent) if results[at] is None]
                for at in missing[:8]:
                    self._socket.sendto(self._header(Type.PROBE, 0, 0, first + at, 0), self._data_address)
        return b"".join(result for result in results if result is not None)

    def _handle(
        self, packet: bytes, first: int, sent: int, results: list[bytes | None], plain: bool, send: Send
    ) -> int | None:
        """Handles a packet. If the packet is the first result of a fragment, returns the index of the fragment."""
        header = wire_format.read_header(packet)
        at: int = header["seq"] - first
        identity = (header["job"], header["token"], header["channel"])
        if identity != (self._job, self._token, 0) or not 0 <= at < sent or results[at] is not None:
            return None
        if header["type"] == Type.WAIT and header["argument"] == wire_format.WAIT_MISMATCHED:
            raise Mismatch
        if header["type"] == Type.NACK and header["bitmap1"] & 1 and header["bitmap0"] >> self._rank & 1:
            send(at, Flag.RESEND | header["flags"] & Flag.BYPASS)
        if header["type"] != Type.ACK or header["lanes_type"] != (Dtype.INT32 if plain else Dtype.FLOAT32):
            return None
        self._indices[header["seq"] % self._window] = header["argument"]
        return at

    def barrier(self) -> None:
        self.reduce([0], True, purpose(14, 1, 0))

    def sum_floats(self, scaled: list[int]) -> bytes:
        """Sums float32 elements, which the caller has already multiplied by the scale and rounded to integers."""
        return self.reduce(scaled, False, purpose(12, len(scaled), mix(len(scaled))))

    def sum_integers(self, values: list[int]) -> bytes:
        return self.reduce(values, True, purpose(12, len(values), mix((4 << 8) + len(values))))

    def broadcast_from(self, root: int, size: int) -> bytes:
        return self.reduce([0] * ((size + 3) // 4), True, purpose(13, size, root))[:size]

    def leave(self) -> None:
        message = wire_format.write_message(
            Message.LEAVE, nonce=self._nonce, job=self._job, token=self._token, epoch=self._epoch + 1, member=self._rank
        )
        self._socket.sendto(message, self._switch)
        self._socket.close()
