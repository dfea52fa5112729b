# SPDX-License-Identifier: Apache-2.0
"""The definition of the wire, src/machines/wire/wire.toml, as objects. read() refuses what a writer could not follow.

Keys of the file are the names of the attributes below. `struct.NAME`, `message.NAME`, `store.NAME`, `packet` and `prefix`
are a Struct; `enum.NAME` is an Enum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from written import Bad, built, toml_of, unique

INTEGERS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "flag": 1}
SIZES = {**INTEGERS, "f64": 8}
UDP_PAYLOAD_BYTES = 65_507  # over IPv4
ARRAY = re.compile(r"(bytes|zero)\[(\d+)\]")


@dataclass
class Constant:
    name: str
    value: int
    meaning: str
    scope: str = "packet"  # packet: a macro of format.h; control: a constant of control.h
    hex: bool = False

    def text(self) -> str:
        return f"0x{self.value:X}" if self.hex else str(self.value)


@dataclass
class Value:
    name: str
    number: int  # of a flag: its bit
    meaning: str
    page: str = ""
    direction: str = ""  # columns of the tables of types and of refusals
    lanes: str = ""
    again: str = ""


@dataclass
class Enum:
    name: str
    meaning: str
    values: list[Value]
    c: str = ""  # name in C, of enumerations of packets
    prefix: str = ""  # of its enumerators in C
    cpp: str = ""  # name in C++, of enumerations of control messages
    file: str = ""
    bits: bool = False  # flags: each value is one bit

    @property
    def first(self) -> int:
        return min(value.number for value in self.values)

    @property
    def last(self) -> int:
        return max(value.number for value in self.values)

    @property
    def all_bits(self) -> int:
        return sum(1 << value.number for value in self.values)

    def macro(self, value: Value) -> str:
        return self.prefix + value.name.upper()


@dataclass
class Part:
    """Bits of a field, both included, 0 the lowest."""

    name: str
    bits: list[int]
    meaning: str

    @property
    def shift(self) -> int:
        return self.bits[1]

    @property
    def mask(self) -> int:
        return (1 << (self.bits[0] - self.bits[1] + 1)) - 1


@dataclass
class Field:
    name: str
    type: str
    meaning: str
    label: str = ""  # in diagrams and as the name of the offset [name]
    page: str = ""
    writers: list[str] = field(default_factory=list)
    hex: bool = False  # tools print it so
    least: int | str | None = None
    most: int | str | None = None
    below: int | str | None = None
    one_of: list[int] = field(default_factory=list)
    enum: str = ""
    flags: str = ""
    fallback: str = ""  # enumerator of a default-initialised struct
    rule: str = ""
    parts: list[Part] = field(default_factory=list)
    counts: str = ""  # the list whose length this is: no member of a struct
    each: str = ""
    count: str = ""
    bits_of: str = ""
    later: bool = False
    offset: int | None = field(default=None, init=False)  # None behind a field of variable length
    size: int | None = field(default=None, init=False)  # None: variable

    @property
    def shown(self) -> str:
        return self.label or self.name

    @property
    def array(self) -> int:
        match = ARRAY.fullmatch(self.type)
        return int(match[2]) if match else 0

    @property
    def is_zero(self) -> bool:
        return self.type.startswith("zero[")

    @property
    def is_integer(self) -> bool:
        return self.type in INTEGERS


@dataclass
class Struct:
    name: str
    fields: list[Field]
    meaning: str = ""
    c: str = ""
    cpp: str = ""
    cpp_order: list[str] = field(default_factory=list)  # of members in C++, where it is not that of the wire
    cpp_member: str = ""  # one member function of the struct in C++
    file: str = ""  # join, query, formation: the source that holds it
    title: str = ""
    rule: str = ""  # a predicate over the whole struct
    number: int = 0  # of a message: its type
    sender: str = ""
    padded: bool = False  # the caller chooses a length
    as_long_as: str = ""  # padded to the longest message of that name
    size: int | None = field(default=None, init=False)

    @property
    def members(self) -> list[Field]:
        """The fields that are a value of their own, not the counts of lists and not zeros, in the order of C++."""
        found = [each for each in self.fields if not each.counts and not each.is_zero]
        return sorted(found, key=lambda each: self.cpp_order.index(each.name)) if self.cpp_order else found

    def field(self, name: str) -> Field:
        return next(each for each in self.fields if each.name == name)

    @property
    def upper(self) -> str:
        return self.name.upper()


@dataclass
class Check:
    name: str
    meaning: str
    page: str
    field: str = ""
    rule: str = ""


@dataclass
class Wire:
    constants: dict[str, Constant]
    enums: dict[str, Enum]
    packet: Struct
    checks: list[Check]
    prefix: Struct
    structs: dict[str, Struct]
    messages: dict[str, Struct]
    store: dict[str, Struct]  # messages that ranks leave in a store

    def used_by(self, items: list[Struct]) -> list[Struct]:
        """The structs that fields of `items` hold, in the order of the file."""
        names = {name for item in items for each in item.fields for name in (each.type, each.each)}
        return [struct for name, struct in self.structs.items() if name in names]

    @property
    def header_bytes(self) -> int:
        return self.packet.size or 0

    @property
    def max_packet_bytes(self) -> int:
        return self.header_bytes + self.number("max_lanes") * self.number("lane_bytes")

    @property
    def prefix_bytes(self) -> int:
        return self.prefix.size or 0

    def number(self, limit: int | str) -> int:
        return limit if isinstance(limit, int) else self.constants[limit].value

    def filled(self, text: str) -> str:
        """`{levels}` replaced by the value of the constant."""

        def value(match: re.Match) -> str:
            if match[1] in ("header_bytes", "max_packet_bytes"):
                return f"{getattr(self, match[1]):,}"
            if match[1] not in self.constants:
                raise Bad(f"{match[0]} in {text!r} is no constant")
            constant = self.constants[match[1]]
            return constant.text() if constant.hex else f"{constant.value:,}"

        return re.sub(r"\{(\w+)\}", value, text)

    def page_of(self, item: Field | Value | Check) -> str:
        return self.filled(item.page or item.meaning)

    def limits(self, each: Field) -> tuple[int | None, int | None]:
        """Least and most of an integer; None where its type is the limit."""
        if each.enum:
            return self.enums[each.enum].first or None, self.enums[each.enum].last
        if each.flags:
            return None, self.enums[each.flags].all_bits
        most = self.number(each.below) - 1 if each.below is not None else each.most
        least = None if each.least is None else self.number(each.least)
        return least, None if most is None else self.number(most)

    def longest(self, message: Struct) -> int:
        return self.prefix_bytes + sum(self.longest_field(each) for each in message.fields)

    def longest_field(self, each: Field) -> int:
        if each.size is not None:
            return each.size
        if each.type == "text":
            return 2 + self.number(each.most or 0)
        if each.type == "bytes":
            return self.number(each.most or 0)
        if each.type != "list":
            return sum(self.longest_field(inner) for inner in self.structs[each.type].fields)
        most = 32 if each.bits_of else self.number(each.most or 0)
        if each.each in SIZES:
            return most * SIZES[each.each]
        return most * sum(self.longest_field(inner) for inner in self.structs[each.each].fields)


# --------------------------------------------------------------------------------------------------------------- Reading


def read_enum(name: str, table: dict) -> Enum:
    where = f"enum.{name}"
    values = [built(Value, f"{where}.values", value) for value in table.pop("values", [])]
    result = built(Enum, where, {"name": name, "values": values, **table})
    unique(values, where)
    unique(values, where, "number")
    if not values:
        raise Bad(f"{where} has no values")
    return result


def read_struct(where: str, name: str, table: dict) -> Struct:
    fields = []
    for entry in table.pop("field", []):
        label = f"{where}.{entry.get('name', '?')}"
        parts = [built(Part, label, part) for part in entry.pop("parts", [])]
        fields.append(built(Field, label, {**entry, "parts": parts}))
    unique(fields, where)
    return built(Struct, where, {"name": name, "fields": fields, **table})


def check_parts(where: str, each: Field) -> None:
    if not each.parts:
        return
    bits = [bit for part in each.parts for bit in range(part.bits[1], part.bits[0] + 1)]
    if sorted(bits) != list(range(8 * INTEGERS.get(each.type, 0))):
        raise Bad(f"{where}: its parts do not cover each bit of {each.type} once")


def check_list(wire: Wire, where: str, struct: Struct, at: int) -> None:
    each = struct.fields[at]
    if each.type == "list" and each.each not in wire.structs and each.each not in INTEGERS:
        raise Bad(f"{where}: {each.each or 'each'} is neither a struct nor an integer")
    if bool(each.count) is bool(each.bits_of):
        raise Bad(f"{where} needs either count or bits_of")
    counter = next((other for other in struct.fields[:at] if other.name == (each.count or each.bits_of)), None)
    if counter is None or not counter.is_integer or (each.count and counter.counts != each.name):
        raise Bad(f"{where}: {each.count or each.bits_of} is no integer in front of it that counts it")
    if each.count and each.most is None:
        raise Bad(f"{where} has no bound: add most")


def check_field(wire: Wire, where: str, struct: Struct, at: int) -> None:
    each = struct.fields[at]
    known = each.type in SIZES or each.array or each.type in (*wire.structs, "text", "bytes", "list")
    if not known:
        raise Bad(f"{where} has the unknown type {each.type}")
    for limit in (each.least, each.most, each.below):
        if isinstance(limit, str) and limit not in wire.constants:
            raise Bad(f"{where}: {limit} is no constant")
    for name in (each.enum, each.flags):
        if name and name not in wire.enums:
            raise Bad(f"{where}: there is no enum.{name}")
    names = list(wire.structs)
    for name in (each.type, each.each):
        if name in names and struct.name in names and names.index(name) >= names.index(struct.name):
            raise Bad(f"{where}: struct.{name} must come before struct.{struct.name}")
    if each.later and (each.type != "text" or each is not struct.fields[-1]):
        raise Bad(f"{where} is later, but no text at the end")
    if each.type == "text" and each.most is None:
        raise Bad(f"{where} has no bound: add most")
    if each.type in ("list", "bytes"):
        check_list(wire, where, struct, at)
    check_parts(where, each)


def place(wire: Wire, struct: Struct, begin: int) -> None:
    """Computes offsets, from the begin of the datagram or, in a struct, of the struct."""
    at: int | None = begin
    for each in struct.fields:
        each.offset = at
        each.size = SIZES.get(each.type, each.array or None)
        if each.type in wire.structs:
            each.size = wire.structs[each.type].size
        at = None if at is None or each.size is None else at + each.size
    struct.size = None if at is None else at - begin


def check_packet(wire: Wire) -> None:
    for each in wire.packet.fields:
        if each.size is None or each.offset is None or not (each.is_integer or each.is_zero):
            raise Bad(f"packet.{each.name}: a header has integers and zeros alone")
        if each.is_integer and each.offset % each.size:
            raise Bad(f"packet.{each.name} is at {each.offset}, no multiple of its {each.size} bytes: move or pad it")
        if not each.writers:
            raise Bad(f"packet.{each.name} has no writers")
    if wire.header_bytes % 8:
        raise Bad(f"packet has {wire.header_bytes} bytes, no multiple of 8: add a field of type zero[N]")
    if wire.max_packet_bytes > UDP_PAYLOAD_BYTES:
        raise Bad(
            f"a packet of max_lanes has {wire.max_packet_bytes} bytes, more than {UDP_PAYLOAD_BYTES}: lower max_lanes"
        )
    for check in wire.checks:
        if check.field and check.field not in [each.name for each in wire.packet.fields]:
            raise Bad(f"check {check.name}: the packet has no field {check.field}")


def check_messages(wire: Wire) -> None:
    unique(list(wire.messages.values()), "message", "number")
    unique(list(wire.store.values()), "store", "number")
    for message in wire.messages.values():
        if not wire.number("type_control") <= message.number <= 255:
            raise Bad(f"message.{message.name} has the number {message.number}, not type_control to 255")
        if message.as_long_as and message.as_long_as not in wire.messages:
            raise Bad(f"message.{message.name}: there is no message {message.as_long_as}")
    for message in [*wire.messages.values(), *wire.store.values()]:
        if wire.longest(message) > wire.number("max_control_bytes"):
            raise Bad(f"message {message.name} may exceed max_control_bytes")


def read(path: Path) -> Wire:
    data = toml_of(path)
    unknown = data.keys() - {"constant", "enum", "packet", "prefix", "struct", "message", "store"}
    if unknown:
        raise Bad(f"{path}: unknown table {sorted(unknown)[0]}")
    constants = [built(Constant, "constant", entry) for entry in data.get("constant", [])]
    unique(constants, "constant")
    packet = data.get("packet", {})
    checks = [built(Check, "packet.check", entry) for entry in packet.pop("check", [])]
    wire = Wire(
        constants={constant.name: constant for constant in constants},
        enums={name: read_enum(name, table) for name, table in data.get("enum", {}).items()},
        packet=read_struct("packet", "packet", packet),
        checks=checks,
        prefix=read_struct("prefix", "prefix", data.get("prefix", {})),
        structs={name: read_struct(f"struct.{name}", name, table) for name, table in data.get("struct", {}).items()},
        messages={name: read_struct(f"message.{name}", name, table) for name, table in data.get("message", {}).items()},
        store={name: read_struct(f"store.{name}", name, table) for name, table in data.get("store", {}).items()},
    )
    for struct in [wire.packet, wire.prefix, *wire.structs.values(), *wire.messages.values(), *wire.store.values()]:
        for at, each in enumerate(struct.fields):
            check_field(wire, f"{struct.name}.{each.name}", struct, at)
    for struct in [*wire.structs.values(), *wire.messages.values(), *wire.store.values()]:
        members = {each.name for each in struct.fields if not each.counts and not each.is_zero}
        if struct.cpp_order and members != set(struct.cpp_order):
            raise Bad(f"{struct.name}: cpp_order does not name each member once")
    for struct in (wire.packet, wire.prefix, *wire.structs.values()):
        place(wire, struct, 0)
    for message in [*wire.messages.values(), *wire.store.values()]:
        place(wire, message, wire.prefix_bytes)
    check_packet(wire)
    check_messages(wire)
    return wire
