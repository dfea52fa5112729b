# SPDX-License-Identifier: Apache-2.0
"""What the writers share: comments, and the picture of a header."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from wire.definition import Struct

Comment = Callable[[str, str], list[str]]

WIDTH = 120
CELL = 8  # characters of a byte in the picture


def c_comment(text: str, indent: str = "") -> list[str]:
    lines = textwrap.wrap(text, WIDTH - len(indent) - 6)
    if len(lines) == 1:
        return [f"{indent}/* {lines[0]} */"]
    return [f"{indent}/*", *(f"{indent} * {line}" for line in lines), f"{indent} */"]


def cpp_comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}// ", subsequent_indent=f"{indent}// ")


def members(rows: list[tuple[str, str]], comment: Comment) -> list[str]:
    """Declarations with their meanings behind them. As clang-format aligns them, neighbours share a column while each
    line fits; a longer meaning stands above its declaration."""
    lines: list[str] = []
    run: list[tuple[str, str]] = []

    def behind(meaning: str) -> str:
        return f"  // {meaning}" if comment is cpp_comment else f" /* {meaning} */"

    def fits(some: list[tuple[str, str]]) -> bool:
        column = max(len(declaration) for declaration, _ in some) + 4
        return all(column + len(behind(meaning)) <= WIDTH for _, meaning in some)

    def close_run() -> None:
        column = max((len(declaration) for declaration, _ in run), default=0)
        lines.extend(f"    {declaration:{column}}{behind(meaning)}" for declaration, meaning in run)
        run.clear()

    for row in rows:
        if not run or not fits([*run, row]):
            close_run()
        if fits([row]):
            run.append(row)
        else:
            lines.extend([*comment(row[1], "    "), f"    {row[0]}"])
    close_run()
    return lines


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
