# SPDX-License-Identifier: Apache-2.0
"""The tables of the reader in Lua (tools/atp.lua, for Wireshark)."""

from __future__ import annotations

from wire.definition import SIZES, Field, Value, Wire


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def value_row(value: Value, bits: bool) -> str:
    number = 1 << value.number if bits else value.number
    return f"{{ number = {number}, name = {quoted(value.name.upper())}, text = {quoted(value.meaning)} }},"


def field_row(wire: Wire, each: Field) -> str:
    kind = "zero" if each.is_zero else "bytes" if each.array else each.type
    cells = [f"name = {quoted(each.name)}", f"kind = {quoted(kind)}", f"text = {quoted(each.meaning)}"]
    if each.size is not None and (each.type in SIZES or each.array):
        cells.append(f"size = {each.size}")
    cells += ["hex = true"] if each.hex else []
    cells += ["later = true"] if each.later else []
    cells += [f"{key} = {quoted(getattr(each, key))}"
              for key in ("enum", "flags", "each", "count", "bits_of", "counts") if getattr(each, key)]  # fmt: skip
    if each.is_integer:
        least, most = wire.limits(each)
        cells += [f"least = {least}"] if least is not None else []
        cells += [f"most = {most}"] if most is not None else []
    if each.parts:
        parts = [f"{{ name = {quoted(part.name)}, mask = {part.mask << part.shift}, text = {quoted(part.meaning)} }}"
                 for part in each.parts]  # fmt: skip
        cells.append(f"parts = {{ {', '.join(parts)} }}")
    return f"{{ {', '.join(cells)} }},"


def tables(wire: Wire) -> str:
    lines = [f"local VERSION = 0x{wire.number('version'):X}",
             f"local CONTROL_VERSION = 0x{wire.number('control_version'):X}",
             f"local HEADER_BYTES = {wire.header_bytes}",
             f"local LANE_BYTES = {wire.number('lane_bytes')}",
             f"local PREFIX_BYTES = {wire.prefix_bytes}", "", "local ENUMS = {"]  # fmt: skip
    for enum in wire.enums.values():
        lines += [
            f"    {enum.name} = {{",
            *(f"        {value_row(value, enum.bits)}" for value in enum.values),
            "    },",
        ]
    lines += ["}", "", "local PACKET = {", *(f"    {field_row(wire, each)}" for each in wire.packet.fields), "}", ""]
    lines += ["local PREFIX = {", *(f"    {field_row(wire, each)}" for each in wire.prefix.fields), "}", ""]
    lines += ["local STRUCTS = {"]
    for item in wire.structs.values():
        if item.file == "formation":  # no datagram holds it
            continue
        lines += [f"    {item.name} = {{", *(f"        {field_row(wire, each)}" for each in item.fields), "    },"]
    lines += ["}", "", "local MESSAGES = {"]
    for item in wire.messages.values():
        lines += [f"    [{item.number}] = {{ name = {quoted(item.name)}, text = {quoted(item.meaning)}, fields = {{"]
        lines += [*(f"        {field_row(wire, each)}" for each in item.fields), "    } },"]
    return "\n".join([*lines, "}", ""])
