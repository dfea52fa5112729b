# SPDX-License-Identifier: Apache-2.0
"""Packets and control messages as values of Python, for tests. The layouts come from src/machines/wire/wire.toml: each
constant and enumeration of that file has its name here, such as VERSION, Type and EdgeKind.

A message is a dictionary from names of fields to values, which can be dictionaries and lists. It has no keys for the
lengths of lists. Only the length is checked, so that tests can also write and read messages that a receiver refuses.
"""

from __future__ import annotations

import codecs
import enum
import re
import struct
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

from wire.definition import Enum, Field, read  # noqa: E402

WIRE = read(ROOT / "src" / "machines" / "wire" / "wire.toml")


def enumeration(name: str, values: Enum) -> type:
    kind = enum.IntFlag if values.bits else enum.IntEnum
    numbers = {each.name.upper(): 1 << each.number if values.bits else each.number for each in values.values}
    return kind("".join(word.capitalize() for word in name.split("_")), numbers)


globals().update({name.upper(): constant.value for name, constant in WIRE.constants.items()})
globals().update({kind.__name__: kind for kind in (enumeration(*pair) for pair in WIRE.enums.items())})
VERSION, CONTROL_VERSION = WIRE.number("version"), WIRE.number("control_version")
HEADER_BYTES, CONTROL_PREFIX_BYTES = WIRE.header_bytes, WIRE.prefix_bytes
Message = enum.IntEnum("Message", {message.upper: message.number for message in WIRE.messages.values()})
StoreMessage = enum.IntEnum("StoreMessage", {message.upper: message.number for message in WIRE.store.values()})
STRUCTS = {**WIRE.structs, **WIRE.messages, **WIRE.store}

CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f64": "d", "flag": "?"}
HEADER_FIELDS = [each.name for each in WIRE.packet.fields if not each.is_zero]
HEADER = struct.Struct(
    ">" + "".join(f"{each.array}x" if each.is_zero else CODES[each.type] for each in WIRE.packet.fields)
)
# Bits of header fields: name of the part, name of the field, shift, mask.
HEADER_PARTS = [(f"{each.name}_{part.name}", each.name, part.shift, part.mask)
                for each in WIRE.packet.fields for part in each.parts]  # fmt: skip


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


CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]")


def printable(data: bytes) -> str:
    """Returns the text with a `?` for each byte of a control character, and for each byte that is no UTF-8."""
    codecs.register_error("atp", lambda error: ("?" * (error.end - error.start), error.end))
    text = data.decode(errors="atp")
    return CONTROL.sub(lambda found: "?" * len(found[0].encode()), text)


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
        if field.type == "list":
            count = before[field.count] if field.count else before[field.bits_of].bit_count()
            return [self.item(field.each) for _ in range(count)]
        if field.later and self.at == len(self.data):
            return ""
        if field.type == "text":
            return printable(self.take(self.number("u16")))
        if field.type == "bytes":
            return self.take(before[field.count])
        return self.take(field.array) if field.array else self.item(field.type)

    def item(self, kind: str) -> Any:
        return self.struct(kind) if kind in STRUCTS else self.number(kind)

    def struct(self, name: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field in STRUCTS[name].fields:
            values[field.name] = self.value(field, values)
        return {field.name: values[field.name] for field in STRUCTS[name].members}


def read_message(data: bytes) -> tuple[Message | StoreMessage, dict[str, Any]]:
    """Returns the type and the fields. Raises ValueError for another version, another type or a truncated message."""
    if data[:1] != bytes([CONTROL_VERSION]) or len(data) < CONTROL_PREFIX_BYTES:
        raise ValueError("no control message of this version")
    code_at = int.from_bytes(data[2:CONTROL_PREFIX_BYTES], "big")
    reader = Reader(data[:code_at] if CONTROL_PREFIX_BYTES <= code_at <= len(data) else data)
    reader.take(CONTROL_PREFIX_BYTES)
    kind = Message(data[1]) if data[1] >= WIRE.number("type_control") else StoreMessage(data[1])
    return kind, reader.struct(kind.name.lower())


def written(field: Field, values: dict[str, Any]) -> bytes:
    value = values.get(field.name)
    if field.counts:
        return struct.pack(">" + CODES[field.type], len(values.get(field.counts, ())))
    if field.type == "list":
        return b"".join(written_item(field.each, item) for item in value or ())
    if field.type == "text":
        text = (value or "").encode()
        return struct.pack(">H", len(text)) + text
    if field.array or field.type == "bytes":
        return (value or b"").ljust(field.array, b"\0")
    return written_item(field.type, value)


def written_item(kind: str, value: Any) -> bytes:
    if kind in STRUCTS:
        return b"".join(written(field, value or {}) for field in STRUCTS[kind].fields)
    return struct.pack(">" + CODES[kind], value or 0)


def write_message(kind: Message | StoreMessage, padded_bytes: int = 0, **values: Any) -> bytes:
    """Returns the bytes of a message. Omitted fields are 0, empty or without items."""
    name = kind.name.lower()
    unknown = values.keys() - {field.name for field in STRUCTS[name].fields}
    if unknown:
        raise KeyError(f"{kind.name} has no field {sorted(unknown)[0]}")
    message = bytes([CONTROL_VERSION, kind]).ljust(CONTROL_PREFIX_BYTES, b"\0") + written_item(name, values)
    as_long_as = STRUCTS[name].as_long_as
    least = WIRE.longest(WIRE.messages[as_long_as]) if as_long_as else 0
    return message.ljust(max(padded_bytes, least), b"\0")
