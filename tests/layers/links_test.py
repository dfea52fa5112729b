#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that links between documents, their anchors, and paths that documents and comments cite exist, that blocks of
code in documents end, and that lines of documents have at most 120 columns.

usage: links_test.py SOURCE_DIR
"""

import itertools
import os
import re
import sys
import tempfile
import unicodedata
import unittest
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

SOURCES = Path(sys.argv.pop(1)).resolve()
FOLDERS = ("bench", "cmake", "docs", "examples", "include", "python", "src", "tests", "tools")
# A path that starts with none of these folders is relative to its document, or to one of the following folders:
# headers are included as "module/file.h".
BASES = ("", "bench", "docs", "include", "python", "src", "src/machines", "src/drivers", "src/lab", "tests")
SLASH_COMMENTS = {".c", ".cc", ".cu", ".h", ".hpp"}
HASH_COMMENTS = {".cmake", ".in", ".py", ".pyi", ".sh", ".toml", ".txt"}
EXTENSIONS = "cc|c|cmake|cu|h|hpp|json|md|py|sh|toml|txt"

FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
FENCE_LINE = re.compile(r" *(```+|~~~+) *(.*)")
CODE_SPAN = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(\s*<?([^()\s<>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]: +<?([^\s>]+)", re.MULTILINE)
ATTRIBUTE = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)
ANCHOR = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)=\"([^\"]+)\"")
BEFORE_PATH = r"(?<![\w./$}>~-])"
FULL_PATH = re.compile(BEFORE_PATH + r"((?:" + "|".join(FOLDERS) + r")/[\w./*{},-]*[\w/*}])(#[\w-]+)?")
SHORT_PATH = re.compile(BEFORE_PATH + r"([\w-]+/(?:[\w.*{},-]+/)*[\w.*{},-]+\.(?:" + EXTENSIONS + r"))(?![\w/]|\.\w)")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])NAME(?![A-Za-z])")  # as in tests/xdp/NAME_test.py
SLASH_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*|\"\"\".*?\"\"\"", re.MULTILINE | re.DOTALL)
MOST_COLUMNS = 120  # of a line that is no table, no output and has no URL

Complaint = tuple[int, str]


def without(pattern: re.Pattern[str], text: str) -> str:
    """The text with spaces in place of each match. Lines keep their numbers."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def only(pattern: re.Pattern[str], text: str) -> str:
    """The matches alone, with spaces in place of all else. Lines keep their numbers."""
    kept, end = [], 0
    for match in pattern.finditer(text):
        kept += [re.sub(r"[^\n]", " ", text[end : match.start()]), match.group()]
        end = match.end()
    return "".join(kept)


