# SPDX-License-Identifier: Apache-2.0
"""Packets in C, for user space and eBPF, and in C++: parts of format.h, check.h, packet.h and packet.cc."""

from __future__ import annotations

from wire.definition import Check, Constant, Enum, Field, Wire
from wire.text import picture
from written import c_comment, members

C_TYPES = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "flag": "uint8_t"}
BITS = {"u8": "8", "u16": "16", "u32": "32", "u64": "64", "flag": "8"}


def c_limit(wire: Wire, limit: int | str) -> str:
    return f"{limit}u" if isinstance(limit, int) else f"ATP_{wire.constants[limit].name.upper()}"


def offset_macro(each: Field) -> str:
    return f"ATP_OFFSET_{each.shown.upper()}"


# ------------------------------------------------------------------------------------------------------------- format.h


def diagram(wire: Wire) -> list[str]:
    rows = picture(wire.packet, f"lanes, {wire.number('lane_bytes')} bytes each, as many as the datagram holds ...")
    return ["/*", *(f" * {row}" for row in rows), " */"]


def macro(constant: Constant) -> list[str]:
    return [*c_comment(constant.meaning), f"#define ATP_{constant.name.upper()} {constant.text()}u"]


def enumeration(enum: Enum) -> list[str]:
    lines = [*c_comment(enum.meaning), f"enum {enum.c} {{"]
    number = "{} = 1 << {}," if enum.bits else "{} = {},"
    rows = [(number.format(enum.macro(value), value.number), value.meaning) for value in enum.values]
    lines += [*members(rows, c_comment), "};"]
    if enum.bits:
        return [*lines, f"#define {enum.prefix}ALL 0x{enum.all_bits:X}u"]
    last = max(enum.values, key=lambda value: value.number)
    return [*lines, f"#define {enum.prefix}LAST {enum.macro(last)}"]


def header_struct(wire: Wire) -> list[str]:
    lines = [*c_comment(wire.packet.meaning), f"struct {wire.packet.c} {{"]
    rows = []
    for each in wire.packet.fields:
        declared = f"uint8_t {each.name}[{each.size}];" if each.is_zero else f"{C_TYPES[each.type]} {each.name};"
        rows.append((declared, each.meaning))
    return [*lines, *members(rows, c_comment), "};"]


def parts_of(wire: Wire) -> list[str]:
    lines: list[str] = []
    for each in wire.packet.fields:
        for part in each.parts:
            name = f"{each.name}_{part.name}"
            lines += [
                "",
                *c_comment(f"{name}: bits {part.bits[0]} to {part.bits[1]} of `{each.name}`: {part.meaning}"),
                f"#define ATP_{name.upper()}_SHIFT {part.shift}u",
                f"#define ATP_{name.upper()}_MASK 0x{part.mask:X}u",
                f"static inline {C_TYPES[each.type]} atp_{name}(const struct {wire.packet.c}* header) {{",
                f"    return header->{each.name} >> ATP_{name.upper()}_SHIFT & ATP_{name.upper()}_MASK;",
                "}",
            ]
    return lines


def asserts(wire: Wire) -> list[str]:
    texts = {
        f"sizeof(struct {wire.packet.c}) == ATP_HEADER_BYTES": "the header has padding, or a field too many",
        "ATP_HEADER_BYTES % 8u == 0u": "lanes would not start on a multiple of 8 bytes",
        "ATP_MAX_PACKET_BYTES <= 65507u": "the largest packet does not fit into a UDP datagram",
    }
    lines = [f'ATP_STATIC_ASSERT({condition}, "{text}");' for condition, text in texts.items()]
    lines += [f"ATP_ASSERT_AT({each.name}, {offset_macro(each)});" for each in wire.packet.fields if not each.is_zero]
    return lines


def format_h(wire: Wire) -> str:
    fields = [each for each in wire.packet.fields if not each.is_zero]
    lines = ["", *diagram(wire)]
    for constant in wire.constants.values():
        if constant.scope == "packet":
            lines += ["", *macro(constant)]
    lines += ["", f"#define ATP_HEADER_BYTES {wire.header_bytes}u"]
    lines += ["#define ATP_MAX_PACKET_BYTES (ATP_HEADER_BYTES + ATP_MAX_LANES * ATP_LANE_BYTES)"]
    for enum in wire.enums.values():
        if enum.c:
            lines += ["", *enumeration(enum)]
    lines += ["", "/* Byte offsets, for code that does not use struct atp_header. */", "enum atp_offset {"]
    lines += [f"    {offset_macro(each)} = {each.offset}," for each in fields]
    lines += ["};", "", *header_struct(wire), *parts_of(wire), "", *ASSERTIONS, "", *asserts(wire)]
    return "\n".join([*lines, "", "#undef ATP_ASSERT_AT", ""]) + "\n"


