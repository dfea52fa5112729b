# SPDX-License-Identifier: Apache-2.0
"""Shared by the programs that write parts of files from a definition: reading TOML, the parts, comments and tables."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    try:
        import tomli as tomllib  # type: ignore[no-redef]
    except ModuleNotFoundError:
        tomllib = None  # type: ignore[assignment]

from source_tree import Missing

WIDTH = 120
COMMENTS = {"c": "/* {} */", "c++": "// {}", "p4": "// {}", "python": "# {}", "lua": "-- {}", "page": "<!-- {} -->"}
END = "End of the written part."

Comment = Callable[[str, str], list[str]]


class Bad(Missing):
    """The definition cannot be read: exit status 2."""


# --------------------------------------------------------------------------------------------------------------- Reading


def text_of(root: Path, path: Path | str) -> str:
    try:
        return (root / path).read_text()
    except OSError as error:
        raise Missing(f"{path}: {error.strerror}") from None


def toml_of(path: Path) -> dict[str, Any]:
    if tomllib is None:
        raise Bad("this Python reads no TOML: use Python 3.11 or later, or install tomli")
    try:
        return tomllib.loads(text_of(Path(), path))
    except tomllib.TOMLDecodeError as error:
        raise Bad(f"{path}: {error}") from None


def built(kind: type, where: str, table: Any) -> Any:
    """An object of a dataclass from a table whose keys are its attributes."""
    names = {each.name for each in dataclasses.fields(kind) if each.init}
    if not isinstance(table, dict):
        raise Bad(f"{where} is no table")
    for key in table:
        if key not in names:
            raise Bad(f"{where} has the unknown key {key}: use {', '.join(sorted(names))}")
    try:
        return kind(**table)
    except TypeError as error:
        missing = str(error).split("argument")[-1].lstrip("s: ")
        raise Bad(f"{where} lacks {missing}") from None


def unique(items: list, where: str, key: str = "name") -> None:
    seen: set = set()
    for item in items:
        value = getattr(item, key)
        if value in seen:
            raise Bad(f"{where} has two values with the {key} {value}")
        seen.add(value)


# --------------------------------------------------------------------------------------------------------------- Writing


class Part(NamedTuple):
    """The lines between two comments of a file. `what` names them in the first comment."""

    path: str
    language: str
    what: str
    write: Callable[[Any], str]


def replaced(text: str, path: Path | str, first: str, last: str, lines: str) -> str:
    begin = text.find(first) + len(first)
    end = text.find(last, begin)
    if begin < len(first) or end < 0 or text.count(first) != 1:
        raise Missing(f"{path} needs the line {first.strip()!r} once, and {last.strip()!r} after it")
    return text[:begin] + lines + text[end:]


def texts_of(
    root: Path,
    tool: str,
    source: Path,
    parts: list[Part],
    definition: Any,
    written: dict[Path | str, str] | None = None,
) -> dict[Path | str, str]:
    """The whole text of each file that has a part. `written`: texts with parts from other sources, if there are some."""
    texts: dict[Path | str, str] = dict(written or {})
    for path, language, what, write in parts:
        comment = (COMMENTS[language] + "\n").format
        note = comment(f"tools/{tool} writes {what} from {source}.")
        texts[path] = replaced(texts.get(path) or text_of(root, path), path, note, comment(END), write(definition))
    return texts


def settle(arguments, tool: str, source: Path | str, texts: dict[Path | str, str]) -> list[str]:
    """Writes the files whose texts differ, or with --check returns a violation for each."""
    violations = []
    for path, text in texts.items():
        file = arguments.root / path
        if file.exists() and file.read_text() == text:
            continue
        if arguments.check:
            violations.append(f"{path}: differs from {source}: run tools/{tool}")
        else:
            file.write_text(text)
    return violations


def c_comment(text: str, indent: str = "") -> list[str]:
    lines = textwrap.wrap(text, WIDTH - len(indent) - 6)
    if len(lines) == 1:
        return [f"{indent}/* {lines[0]} */"]
    return [f"{indent}/*", *(f"{indent} * {line}" for line in lines), f"{indent} */"]


def cpp_comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}// ", subsequent_indent=f"{indent}// ")


def members(rows: list[tuple[str, str]], comment: Comment) -> list[str]:
    """Declarations with their meanings behind them. As clang-format aligns them, neighbours share a column while each
    line fits; a longer meaning stands above its declaration. A declaration without a meaning has no comment."""
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
        if not row[1]:
            close_run()
            lines.append(f"    {row[0]}")
            continue
        if not run or not fits([*run, row]):
            close_run()
        if fits([row]):
            run.append(row)
        else:
            lines.extend([*comment(row[1], "    "), f"    {row[0]}"])
    close_run()
    return lines


def page_table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + [re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(row)} |") for row in rows]


def on_page(lines: list[str]) -> str:
    return "\n".join(["", *lines, ""])