def anchor_of(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = (letter for letter in text.lower() if letter in " -_" or unicodedata.category(letter)[0] in "LNM")
    return "".join(kept).replace(" ", "-")


def alternatives(path: str) -> list[str]:
    """`a/{b,c}.h` names a/b.h and a/c.h."""
    parts = [part[1:-1].split(",") if part.startswith("{") else [part] for part in re.split(r"(\{[^{}]*\})", path)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def comments_of(file: Path) -> str:
    if file.suffix in SLASH_COMMENTS:
        return only(SLASH_COMMENT, file.read_text(encoding="utf-8"))
    if file.suffix in HASH_COMMENTS or (file.suffix == "" and file.read_bytes().startswith(b"#!")):
        return only(HASH_COMMENT, file.read_text(encoding="utf-8"))
    return ""


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.anchors: dict[Path, set[str]] = {}

    def files(self) -> Iterator[Path]:
        yield from sorted(path for path in self.root.iterdir() if path.is_file())
        for folder in FOLDERS:
            for parent, _, names in sorted(os.walk(self.root / folder)):
                yield from (Path(parent, name) for name in sorted(names))

    def anchors_of(self, document: Path) -> set[str]:
        if document not in self.anchors:
            text = without(FENCE, document.read_text(encoding="utf-8"))
            found, count = set(ANCHOR.findall(text)), dict[str, int]()
            for heading in HEADING.findall(text):
                anchor = anchor_of(heading)
                count[anchor] = count.get(anchor, -1) + 1
                found.add(f"{anchor}-{count[anchor]}" if count[anchor] else anchor)
            self.anchors[document] = found
        return self.anchors[document]

    def lacks_anchor(self, target: Path, anchor: str) -> bool:
        return anchor != "" and target.suffix == ".md" and target.is_file() and anchor not in self.anchors_of(target)

    def dead_links(self, document: Path, text: str) -> Iterator[Complaint]:
        prose = without(CODE_SPAN, without(FENCE, text))
        for match in itertools.chain(*(pattern.finditer(prose) for pattern in (LINK, DEFINITION, ATTRIBUTE))):
            link = match.group(1)
            if re.match(r"[a-z][a-z+.-]*:", link):
                continue  # on another host
            path, _, anchor = unquote(link).partition("#")
            target = (document.parent / path).resolve() if path else document
            line = prose.count("\n", 0, match.start()) + 1
            if not target.is_relative_to(self.root) or not target.exists():
                yield line, f"dead link {link}"
            elif self.lacks_anchor(target, anchor):
                yield line, f"dead anchor {link}"

    def dead_paths(self, text: str, bases: tuple[str, ...]) -> Iterator[Complaint]:
        for match in FULL_PATH.finditer(text):
            path, anchor = match.group(1), (match.group(2) or "")[1:]
            line = text.count("\n", 0, match.start()) + 1
            if not self.has(path, bases):
                yield line, f"dead path {path}"
            elif "*" not in path and self.lacks_anchor(self.root / path, anchor):
                yield line, f"dead anchor {path}#{anchor}"

    def dead_short_paths(self, text: str, bases: tuple[str, ...]) -> Iterator[Complaint]:
        """Paths whose first folder exists in one of the bases: others belong to other projects."""
        for match in SHORT_PATH.finditer(text):
            path = match.group(1)
            if path.startswith("build/"):
                continue  # what a build makes
            if self.has(path.partition("/")[0], bases) and not self.has(path, bases):
                yield text.count("\n", 0, match.start()) + 1, f"dead path {path}"

    def long_lines(self, text: str) -> Iterator[Complaint]:
        for number, line in enumerate(without(FENCE, text).splitlines(), 1):
            if len(line.rstrip()) > MOST_COLUMNS and not line.startswith("|") and "://" not in line:
                yield number, f"{len(line)} columns: wrap at {MOST_COLUMNS}"

    def open_fences(self, text: str) -> Iterator[Complaint]:
        """A fence with text behind it closes no block, so the rest of the page would show as code."""
        opened, fence = 0, ""
        for number, line in enumerate(text.splitlines(), 1):
            match = FENCE_LINE.fullmatch(line)
            if match is None:
                continue
            if not opened:
                opened, fence = number, match.group(1)
            elif match.group(1).startswith(fence):
                if match.group(2):
                    yield number, f"{fence} with text behind it does not end the block of line {opened}"
                opened = 0
        if opened:
            yield opened, f"this {fence} is never closed"

    def has(self, path: str, bases: tuple[str, ...]) -> bool:
        names = alternatives(PLACEHOLDER.sub("*", path.rstrip("/")))
        return all(any(True for base in bases for _ in (self.root / base).glob(name)) for name in names)

    def complaints(self) -> Iterator[str]:
        for file in self.files():
            if file == Path(__file__).resolve():
                continue  # its tests hold wrong links
            folder = str(file.parent.relative_to(self.root))
            found: set[Complaint] = set()
            if file.suffix == ".md":
                text = file.read_text(encoding="utf-8")
                found |= {*self.dead_links(file, text), *self.dead_paths(text, ("", folder)), *self.open_fences(text)}
                if not folder.startswith("docs/results"):  # programs write these
                    found |= {*self.long_lines(text)}
                text = only(CODE_SPAN, without(FENCE, text))
            else:
                text = comments_of(file)
                found |= {*self.dead_paths(text, ("",))}
            found |= {*self.dead_short_paths(text, (*BASES, folder))}
            for line, complaint in sorted(found):
                yield f"{file.relative_to(self.root)}:{line}: {complaint}"


class Links(unittest.TestCase):
    maxDiff = None

    def complaints_about(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return list(Tree(Path(folder).resolve()).complaints())

    def test_every_link_and_every_cited_path_of_the_sources_exists(self) -> None:
        self.assertEqual(list(Tree(SOURCES).complaints()), [])

    def test_reads_all_folders_of_the_sources(self) -> None:
        files = {str(file.relative_to(SOURCES)) for file in Tree(SOURCES).files()}
        self.assertLessEqual({"README.md", "docs/spec/joining.md", "src/machines/wire/format.h", "test.sh"}, files)

    def test_reports_a_link_to_a_missing_file(self) -> None:
        text = 'See\n[a](b.md), ![c](d.png), <img src="e.png">.\n\n[f]: g.md\n'
        links = ["docs/a.md:2: dead link b.md", "docs/a.md:2: dead link d.png", "docs/a.md:2: dead link e.png"]
        self.assertEqual(self.complaints_about({"docs/a.md": text}), [*links, "docs/a.md:4: dead link g.md"])

    def test_reports_a_link_out_of_the_sources(self) -> None:
        self.assertEqual(self.complaints_about({"a.md": "[a](../../etc)"}), ["a.md:1: dead link ../../etc"])

    def test_reports_a_missing_anchor(self) -> None:
        files = {"a.md": "# Title\n[a](#title) [b](#titel) [c](docs/b.md#b-1)\n", "docs/b.md": "# B\n"}
        self.assertEqual(
            self.complaints_about(files), ["a.md:2: dead anchor #titel", "a.md:2: dead anchor docs/b.md#b-1"]
        )

    def test_anchors_follow_their_headings(self) -> None:
        headings = '## The `atp` switch, 2 levels\n## B\n## B\n<a name="h7"></a>\n```\n# code\n```\n'
        files = {"a.md": headings + "[a](#the-atp-switch-2-levels) [b](#b-1) [c](#h7) [d](#code)"}
        self.assertEqual(self.complaints_about(files), ["a.md:8: dead anchor #code"])

    def test_reports_a_missing_path_in_a_document(self) -> None:
        text = "`src/a.cc` and `wire/b.h`, not `wire/a.h`, `src/*/a.h`, `src/{b,c}.cc` or https://host/src/z\n"
        files = {"docs/a.md": text, "src/machines/wire/a.h": "", "src/b.cc": "", "src/c.cc": "", "src/d/a.h": ""}
        wrong = ["docs/a.md:1: dead path src/a.cc", "docs/a.md:1: dead path wire/b.h"]
        self.assertEqual(self.complaints_about(files), wrong)

    def test_reports_a_long_line_of_a_document(self) -> None:
        long, table = "a" * 121, "| " + "a" * 120
        text = f"{long}\n{table}\n```\n{long}\n```\nhttps://{long}\n{long[1:]}\n"
        self.assertEqual(self.complaints_about({"docs/a.md": text}), ["docs/a.md:1: 121 columns: wrap at 120"])

    def test_reports_a_block_of_code_that_does_not_end(self) -> None:
        text = "```sh\na\n``` b\n\n````\n```c\n````\n\n1. d\n   ```\n   e\n   ```\n\n~~~\n"
        wrong = ["docs/a.md:3: ``` with text behind it does not end the block of line 1"]
        wrong += ["docs/a.md:14: this ~~~ is never closed"]
        self.assertEqual(self.complaints_about({"docs/a.md": text}), wrong)

    def test_reports_a_missing_path_in_a_comment_alone(self) -> None:
        files = {
            "docs/a.md": "# A\n",
            "src/a.cc": 'int a;  // docs/a.md#a\nint b;  // docs/b.md\nauto c = "tests/c";  /* docs/a.md#c */\n',
            "tests/b.py": '"""See\nsrc/b.cc."""\nc = "src/c.cc"  # src/d.cc\n',
        }
        wrong = ["src/a.cc:2: dead path docs/b.md", "src/a.cc:3: dead anchor docs/a.md#c"]
        wrong += ["tests/b.py:2: dead path src/b.cc", "tests/b.py:3: dead path src/d.cc"]
        self.assertEqual(self.complaints_about(files), wrong)


if __name__ == "__main__":
    unittest.main()
