# SPDX-License-Identifier: Apache-2.0
"""In P4_16: the header of packets, its types and flags, and the begin of a JOIN: part of p4/headers.p4."""

from __future__ import annotations

from wire.definition import INTEGERS, Enum, Wire
from written import cpp_comment

CONSTANTS = {"version": 8, "control_version": 8, "type_control": 8, "levels": 8, "window_log2_max": 8, "worker_all": 16,
             "proof_lanes": 16, "listed_ack_lanes": 16, "max_ack_list_lanes": 16}  # fmt: skip
ENUMS = {"type": 8, "flag": 16, "dtype": 8}


def enumeration(enum: Enum, bits: int) -> list[str]:
    lines = ["", *cpp_comment(enum.meaning)] if enum.meaning else [""]
    return lines + [
        f"const bit<{bits}> {enum.macro(value)} = {1 << value.number if enum.bits else value.number};"
        for value in enum.values
    ]


def begin_of_join(wire: Wire) -> list[str]:
    """The part of a JOIN up to the one byte that a switch in the path writes."""
    message = wire.messages["join"]
    mark = message.field("int32_path")
    lines = ["", f"const bit<16> JOIN_BEGIN = 0x{wire.number('control_version') << 8 | message.number:X};"]
    lines += [f"const bit<16> JOIN_BEGIN_BYTES = {(mark.offset or 0) + (mark.size or 0)};", ""]
    lines += ["header join_t {", f"    bit<{8 * (mark.offset or 0)}> before;"]
    return [*lines, *cpp_comment(mark.meaning, "    "), f"    bit<8> {mark.name};", "}"]


def headers(wire: Wire) -> str:
    lines = []
    for name, bits in CONSTANTS.items():
        lines.append(f"const bit<{bits}> ATP_{name.upper()} = {wire.constants[name].text()};")
    lines.append(f"const bit<16> ATP_HEADER_BYTES = {wire.header_bytes};")
    lines.append(f"const bit<16> ATP_LANE_BYTES = {wire.number('lane_bytes')};")
    by_prefix = {enum.prefix: enum for enum in wire.enums.values()}
    for name, bits in ENUMS.items():
        enum = by_prefix[f"ATP_{name.upper()}_"]
        lines += enumeration(enum, bits)
        lines += [f"const bit<{bits}> {enum.prefix}ALL = 0x{enum.all_bits:X};"] if enum.bits else []
    lines += ["", "header atp_t {"]
    for each in wire.packet.fields:
        size = each.size if each.is_zero else INTEGERS[each.type]
        lines += cpp_comment(each.meaning, "    ")
        lines.append(f"    bit<{8 * (size or 0)}> {each.name};")
    return "\n".join([*lines, "}", *begin_of_join(wire), ""])
