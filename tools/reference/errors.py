# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reference/errors.md: the reasons of atp.h, and each text of an error, read where the code has it.

A text is on the page if a comment above it says so: `// errors.md, WHEN, REASON: MEANING`.
- WHEN: `forms` or `runs`, of a job; `refused`, by a switch; `calls`, with wrong arguments; `starts`, of a switch.
- REASON: as `to_string(Reason)` prints it, or `any`.
- MEANING: the cause, or what to do beyond the advice in the text. If there is nothing to add, it and the colon are
  left out.

Each text of a machine or driver that tells a reader what to do needs one, because a text that is forgotten is the one
that somebody looks up: `// errors.md, none: WHY` leaves it out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from source_tree import Missing, without_comments
from written import on_page, page_table, text_of

HEADER = Path("include/atp/atp.h")
SOURCES = ("src/machines", "src/drivers", "src/apps/atp")
# Texts that are no errors: help of flags and options, findings of `atp doctor`.
OTHER_TEXTS = ("src/apps/", "src/drivers/doctor/", "src/drivers/comm/option_table.cc")
SECTIONS = ("forms", "refused", "runs", "calls", "starts")
IMPLIED = {"refused": "rejected", "starts": ""}  # the reason if a comment names none; a problem of a flag has none

ADVISED = "write `// errors.md, WHEN, REASON: MEANING`"
NOTE = re.compile(r"^( *)// errors\.md, (.*(?:\n\1// .*)*)\n", re.MULTILINE)
HEAD = re.compile(r"(\w+)(?:, ([a-z ]+))?(?:: (.*))?")
LITERAL = re.compile(r'(?:"(?:\\.|[^"\\\n])*"\s*)+')
PIECE = re.compile(r'"((?:\\.|[^"\\\n])*)"')
JOINED = re.compile(r"\s*\+\s*(?:[\w.()]+\s*(?:\+\s*)?)?")
ADVICE = re.compile(r"[\w}\])'][:;] [a-z`].{8,}")


@dataclass(frozen=True)
class Text:
    when: str
    reason: str
    text: str
    meaning: str


def value_of(literals: str) -> str:
    return "".join(PIECE.findall(literals)).replace('\\"', '"')


def text_at(code: str, at: int) -> tuple[str, int]:
    """The text of an expression of literals that + joins with values, and its end."""
    text = "..." if code[:at].rstrip().endswith("+") else ""
    while literal := LITERAL.match(code, at):
        text += value_of(literal[0])
        at = literal.end()
        joined = JOINED.match(code, at)
        if not joined:
            break
        text += "..."
        at = joined.end()
    return text, at


def shown(text: str) -> str:
    """As readers see it: "..." for values."""
    text = re.sub(r"(?:\.\.\.[ .]*)+\.\.\.", "...", re.sub(r"\{[^{}]*\}", "...", text))
    return re.sub(r"(\w)\.\.\.", r"\1 ...", text)


def reasons_of(root: Path) -> list[str]:
    return re.findall(r'case Reason::\w+: return "([^"]+)"', text_of(root, "src/machines/base/result.cc"))


class Source:
    """A file and the comments in it."""

    def __init__(self, path: Path, code: str) -> None:
        self._path, self._code, self._plain = path, code, without_comments(code)
        self.noted: set[str] = set()  # every literal below a comment

    def _where(self, at: int) -> str:
        return f"{self._path}:{self._code.count(chr(10), 0, at) + 1}"

    def _reasons_near(self, begin: int, end: int) -> set[str]:
        """Those that the statement around a text names."""
        statement = re.split(r"[;{}]\n", self._plain[:begin])[-1] + self._plain[begin : self._plain.find(";", end)]
        return {name.replace("_", " ") for name in re.findall(r"Reason::(\w+)", statement)}

    def texts(self, reasons: list[str]) -> Iterator[Text]:
        for note in NOTE.finditer(self._code):
            head = HEAD.fullmatch(re.sub(r"\n *// ", " ", note[2]))
            literal = LITERAL.search(self._plain, note.end())
            if not head or head[1] not in (*SECTIONS, "none") or not literal:
                raise Missing(f"{self._where(note.start())}: {ADVISED}; WHEN is one of {', '.join(SECTIONS)}, none")
            when, reason, meaning = head[1], head[2] or IMPLIED.get(head[1], ""), head[3] or ""
            text, end = text_at(self._plain, literal.start())
            self.noted |= {value_of(each[0]) for each in LITERAL.finditer(self._plain, literal.start(), end)}
            if when == "none":
                continue
            if reason not in (*reasons, "any", IMPLIED.get(when)):
                raise Missing(f"{self._where(note.start())}: {reason!r} is no reason of base/result.cc")
            near = self._reasons_near(literal.start(), end)
            if len(near) == 1 and reason != "any" and reason not in near:
                raise Missing(f"{self._where(note.start())}: the code gives this text the reason {near.pop()}")
            yield Text(when, reason, shown(text), meaning)

    def missing(self, noted: set[str]) -> Iterator[str]:
        for literal in LITERAL.finditer(self._plain):
            text = value_of(literal[0])
            if ADVICE.search(text) and text not in noted and not text.endswith("\\n"):  # no line of a program
                yield f"{self._where(literal.start())}: a text that is not in errors.md: {ADVISED} above it"


@functools.cache
def all_texts(root: Path) -> list[Text]:
    """In the order of reasons, then of files; equal rows once."""
    reasons = reasons_of(root)
    paths = [path for folder in SOURCES for path in sorted((root / folder).rglob("*.cc"))]
    sources = {path.relative_to(root): Source(path.relative_to(root), path.read_text()) for path in paths}
    texts = [text for source in sources.values() for text in source.texts(reasons)]
    noted = {text for source in sources.values() for text in source.noted}
    for path, source in sources.items():
        if not str(path).startswith(OTHER_TEXTS):
            for problem in source.missing(noted):
                raise Missing(problem)
    order = ["", "any", *reasons]
    return sorted(dict.fromkeys(texts), key=lambda text: order.index(text.reason))


def cell_of(reason: str) -> str:
    return f"`{reason}`" if reason and reason != "any" else reason


def texts(when: str) -> Callable[[Path], str]:
    def write(root: Path) -> str:
        found = [text for text in all_texts(root) if text.when == when]
        rows = [[cell_of(each.reason), each.text, each.meaning] for each in found]
        return on_page(page_table(["reason", "text", "cause, or what else to do"], rows))

    return write


def reasons(root: Path) -> str:
    body = re.search(r"enum atp_reason \{(.*?)\};", text_of(root, HEADER), re.DOTALL)
    found = re.findall(r"ATP_REASON_(\w+) = \d+,? */\*\s*(.*?)\s*\*/", body[1] if body else "")
    rows = [(name.lower().replace("_", " "), meaning) for name, meaning in found if name != "NONE"]
    if [name for name, _ in rows] != reasons_of(root):
        raise Missing(f"{HEADER}: enum atp_reason needs the reasons of base/result.cc, each with its meaning behind it")
    return on_page(page_table(["reason", "means"], [[f"`{name}`", meaning] for name, meaning in rows]))