ASSERTIONS = r"""#ifdef __cplusplus
#define ATP_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define ATP_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif
#define ATP_ASSERT_AT(field, offset)                                            \
    ATP_STATIC_ASSERT(__builtin_offsetof(struct atp_header, field) == (offset), \
                      #field " has left its place on the wire")""".splitlines()


# -------------------------------------------------------------------------------------------------------------- check.h


def refusals(wire: Wire) -> str:
    lines = ["enum atp_refusal {", "    ATP_REFUSED_NOT = 0,"]
    for number, check in enumerate(wire.checks, 1):
        lines += [*c_comment(check.meaning, "    "), f"    ATP_REFUSED_{check.name.upper()} = {number},"]
    return "\n".join([*lines, "};", f"#define ATP_REFUSAL_COUNT {len(wire.checks) + 1}"]) + "\n"


def condition(wire: Wire, check: Check) -> str:
    """What a header breaks that this check refuses."""
    if check.rule:
        return f"!{check.rule}"
    each = wire.packet.field(check.field)
    value = f"header->{each.name}"
    if each.flags:
        return f"({value} & ~{wire.enums[each.flags].prefix}ALL) != 0"
    if each.enum:
        enum = wire.enums[each.enum]
        first = min(enum.values, key=lambda entry: entry.number)
        below = f"{value} < {enum.macro(first)} || " if first.number else ""
        return f"{below}{value} > {enum.prefix}LAST"
    conditions = []
    if each.least is not None:
        conditions.append(f"{value} == 0" if each.least == 1 else f"{value} < {c_limit(wire, each.least)}")
    if each.most is not None:
        conditions.append(f"{value} > {c_limit(wire, each.most)}")
    if each.below is not None:
        conditions.append(f"{value} >= {c_limit(wire, each.below)}")
    return " || ".join(conditions)


def header_checks(wire: Wire) -> str:
    lines = ["static inline uint8_t atp_check_header(const struct atp_header* header, uint32_t words) {"]
    for check in wire.checks:
        if check.field or check.rule:
            lines.append(f"    if ({condition(wire, check)}) return ATP_REFUSED_{check.name.upper()};")
    return "\n".join([*lines, "    return ATP_REFUSED_NOT;", "}", ""])


# ------------------------------------------------------------------------------------------------- packet.h, packet.cc


def decode_errors(wire: Wire) -> str:
    lines = ["enum class DecodeError : std::uint8_t {", "    none = ATP_REFUSED_NOT,"]
    lines += [f"    {check.name} = ATP_REFUSED_{check.name.upper()}," for check in wire.checks]
    return "\n".join([*lines, "};", ""])


def load_header(wire: Wire) -> str:
    lines = [
        "// Reads ATP_HEADER_BYTES bytes and checks no field.",
        "[[nodiscard]] inline atp_header load_header(const std::byte* at) {",
        "    return {",
    ]
    for each in wire.packet.fields:
        load = "{}" if each.is_zero else f"load_u{BITS[each.type]}(at + {offset_macro(each)})"
        lines.append(f"        .{each.name} = {load},")
    return "\n".join([*lines, "    };", "}", ""])


def encode_header(wire: Wire) -> str:
    lines = [
        "inline void encode_header(const atp_header& header, std::span<std::byte> bytes) {",
        "    assert(bytes.size() >= ATP_HEADER_BYTES);",
        "    std::byte* const at = bytes.data();",
    ]
    for each in wire.packet.fields:
        if each.is_zero:
            continue
        value = "ATP_VERSION" if each.name == "version" else f"header.{each.name}"
        lines.append(f"    store_u{BITS[each.type]}(at + {offset_macro(each)}, {value});")
    for each in wire.packet.fields:
        if each.is_zero:
            lines.append(f"    std::memset(at + {each.offset}, 0, {each.size});")
    return "\n".join([*lines, "}", ""])


def named(signature: str, variable: str, cases: dict[str, str], otherwise: str) -> list[str]:
    lines = [f"std::string_view {signature} {{", f"    switch ({variable}) {{"]
    lines += [f'        case {case}: return "{name}";' for case, name in cases.items()]
    return [*lines, f'        default: return "{otherwise}";', "    }", "}"]


def packet_names(wire: Wire) -> str:
    types, flags, dtypes = wire.enums["type"], wire.enums["flag"], wire.enums["dtype"]
    errors = {"DecodeError::none": "none", **{f"DecodeError::{check.name}": check.name for check in wire.checks}}
    names = named("to_string(DecodeError error)", "error", errors, "unknown")
    names += ["", *named("type_to_string(std::uint8_t type)", "type",
                         {types.macro(value): value.name.upper() for value in types.values}, "UNKNOWN")]  # fmt: skip
    names += ["", *named("dtype_to_string(std::uint8_t dtype)", "dtype",
                         {dtypes.macro(value): value.name for value in dtypes.values}, "unknown")]  # fmt: skip
    names += ["", *named("flag_to_string(std::uint16_t flag)", "flag",
                         {flags.macro(value): value.name for value in flags.values}, "unknown")]  # fmt: skip
    return "\n".join([*names, ""])
