# SPDX-License-Identifier: Apache-2.0
"""Messages in C++: their structs (join_messages.h, query_messages.h, formation_messages.h), encoding and decoding (the
.cc files)."""

from __future__ import annotations

from collections.abc import Callable

from wire.definition import INTEGERS, Constant, Enum, Field, Struct, Wire
from wire.text import cpp_comment, members

CPP_TYPES = {
    "u8": "std::uint8_t", "u16": "std::uint16_t", "u32": "std::uint32_t", "u64": "std::uint64_t",
    "f64": "double", "flag": "bool", "text": "std::string",
}  # fmt: skip


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", "'")


def limit_name(wire: Wire, limit: int | str) -> str:
    if isinstance(limit, int):
        return str(limit)
    constant = wire.constants[limit]
    return constant.name if constant.scope == "control" else f"ATP_{constant.name.upper()}"


def type_of(wire: Wire, each: Field) -> str:
    if each.enum:
        return wire.enums[each.enum].cpp
    if each.type == "list":
        return f"std::vector<{wire.structs[each.each].cpp if each.each in wire.structs else CPP_TYPES[each.each]}>"
    if each.type == "bytes":
        return "std::vector<std::byte>"
    if each.array:
        return f"std::array<std::byte, {each.array}>"
    return wire.structs[each.type].cpp if each.type in wire.structs else CPP_TYPES[each.type]


def initialiser(wire: Wire, each: Field) -> str:
    if each.enum:
        enum = wire.enums[each.enum]
        return f" = {enum.cpp}::{each.fallback or enum.values[0].name}"
    if each.type in wire.structs or each.array:
        return "{}"
    return {"flag": " = false", "text": "{}", "list": "{}", "bytes": ""}.get(each.type, " = 0")


# -------------------------------------------------------------------------------------------------------------- headers


def enumeration(enum: Enum) -> list[str]:
    lines = [*cpp_comment(enum.meaning), f"enum class {enum.cpp} : std::uint8_t {{"]
    lines += members([(f"{value.name} = {value.number},", value.meaning) for value in enum.values], cpp_comment)
    return [*lines, "};"]


def struct(wire: Wire, item: Struct) -> list[str]:
    message = bool(item.number)
    meaning = f"{item.upper}: {item.meaning}. Sent by: {item.sender}." if message else item.meaning
    lines = [*cpp_comment(meaning), f"struct {item.cpp} {{"]
    rows = [(f"{type_of(wire, each)} {each.name}{initialiser(wire, each)};", each.meaning) for each in item.members]
    lines += members(rows, cpp_comment)
    functions = [item.cpp_member] if item.cpp_member else []
    if not message:
        functions.append(f"bool operator==(const {item.cpp}&) const = default;")
    return [*lines, *([""] if functions else []), *(f"    {function}" for function in functions), "};"]


def encode_signature(item: Struct, header: bool) -> str:
    padding = f", std::size_t padded_bytes{' = 0' if header else ''}" if item.padded else ""
    return f"std::size_t encode(const {item.cpp}& message, std::span<std::byte> bytes{padding})"


def decode_signature(item: Struct) -> str:
    return f"std::optional<{item.cpp}> decode_{item.name}(std::span<const std::byte> bytes)"


def of_file(items: dict, file: str) -> list:
    return [item for item in items.values() if item.file == file]


def messages_of(wire: Wire, file: str) -> list[Struct]:
    return [*of_file(wire.messages, file), *of_file(wire.store, file)]


def types(name: str, messages: dict[str, Struct]) -> list[str]:
    lines = [f"enum class {name} : std::uint8_t {{"]
    rows = [(f"{each.name} = {each.number},", f"from {each.sender}: {each.meaning}") for each in messages.values()]
    return [*lines, *members(rows, cpp_comment), "};"]


def messages_h(file: str) -> Callable[[Wire], str]:
    def write(wire: Wire) -> str:
        lines: list[str] = []
        for enum in of_file(wire.enums, file):
            lines += ["", *enumeration(enum)]
        messages = messages_of(wire, file)
        for item in [*of_file(wire.structs, file), *messages]:
            lines += ["", *struct(wire, item)]
        padding = " Zeros pad the message to `padded_bytes`." if any(item.padded for item in messages) else ""
        lines += ["", *cpp_comment(f"Return the number of bytes written, or 0 if they do not fit.{padding}")]
        lines += [f"[[nodiscard]] {encode_signature(item, True)};" for item in messages]
        lines += ["", *cpp_comment("Return nullopt if the bytes are no valid message of this type.")]
        lines += [f"[[nodiscard]] {decode_signature(item)};" for item in messages]
        if of_file(wire.enums, file):
            lines += ["", *cpp_comment('The name, such as "restarted"; "unknown" for other values.')]
        lines += [f"[[nodiscard]] std::string_view to_string({enum.cpp} value);" for enum in of_file(wire.enums, file)]
        return "\n".join([*lines, ""]) + "\n"

    return write


