# SPDX-License-Identifier: Apache-2.0
"""The tables of the readers in Python (tests/support/wire_format.py) and in Lua (tools/atp.lua, for Wireshark)."""

from __future__ import annotations

from wire.definition import SIZES, Enum, Field, Struct, Value, Wire

STRUCT_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "flag": "B"}

# --------------------------------------------------------------------------------------------------------------- Python


def python_enum(name: str, enum: Enum) -> list[str]:
    lines = ["", "", f"class {name}(enum.{'IntFlag' if enum.bits else 'IntEnum'}):"]
    return lines + [
        f"    {value.name.upper()} = {1 << value.number if enum.bits else value.number}" for value in enum.values
    ]


def python_field(each: Field) -> str:
    more = [f'{key}="{getattr(each, key)}"' for key in ("each", "count", "bits_of", "counts") if getattr(each, key)]
    more += [f"array={each.array}"] if each.array else []
    kind = "zero" if each.is_zero else "bytes" if each.array else each.type
    return f"Field({', '.join([quoted(each.name), quoted(kind), *more])}),"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def python_struct(item: Struct) -> list[str]:
    return [f'    "{item.name}": [', *(f"        {python_field(each)}" for each in item.fields), "    ],"]


def python_tables(wire: Wire) -> str:
    lines = []
    for constant in wire.constants.values():
        lines.append(f"{constant.name.upper()} = {constant.text()}")
    lines += [f"HEADER_BYTES = {wire.header_bytes}", f"CONTROL_PREFIX_BYTES = {wire.prefix_bytes}"]
    for enum in wire.enums.values():
        lines += python_enum("".join(word.capitalize() for word in enum.name.split("_")), enum)
    lines += ["", "", "class Message(enum.IntEnum):"]
    lines += [f"    {message.upper} = {message.number}" for message in wire.messages.values()]
    code = "".join(f"{each.array}x" if each.is_zero else STRUCT_CODES[each.type] for each in wire.packet.fields)
    lines += ["", "", f'HEADER = struct.Struct(">{code}")', "HEADER_FIELDS = ["]
    lines += [f"    {quoted(each.name)}," for each in wire.packet.fields if not each.is_zero]
    lines += ["]", "# Bits of header fields: name of the part, name of the field, shift, mask."]
    parts = [f'("{each.name}_{part.name}", "{each.name}", {part.shift}, {part.mask}),'
             for each in wire.packet.fields for part in each.parts]  # fmt: skip
    kind = "HEADER_PARTS: list[tuple[str, str, int, int]]"
    lines += [f"{kind} = [", *(f"    {part}" for part in parts), "]"] if parts else [f"{kind} = []"]
    lines += ["STRUCTS: dict[str, list[Field]] = {"]
    for item in [*wire.structs.values(), *wire.messages.values()]:
        lines += python_struct(item)
    lines += ["}", "# Messages that are as long as the longest of another type."]
    padded = [f'    "{item.name}": {wire.longest(wire.messages[item.as_long_as])},'
              for item in wire.messages.values() if item.as_long_as]  # fmt: skip
    lines += ["LEAST_BYTES: dict[str, int] = {", *padded, "}"] if padded else ["LEAST_BYTES: dict[str, int] = {}"]
    return "\n".join([*lines, ""])


# ------------------------------------------------------------------------------------------------------------------ Lua


def lua_value(value: Value, bits: bool) -> str:
    number = 1 << value.number if bits else value.number
    return f"{{ number = {number}, name = {quoted(value.name.upper())}, text = {quoted(value.meaning)} }},"


def lua_field(wire: Wire, each: Field) -> str:
    kind = "zero" if each.is_zero else "bytes" if each.array else each.type
    cells = [f"name = {quoted(each.name)}", f"kind = {quoted(kind)}", f"text = {quoted(each.meaning)}"]
    if each.size is not None and (each.type in SIZES or each.array):
        cells.append(f"size = {each.size}")
    cells += ["hex = true"] if each.hex else []
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


def lua_tables(wire: Wire) -> str:
    lines = [f"local VERSION = 0x{wire.number('version'):X}",
             f"local CONTROL_VERSION = 0x{wire.number('control_version'):X}",
             f"local HEADER_BYTES = {wire.header_bytes}",
             f"local LANE_BYTES = {wire.number('lane_bytes')}",
             f"local PREFIX_BYTES = {wire.prefix_bytes}", "", "local ENUMS = {"]  # fmt: skip
    for enum in wire.enums.values():
        lines += [
            f"    {enum.name} = {{",
            *(f"        {lua_value(value, enum.bits)}" for value in enum.values),
            "    },",
        ]
    lines += ["}", "", "local PACKET = {", *(f"    {lua_field(wire, each)}" for each in wire.packet.fields), "}", ""]
    lines += ["local PREFIX = {", *(f"    {lua_field(wire, each)}" for each in wire.prefix.fields), "}", ""]
    lines += ["local STRUCTS = {"]
    for item in wire.structs.values():
        lines += [f"    {item.name} = {{", *(f"        {lua_field(wire, each)}" for each in item.fields), "    },"]
    lines += ["}", "", "local MESSAGES = {"]
    for item in wire.messages.values():
        lines += [f"    [{item.number}] = {{ name = {quoted(item.name)}, text = {quoted(item.meaning)}, fields = {{"]
        lines += [*(f"        {lua_field(wire, each)}" for each in item.fields), "    } },"]
    return "\n".join([*lines, "}", ""])
