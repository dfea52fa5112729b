# SPDX-License-Identifier: Apache-2.0
"""Packets and control messages as values of Python, for tests. The layouts come from src/machines/wire/wire.toml.

A message is a dictionary from names of fields to values, which can be dictionaries and lists. It has no keys for the
lengths of lists. Only the length is checked, so that tests can also write and read messages that a receiver refuses.
"""

from __future__ import annotations

import enum
import struct
from typing import Any, NamedTuple


class Field(NamedTuple):
    name: str
    kind: str  # u8 u16 u32 u64 f64 flag bytes zero text list, or a struct
    array: int = 0  # length of bytes and zeros
    each: str = ""  # if a list: kind of its items
    count: str = ""  # if a list: name of the field with its length
    bits_of: str = ""  # if a list: name of the field with one bit for each item
    counts: str = ""  # if a length: name of the list


# tools/write_wire writes the tables from src/machines/wire/wire.toml.
VERSION = 0xA4
CONTROL_VERSION = 0xA4
LANE_BYTES = 4
PROOF_LANES = 4
LISTED_ACK_LANES = 4
MAX_ACK_LIST_LANES = 60
MAX_LANES = 16362
LEVELS = 2
BITMAP_BITS = 32
TYPE_CONTROL = 16
WORKER_ALL = 0xFFFF
WAIT_MISMATCHED = 1
SCALE_ONE = 128
WINDOW_LOG2_MAX = 16
MAX_CONTROL_BYTES = 65504
REPORT_PART_BYTES = 1024
LEAST_QUESTION_BYTES = 288
MAX_REFUSAL_BYTES = 200
MAX_SOFTWARE_BYTES = 64
MAX_EDGES = 4
MAX_STATEMENTS = 4
MAX_STATEMENT_BYTES = 100
WHOLE_PERCENT = 100
WHOLE_PERMILLE = 1000
MAX_PATH_SWITCHES = 4
HEADER_BYTES = 56
CONTROL_PREFIX_BYTES = 4


class Type(enum.IntEnum):
    GRADIENT = 1
    ACK = 2
    NACK = 3
    PROBE = 4
    WAIT = 5
    FLUSH = 6
    READY = 7
    ACK_LIST = 8


class Flag(enum.IntFlag):
    RESEND = 1
    BYPASS = 2
    COLLISION = 4
    ECN = 8
    OVERFLOW = 16
    WHOLE = 32
    AUDIT = 64
    PLAIN = 128
    ALTERNATE_FREE = 256
    ONE_SENDER = 512
    ECN_DOWN = 1024
    PROOF = 2048
    LAST_RANK = 4096


class Dtype(enum.IntEnum):
    NONE = 0
    INT32 = 1
    FLOAT32 = 2
    INT16 = 3
    INT8 = 4


class Protocol(enum.IntEnum):
    ATP = 1
    SWITCHML = 2
    SWITCHML_FAITHFUL = 3
    SWITCHML_LOSSLESS = 4


class Refusal(enum.IntEnum):
    VERSION = 1
    MALFORMED = 2
    FULL = 3
    TOKEN = 4
    TERMS = 5
    PLACE = 6
    RESTARTED = 7
    PARENT = 8
    UNSUPPORTED = 9


class EdgeKind(enum.IntEnum):
    MEMBER = 1
    LEAF = 2
    PARENT = 3
    SERVER = 4
    PATH_MTU = 5


class Evidence(enum.IntEnum):
    SILENCE = 1
    LEFT = 2
    CLOSED = 3
    TOO_LONG = 4
    ONE_DIRECTION = 5
    PAUSED = 6


class Message(enum.IntEnum):
    JOIN = 16
    JOINED = 17
    REFUSED = 18
    LEAVE = 19
    HELLO = 20
    WELCOME = 21
    STATS = 22
    REPORT = 23
    RETRY = 24


