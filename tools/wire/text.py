# SPDX-License-Identifier: Apache-2.0
"""What the writers share: lists, and the picture of a header."""

from __future__ import annotations

from wire.definition import Struct

CELL = 8  # characters of a byte in the picture


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def joined(names: list[str]) -> str:
    return ", ".join(names)


def picture(header: Struct, last: str) -> list[str]:
    """Eight bytes a row, with the offset of each row."""
    border = "   +" + "+".join(["-" * CELL] * 8) + "+"
    lines = ["   " + "".join(f" {byte:<{CELL}}" for byte in range(8)).rstrip()]
    row = ""
    for each in header.fields:
        name = "0" if each.is_zero else each.shown
        left = each.size or 0
        at = each.offset or 0
        while left:
            size = min(left, 8 - at % 8)
            if at % 8 == 0:
                row = f"{at:3}|"
            row += f"{name:^{(CELL + 1) * size - 1}}|"
            at, left = at + size, left - size
            if at % 8 == 0:
                lines += [border, row]
    return [*lines, border, f"{header.size:3}| {last}"]