def constant(item: Constant) -> list[str]:
    return [*cpp_comment(item.meaning), f"inline constexpr std::size_t {item.name} = {grouped(item.value)};"]


def control_h(wire: Wire) -> str:
    lines = ["// Type of a control message.", *types("ControlType", wire.messages)]
    first, last = min(wire.messages.values(), key=number_of), max(wire.messages.values(), key=number_of)
    lines += ["", f"inline constexpr ControlType first_control_type = ControlType::{first.name};"]
    lines += [f"inline constexpr ControlType last_control_type = ControlType::{last.name};", ""]
    lines += ["// Type of a message in a store.", *types("StoreType", wire.store), ""]
    fields = ", ".join(f"{each.name} ({each.size})" for each in wire.prefix.fields)
    lines += [*cpp_comment(f"Bytes in front of the fields of each message: {fields}.")]
    lines += [f"inline constexpr std::size_t control_prefix_bytes = {wire.prefix_bytes};"]
    for item in wire.constants.values():
        if item.scope == "control":
            lines += constant(item)
    return "\n".join([*lines, ""])


def number_of(message: Struct) -> int:
    return message.number


# -------------------------------------------------------------------------------------------------------------- sources


def bytes_of(each: Field) -> int:
    return 8 * INTEGERS[each.type]


def put_item(wire: Wire, kind: str, name: str) -> str:
    return f"write(writer, {name})" if kind in wire.structs else f"writer.u{8 * INTEGERS[kind]}({name})"


def put(wire: Wire, item: Struct, each: Field) -> list[str]:
    value = f"value.{each.name}"
    if each.counts:
        listed = item.field(each.counts)
        most = limit_name(wire, listed.most or 0)
        return [f"const std::size_t {each.name} = std::min<std::size_t>(value.{each.counts}.size(), {most});",
                f"writer.u{bytes_of(each)}(static_cast<{CPP_TYPES[each.type]}>({each.name}));"]  # fmt: skip
    if each.is_zero:
        return [f"writer.zero({each.array});"]
    if each.type == "list" and each.bits_of:
        kind = wire.structs[each.each].cpp if each.each in wire.structs else CPP_TYPES[each.each]
        return [f"for (const {kind}{'&' if each.each in wire.structs else ''} each : {value}) "
                f"{put_item(wire, each.each, 'each')};"]  # fmt: skip
    if each.type == "list":
        return [f"for (std::size_t i = 0; i < {each.count}; ++i) {put_item(wire, each.each, f'{value}[i]')};"]
    if each.type == "bytes":
        return [f"writer.raw(std::span({value}).first({each.count}));"]
    if each.type == "text":
        return [f"writer.text({value}, {limit_name(wire, each.most or 0)});"]
    if each.array:
        return [f"writer.raw({value});"]
    if each.type in wire.structs:
        return [f"write(writer, {value});"]
    if each.enum:
        return [f"writer.u{bytes_of(each)}(static_cast<{CPP_TYPES[each.type]}>({value}));"]
    return [f"writer.{'flag' if each.type == 'flag' else each.type}({value});"]


def conditions(wire: Wire, each: Field, value: str) -> list[str]:
    found = []
    if each.one_of:
        return [" || ".join(f"{value} == {number}" for number in each.one_of)]
    if each.least is not None:
        found.append(f"{value} != 0" if each.least == 1 else f"{value} >= {limit_name(wire, each.least)}")
    if each.most is not None:
        found.append(f"{value} <= {limit_name(wire, each.most)}")
    if each.below is not None:
        found.append(f"{value} < {limit_name(wire, each.below)}")
    if each.rule:
        found.append(f"{each.rule}({value})")
    return found


def checked(wire: Wire, each: Field, value: str) -> list[str]:
    found = conditions(wire, each, value)
    return [f"reader.check({' && '.join(found)});"] if found else []


def get_list(wire: Wire, each: Field) -> list[str]:
    value = f"value.{each.name}"
    if each.each in wire.structs:
        body = f"read(reader, {value}.emplace_back());"
    else:
        body = f"{value}.push_back(reader.u{8 * INTEGERS[each.each]}());"
    if each.bits_of:
        return [f"for (auto rest = value.{each.bits_of}; rest != 0 && reader.ok(); rest &= rest - 1) {body}"]
    least = each.least if each.least is not None else 0
    bound = f"{each.count} <= {limit_name(wire, each.most or 0)}"
    above = f"{each.count} >= {limit_name(wire, least)} && " if least else ""
    return [f"reader.check({above}{bound});", f"for (std::size_t i = 0; i < {each.count} && reader.ok(); ++i) {body}"]


