# SPDX-License-Identifier: Apache-2.0
"""Messages in C++: their structs (join_messages.h, query_messages.h, formation_messages.h), and their fields, encoding
and decoding (messages.cc)."""

from __future__ import annotations

from collections.abc import Callable

from wire.definition import Constant, Enum, Field, Struct, Wire
from written import WIDTH, cpp_comment, members

ECHOES = ("of the JOIN", "of the request")  # meanings of fields that a message copies from another one
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


def echoes_of(item: Struct) -> str:
    """A sentence about the copied fields, which have no comments of their own: " It has the job of the JOIN."."""
    sentences = ""
    for meaning in ECHOES:
        names = [each.name for each in item.members if each.meaning == meaning]
        if names:
            listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            sentences += f" It has the {listed} {meaning}."
    return sentences


def struct(wire: Wire, item: Struct) -> list[str]:
    message = bool(item.number)
    meaning = f"{item.upper}: {item.meaning}. Sent by: {item.sender}.{echoes_of(item)}" if message else item.meaning
    lines = [*cpp_comment(meaning), f"struct {item.cpp} {{"]
    rows = [(f"{type_of(wire, each)} {each.name}{initialiser(wire, each)};",
             "" if message and each.meaning in ECHOES else each.meaning)
            for each in item.members]  # fmt: skip
    lines += members(rows, cpp_comment)
    functions = [item.cpp_member] if item.cpp_member else []
    if not message:
        functions.append(f"bool operator==(const {item.cpp}&) const = default;")
    return [*lines, *([""] if functions else []), *(f"    {function}" for function in functions), "};"]


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
        for item in [*of_file(wire.structs, file), *messages_of(wire, file)]:
            lines += ["", *struct(wire, item)]
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
    longest = grouped(max(wire.longest(item) for item in wire.messages.values()))
    lines += ["// Longest control message without its padding."]
    lines += [f"inline constexpr std::size_t longest_message_bytes = {longest};"]
    return "\n".join([*lines, ""])


def number_of(message: Struct) -> int:
    return message.number


# ------------------------------------------------------------------------------------------------------------- messages


def bounds(wire: Wire, each: Field) -> list[str]:
    """Least and most as arguments; none where the type is the limit."""
    if each.enum:
        return [str(wire.enums[each.enum].first), str(wire.enums[each.enum].last)]
    most = None if each.most is None else limit_name(wire, each.most)
    if each.below is not None:
        most = f"{limit_name(wire, each.below)} - 1"
    least = None if each.least is None else limit_name(wire, each.least)
    return [least or "0", *([most] if most else [])] if least or most else []


def call(name: str, *arguments: str) -> str:
    return f"codec.{name}({', '.join(arguments)});"


def statements(wire: Wire, item: Struct, each: Field) -> list[str]:
    value = f"value.{each.name}"
    if each.counts:
        listed = item.field(each.counts)
        limits = [limit_name(wire, listed.least or 0), limit_name(wire, listed.most or 0)]
        width = f"{CPP_TYPES[each.type]}{{}}"
        return [f"const std::size_t {each.name} = {call('count', width, f'value.{each.counts}', *limits)}"]
    if each.is_zero:
        return [call("zero", str(each.array))]
    if each.type == "bytes":
        return [call("field", f"std::span({value}).first({each.count})")]
    if each.type == "list":
        body = "fields(codec, each);" if each.each in wire.structs else call("field", "each")
        if each.bits_of:
            return [call("resize", value, f"std::popcount(value.{each.bits_of})"), f"for (auto& each : {value}) {body}"]
        return [f"for (auto& each : std::span({value}).first({each.count})) {body}"]
    if each.type == "text":
        return [call("later" if each.later else "field", value, limit_name(wire, each.most or 0))]
    if each.type in wire.structs:
        return [f"fields(codec, {value});"]
    found = [call("field", value, *bounds(wire, each))]
    if each.one_of:
        found.append(call("one_of", value, f"{{{', '.join(map(str, each.one_of))}}}"))
    return [*found, call("rule", each.rule, value)] if each.rule else found


def function(signature: str, body: list[str]) -> list[str]:
    """On one line where clang-format would write it so."""
    one = f"{signature} {{ {' '.join(body)} }}"
    if len(body) == 1 and len(one) <= WIDTH:
        return [one]
    return [f"{signature} {{", *(f"    {statement}" for statement in body), "}"]


def message_fields(wire: Wire) -> str:
    lines: list[str] = []
    for item in [*wire.structs.values(), *wire.messages.values(), *wire.store.values()]:
        body = [line for each in item.fields for line in statements(wire, item, each)]
        body += [call("rule", item.rule, "value")] if item.rule else []
        lines += ["", *function(f"void fields(auto& codec, Of<decltype(codec), {item.cpp}>& value)", body)]
    return "\n".join([*lines, "", ""])


def message_types(wire: Wire) -> str:
    lines = [""]
    for kind, messages in (("ControlType", wire.messages), ("StoreType", wire.store)):
        for item in messages.values():
            lines.append(f"constexpr {kind} type_of(const {item.cpp}&) {{ return {kind}::{item.name}; }}")
    for item in wire.messages.values():
        if item.as_long_as:
            longest = grouped(wire.longest(wire.messages[item.as_long_as]))
            lines.append(f"constexpr std::size_t least_bytes(const {item.cpp}&) {{ return {longest}; }}")
    return "\n".join([*lines, "", ""])


def message_functions(wire: Wire) -> str:
    lines = [""]
    for item in [*wire.messages.values(), *wire.store.values()]:
        lines += [f"template std::size_t encode(const {item.cpp}&, std::span<std::byte>, std::size_t);",
                  f"template std::optional<{item.cpp}> decode(std::span<const std::byte>);"]  # fmt: skip
    for enum in wire.enums.values():
        lines += names_of(enum) if enum.cpp else []
    return "\n".join([*lines, "", ""])


def names_of(enum: Enum) -> list[str]:
    lines = ["", f"std::string_view to_string({enum.cpp} value) {{", "    switch (value) {"]
    lines += [
        f'        case {enum.cpp}::{value.name}: return "{value.name.replace("_", "-")}";' for value in enum.values
    ]
    return [*lines, "    }", '    return "unknown";', "}"]


def control_names(wire: Wire) -> str:
    lines: list[str] = []
    for name, messages in (("ControlType", wire.messages), ("StoreType", wire.store)):
        lines += ["", f"std::string_view to_string({name} type) {{", "    switch (type) {"]
        lines += [f'        case {name}::{item.name}: return "{item.upper}";' for item in messages.values()]
        lines += ["    }", '    return "unknown";', "}"]
    return "\n".join([*lines[1:], ""])