HEADER = struct.Struct(">BBHBBBBIHHQIIIHBBIIII")
HEADER_FIELDS = [
    "version",
    "type",
    "flags",
    "hop",
    "lanes",
    "window_log2",
    "scale",
    "job",
    "channel",
    "worker",
    "token",
    "seq",
    "index",
    "argument",
    "peer",
    "sending",
    "part",
    "bitmap0",
    "mask0",
    "bitmap1",
    "mask1",
]
# Bits of header fields: name of the part, name of the field, shift, mask.
HEADER_PARTS: list[tuple[str, str, int, int]] = [
    ("lanes_form", "lanes", 4, 15),
    ("lanes_type", "lanes", 0, 15),
    ("part_packet", "part", 6, 3),
    ("part_rank", "part", 0, 63),
]
STRUCTS: dict[str, list[Field]] = {
    "endpoint": [
        Field("family", "u8"),
        Field("port", "u16"),
        Field("host", "bytes", array=16),
    ],
    "edge": [
        Field("kind", "u8"),
        Field("evidence", "u8"),
        Field("unit", "u8"),
        Field("member", "u8"),
        Field("silent_ms", "u32"),
        Field("detail", "u32"),
        Field("at", "endpoint"),
    ],
    "statement": [
        Field("count", "u16"),
        Field("unit", "u8"),
        Field("member", "u8"),
        Field("text", "text"),
    ],
    "pace": [
        Field("share_percent", "u8"),
        Field("last_percent", "u8"),
        Field("unit", "u8"),
        Field("member", "u8"),
        Field("whole_unit", "flag"),
        Field("waited_permille", "u16"),
    ],
    "unit": [
        Field("unit", "u8"),
        Field("direct", "flag"),
        Field("members", "u32"),
        Field("mask0", "u32"),
        Field("ranks", "list", each="u16", bits_of="members"),
    ],
    "terms": [
        Field("job", "u32"),
        Field("token", "u64"),
        Field("channel", "u16"),
        Field("lanes", "u16"),
        Field("window_log2", "u8"),
        Field("audit", "flag"),
        Field("aggregators", "u32"),
        Field("first_seq", "u32"),
        Field("mask1", "u32"),
        Field("scale", "f64"),
        Field("server", "endpoint"),
        Field("protocol", "u8"),
        Field("group", "endpoint"),
        Field("root", "endpoint"),
    ],
    "path_switch": [
        Field("id", "u64"),
        Field("aggregators", "u32"),
        Field("lanes", "u16"),
        Field("slots", "u32"),
    ],
    "join": [
        Field("nonce", "u64"),
        Field("terms", "terms"),
        Field("cookie", "u64"),
        Field("epoch", "u32"),
        Field("level", "u8"),
        Field("begun", "flag"),
        Field("receives_group", "flag"),
        Field("int32_path", "flag"),
        Field("unit_count", "u8", counts="units"),
        Field("units", "list", each="unit", count="unit_count"),
        Field("pace", "pace"),
        Field("edge_count", "u8", counts="edges"),
        Field("edges", "list", each="edge", count="edge_count"),
        Field("statement_count", "u8", counts="statements"),
        Field("statements", "list", each="statement", count="statement_count"),
    ],
    "joined": [
        Field("nonce", "u64"),
        Field("job", "u32"),
        Field("token", "u64"),
        Field("channel", "u16"),
        Field("epoch", "u32"),
        Field("number", "u32"),
        Field("group_number", "u64"),
        Field("ready", "flag"),
        Field("missing_units", "u32"),
        Field("missing_members", "u32"),
        Field("stream", "u8"),
        Field("int32_lanes", "flag"),
        Field("hold_ms", "u32"),
        Field("pace", "pace"),
        Field("edge_count", "u8", counts="edges"),
        Field("edges", "list", each="edge", count="edge_count"),
        Field("statement_count", "u8", counts="statements"),
        Field("statements", "list", each="statement", count="statement_count"),
    ],
    "refused": [
        Field("nonce", "u64"),
        Field("job", "u32"),
        Field("token", "u64"),
        Field("channel", "u16"),
        Field("reason", "u8"),
        Field("text", "text"),
    ],
    "leave": [
        Field("nonce", "u64"),
        Field("job", "u32"),
        Field("token", "u64"),
        Field("channel", "u16"),
        Field("epoch", "u32"),
        Field("unit", "u8"),
        Field("member", "u8"),
        Field("edge_count", "u8", counts="edges"),
        Field("edges", "list", each="edge", count="edge_count"),
    ],
    "hello": [
        Field("nonce", "u64"),
    ],
    "welcome": [
        Field("nonce", "u64"),
        Field("received_bytes", "u32"),
        Field("switch_count", "u8", counts="path"),
        Field("path", "list", each="path_switch", count="switch_count"),
        Field("software", "text"),
    ],
    "stats": [
        Field("nonce", "u64"),
        Field("snapshot", "u32"),
        Field("part", "u16"),
    ],
    "report": [
        Field("nonce", "u64"),
        Field("snapshot", "u32"),
        Field("part", "u16"),
        Field("parts", "u16"),
        Field("text", "text"),
    ],
    "retry": [
        Field("nonce", "u64"),
        Field("job", "u32"),
        Field("token", "u64"),
        Field("channel", "u16"),
        Field("cookie", "u64"),
    ],
}
# Messages that are as long as the longest of another type.
LEAST_BYTES: dict[str, int] = {
    "stats": 1046,
}
# End of the written part.

CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f64": "d", "flag": "?"}


def read_header(data: bytes) -> dict[str, int]:
    fields = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data)))
    for name, field, shift, mask in HEADER_PARTS:
        fields[name] = fields[field] >> shift & mask
    return fields


def write_header(**fields: int) -> bytes:
    """Returns the bytes of a header. Omitted fields are 0, but the version is VERSION."""
    values = {**dict.fromkeys(HEADER_FIELDS, 0), "version": VERSION}
    for name, field, shift, mask in HEADER_PARTS:
        if name in fields:
            values[field] |= (fields.pop(name) & mask) << shift
    unknown = fields.keys() - values.keys()
    if unknown:
        raise KeyError(f"the header has no field {sorted(unknown)[0]}")
    return HEADER.pack(*{**values, **fields}.values())


class Cut(ValueError):
    """Raised if a message ends before its last field."""


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if len(self.data) - self.at < size:
            raise Cut(f"{size} bytes are missing at {self.at}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, kind: str) -> Any:
        code = struct.Struct(">" + CODES[kind])
        return code.unpack(self.take(code.size))[0]

    def value(self, field: Field, before: dict[str, Any]) -> Any:
        if field.kind == "list":
            count = before[field.count] if field.count else before[field.bits_of].bit_count()
            return [self.item(field.each) for _ in range(count)]
        if field.kind == "text":
            return self.take(self.number("u16")).decode()
        if field.kind == "bytes" and field.count:
            return self.take(before[field.count])
        if field.kind in ("bytes", "zero"):
            return self.take(field.array)
        return self.item(field.kind)

    def item(self, kind: str) -> Any:
        return self.struct(kind) if kind in STRUCTS else self.number(kind)

    def struct(self, name: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field in STRUCTS[name]:
            values[field.name] = self.value(field, values)
        return {field.name: values[field.name] for field in STRUCTS[name] if field.kind != "zero" and not field.counts}


def read_message(data: bytes) -> tuple[Message, dict[str, Any]]:
    """Returns the type and the fields. Raises ValueError for another version, another type or a truncated message."""
    if data[:1] != bytes([CONTROL_VERSION]) or len(data) < CONTROL_PREFIX_BYTES:
        raise ValueError("no control message of this version")
    reader = Reader(data)
    reader.take(CONTROL_PREFIX_BYTES)
    kind = Message(data[1])
    return kind, reader.struct(kind.name.lower())


def written(field: Field, values: dict[str, Any]) -> bytes:
    value = values.get(field.name)
    if field.counts:
        return struct.pack(">" + CODES[field.kind], len(values.get(field.counts, ())))
    if field.kind == "list":
        return b"".join(written_item(field.each, item) for item in value or ())
    if field.kind == "text":
        text = (value or "").encode()
        return struct.pack(">H", len(text)) + text
    if field.kind in ("bytes", "zero"):
        return (value or b"").ljust(field.array, b"\0")
    return written_item(field.kind, value)


def written_item(kind: str, value: Any) -> bytes:
    if kind in STRUCTS:
        return b"".join(written(field, value or {}) for field in STRUCTS[kind])
    return struct.pack(">" + CODES[kind], value or 0)


def write_message(kind: Message, padded_bytes: int = 0, **values: Any) -> bytes:
    """Returns the bytes of a message. Omitted fields are 0, empty or without items."""
    name = kind.name.lower()
    unknown = values.keys() - {field.name for field in STRUCTS[name]}
    if unknown:
        raise KeyError(f"{kind.name} has no field {sorted(unknown)[0]}")
    message = bytes([CONTROL_VERSION, kind]).ljust(CONTROL_PREFIX_BYTES, b"\0") + written_item(name, values)
    return message.ljust(max(padded_bytes, LEAST_BYTES.get(name, 0)), b"\0")