def get(wire: Wire, each: Field) -> list[str]:
    value = f"value.{each.name}"
    if each.counts:
        return [f"const std::size_t {each.name} = reader.u{bytes_of(each)}();"]
    if each.is_zero:
        return [f"reader.skip({each.array});"]
    if each.type == "list":
        return get_list(wire, each)
    if each.type == "bytes":
        return [f"reader.check({each.count} <= {limit_name(wire, each.most or 0)});",
                f"if (reader.ok()) {value}.resize({each.count});", f"reader.raw({value});"]  # fmt: skip
    if each.type == "text":
        return [f"{value} = reader.text({limit_name(wire, each.most or 0)});"]
    if each.array:
        return [f"reader.raw({value});"]
    if each.type in wire.structs:
        return [f"read(reader, {value});"]
    if each.enum:
        enum = wire.enums[each.enum]
        name = f"{each.name}_number"
        return [f"const {CPP_TYPES[each.type]} {name} = reader.u{bytes_of(each)}();",
                f"reader.check({name} >= {enum.first} && {name} <= {enum.last});",
                f"{value} = static_cast<{enum.cpp}>({name});"]  # fmt: skip
    return [f"{value} = reader.{'flag' if each.type == 'flag' else each.type}();", *checked(wire, each, value)]


def function(signature: str, statements: list[str]) -> list[str]:
    """On one line where clang-format would write it so."""
    one = f"{signature} {{ {' '.join(statements)} }}"
    if len(statements) == 1 and len(one) <= 120:
        return [one]
    return [f"{signature} {{", *(f"    {statement}" for statement in statements), "}"]


def codec(wire: Wire, item: Struct) -> list[str]:
    writes = [line for each in item.fields for line in put(wire, item, each)]
    reads = [line for each in item.fields for line in get(wire, each)]
    if item.rule:
        reads.append(f"reader.check({item.rule}(value));")
    return ["", *function(f"void write(ByteWriter& writer, const {item.cpp}& value)", writes),
            "", *function(f"void read(ByteReader& reader, {item.cpp}& value)", reads)]  # fmt: skip


def encode(wire: Wire, item: Struct) -> list[str]:
    length = "padded_bytes" if item.padded else ""
    if item.as_long_as:
        length = f"longest_{item.as_long_as}_bytes"
    return [
        "",
        f"{encode_signature(item, False)} {{",
        "    ByteWriter writer(bytes);",
        f"    write_prefix(writer, {type_name(wire, item)}::{item.name});",
        "    write(writer, message);",
        f"    return writer.finish({length});",
        "}",
    ]


def type_name(wire: Wire, item: Struct) -> str:
    return "StoreType" if wire.store.get(item.name) is item else "ControlType"


def decode(wire: Wire, item: Struct) -> list[str]:
    lines = [
        "",
        f"{decode_signature(item)} {{",
        "    ByteReader reader(bytes);",
        f"    read_prefix(reader, {type_name(wire, item)}::{item.name});",
        f"    std::optional<{item.cpp}> message(std::in_place);",
        "    read(reader, *message);",
    ]
    if item.as_long_as:
        lines.append(f"    reader.check(bytes.size() >= longest_{item.as_long_as}_bytes);")
    return [*lines, "    if (!reader.ok()) message.reset();", "    return message;", "}"]


def names_of(enum: Enum) -> list[str]:
    lines = ["", f"std::string_view to_string({enum.cpp} value) {{", "    switch (value) {"]
    lines += [
        f'        case {enum.cpp}::{value.name}: return "{value.name.replace("_", "-")}";' for value in enum.values
    ]
    return [*lines, "    }", '    return "unknown";', "}"]


def messages_cc(file: str) -> Callable[[Wire], str]:
    def write(wire: Wire) -> str:
        messages = messages_of(wire, file)
        structs = of_file(wire.structs, file)
        elsewhere = [item for item in wire.used_by([*structs, *messages]) if item.file != file]
        lines = ["namespace {"]
        for name in sorted({item.as_long_as for item in messages if item.as_long_as}):
            longest = wire.longest(wire.messages[name])
            lines += ["", f"constexpr std::size_t longest_{name}_bytes = {grouped(longest)};"]
        for item in [*elsewhere, *structs, *messages]:
            lines += codec(wire, item)
        lines += ["", "}  // namespace"]
        for item in messages:
            lines += [*encode(wire, item), *decode(wire, item)]
        for enum in of_file(wire.enums, file):
            lines += names_of(enum)
        return "\n".join([*lines, ""]) + "\n"

    return write


def control_names(wire: Wire) -> str:
    lines: list[str] = []
    for name, messages in (("ControlType", wire.messages), ("StoreType", wire.store)):
        lines += ["", f"std::string_view to_string({name} type) {{", "    switch (type) {"]
        lines += [f'        case {name}::{item.name}: return "{item.upper}";' for item in messages.values()]
        lines += ["    }", '    return "unknown";', "}"]
    return "\n".join([*lines[1:], ""])
