# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/spec/{packet,joining,formation}.md."""

from __future__ import annotations

from wire.definition import Field, Struct, Wire
from wire.text import joined, picture, sentence
from written import on_page, page_table


def header(wire: Wire) -> str:
    rows = []
    for each in wire.packet.fields:
        name = "zero" if each.is_zero else each.shown
        rows.append([str(each.offset), str(each.size), name, joined(each.writers), wire.page_of(each)])
        for part in each.parts:
            bits = f"bits {part.bits[0]}–{part.bits[1]}"
            rows.append(
                [str(each.offset), bits, f"{name}: {part.name}", joined(each.writers), wire.filled(part.meaning)]
            )
    lines = ["```", *picture(wire.packet, "lanes ..."), "```", ""]
    return on_page(lines + page_table(["offset", "bytes", "field", "written by", "meaning"], rows))


def types(wire: Wire) -> str:
    rows = [[f"{value.number} {value.name.upper()}", value.direction, value.lanes, wire.page_of(value)]
            for value in wire.enums["type"].values]  # fmt: skip
    return on_page(page_table(["type", "direction", "lanes", "meaning"], rows))


def flags(wire: Wire) -> str:
    rows = [[value.name.upper(), str(value.number), wire.page_of(value)] for value in wire.enums["flag"].values]
    return on_page(page_table(["flag", "bit", "meaning"], rows))


def checks(wire: Wire) -> str:
    rows = [[str(number), check.name, wire.page_of(check)] for number, check in enumerate(wire.checks, 1)]
    return on_page(page_table(["#", "counter", "the packet fails if"], rows))


def size_of(wire: Wire, each: Field) -> str:
    if each.type == "text":
        return f"2 + at most {wire.number(each.most or 0):,}"
    if each.type == "list" and each.each in ("u8", "u16", "u32", "u64"):
        return f"{int(each.each[1:]) // 8} each"
    return str(each.size) if each.size is not None else "variable"


def limits_of(wire: Wire, each: Field) -> str:
    """What a receiver requires of one field. An enumeration lists its values itself."""
    if each.type == "list" and each.count:
        least = f"{each.least} to " if each.least else "at most "
        return f"; {least}{wire.number(each.most or 0):,}"
    least, most = wire.limits(each) if each.is_integer and not each.enum else (None, None)
    if most is not None:
        return f"; {least or 0} to {most:,}"
    return "; not 0" if least else ""


def field_table(wire: Wire, item: Struct) -> list[str]:
    rows = []
    for each in item.fields:
        kind = {"flag": "flag: ", "text": "text: ", "f64": ""}.get(each.type, "")
        meaning = kind + wire.page_of(each)
        if each.type in wire.structs:
            meaning += f" ({each.type})"
        meaning += limits_of(wire, each)
        offset = "" if each.offset is None else str(each.offset)
        rows.append([offset, size_of(wire, each), "zero" if each.is_zero else each.name, meaning])
    return page_table(["offset", "bytes", "field", "meaning"], rows)


def padding(wire: Wire, item: Struct) -> str:
    if item.as_long_as:
        least = wire.longest(wire.messages[item.as_long_as])
        return f" Padding follows: at least {least:,} bytes in all."
    return " Padding follows." if item.padded else ""


def described(wire: Wire, items: list[Struct], structs: list[Struct]) -> list[str]:
    lines: list[str] = []
    for item in items:
        lines += ["", f"**{item.upper}**.{padding(wire, item)}".rstrip(), "", *field_table(wire, item)]
    for item in structs:
        lines += ["", f"{sentence(item.title)}:", "", *field_table(wire, item)]
    return lines


def messages(wire: Wire) -> str:
    rows = [[f"{item.number} {item.upper}", item.sender, item.meaning] for item in wire.messages.values()]
    lines = [*page_table(["type", "sent by", "meaning"], rows), "", "Each message begins with:", ""]
    lines += field_table(wire, wire.prefix)
    structs = [item for item in wire.structs.values() if item.file != "formation"]
    return on_page(lines + described(wire, list(wire.messages.values()), structs))


def store_messages(wire: Wire) -> str:
    rows = [[f"{item.number} {item.upper}", item.sender, item.meaning] for item in wire.store.values()]
    structs = [item for item in wire.structs.values() if item.file == "formation"]
    return on_page(
        page_table(["type", "left by", "meaning"], rows) + described(wire, list(wire.store.values()), structs)
    )


def reasons(wire: Wire) -> str:
    rows = [
        [f"{value.number} {value.name}", wire.page_of(value), value.again] for value in wire.enums["refusal"].values
    ]
    return on_page(page_table(["reason", "meaning", "another attempt"], rows))
