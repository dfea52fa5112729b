# SPDX-License-Identifier: Apache-2.0
"""Two parts of docs/reference/c.md: the rules above the code of atp.h, and what it and options.h declare, with the
comments there.

A comment belongs to the declarations below it, up to an empty line or the next comment. Each declaration needs one.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from source_tree import Missing
from written import on_page, page_table, text_of

HEADER = Path("include/atp/atp.h")
OPTIONS = Path("include/atp/options.h")
# Members that another page describes.
ELSEWHERE = {
    "enum atp_reason": "[Errors](errors.md#reasons) lists the reasons: `ATP_REASON_` and a name from there.",
    "struct atp_counters": "[Counters](counters.md#ranks) lists the counters, which follow `size_t struct_size`.",
    "struct atp_options": "[Options](options.md#table) lists the fields.",
}
BANNER = re.compile(r"^/\* -{9,} ([\w ]+)\n \*/\n", re.MULTILINE)
COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
DECLARATION = re.compile(
    r"(?P<name>(?:enum|struct) \w+) \{\n(?P<body>.*?)^\};|(?P<code>(?:ATP_API|typedef)\b.*?;|#define ATP_\w+ (?:\d+|\(.*\))$)",
    re.DOTALL | re.MULTILINE,
)
RULE = re.compile(r"^ \* ([A-Z][a-z ]*): (.*?)(?=^ \* [A-Z][a-z ]*: |^ \*/)", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(r"^    (?P<code>[^/\n]+?)[,;]?(?: +/\*(?P<behind>[^\n]*)\*/)?$", re.MULTILINE)
IDENTIFIER = re.compile(r"`[^`]*`|\bsizeof\([\w ]+\)|\b(?:(?:struct|enum) )?(?:atp_\w+(?:\(\))?|ATP_\w+)|\bNULL\b")


def plain(comment: str) -> str:
    return " ".join(re.sub(r"^ *\* ?", "", comment, flags=re.MULTILINE).split())


def marked(text: str) -> str:
    """Text of a page: identifiers are code."""
    text = re.sub(r" tools/write_options writes .*", "", text)
    return IDENTIFIER.sub(lambda found: found[0] if found[0].startswith("`") else f"`{found[0]}`", text)


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def members(name: str, body: str) -> list[str]:
    if name in ELSEWHERE:
        return [ELSEWHERE[name]]
    rows, above = [], ""
    for piece in re.split(r"(^ {4}/\*.*?\*/\n)", re.sub(r"\n {8,}(?=\S)", " ", body), flags=re.DOTALL | re.MULTILINE):
        if piece.lstrip().startswith("/*"):
            above = plain(COMMENT.search(piece)[1])  # type: ignore[index]
            continue
        for member in MEMBER.finditer(piece):
            rows.append([f"`{' '.join(member['code'].split())}`", marked(above or plain(member["behind"] or ""))])
            above = ""
    return page_table(["enumerator" if name.startswith("enum") else "field", "meaning"], rows)


def code_of(declaration: str) -> list[str]:
    """The declaration, with lines that end between parameters."""
    parameters = " ".join(declaration.removeprefix("ATP_API ").split()).replace(" ", "\xa0").replace(",\xa0", ", ")
    lines = textwrap.wrap(parameters, 100, subsequent_indent="    ", break_long_words=False)
    return [line.replace("\xa0", " ") for line in lines]


def section(text: str, header: Path, line: int) -> list[str]:
    lines: list[str] = []
    groups = re.split(r"(?=^/\*)|\n(?=\n)", text, flags=re.MULTILINE)
    for group in groups:
        found = list(DECLARATION.finditer(group))
        comment = COMMENT.match(group)
        if not found:
            continue
        if not comment:
            at = line + text.count("\n", 0, text.index(group))
            raise Missing(f"{header}:{at}: a declaration without a comment: write one above it")
        code = [part for each in found for part in code_of(each["name"] or each["code"])]
        lines += ["```c", *code, "```", "", *textwrap.wrap(sentence(marked(plain(comment[1]))), 120), ""]
        for each in found:
            if each["name"]:
                lines += [*members(each["name"], each["body"]), ""]
    return lines


def sections(root: Path, header: Path) -> list[str]:
    text = text_of(root, header).split("#ifdef __cplusplus\n}")[0]
    pieces = BANNER.split(text)
    if len(pieces) < 3:
        raise Missing(f"{header} has no sections: write /* ---- NAME above each")
    lines: list[str] = []
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        lines += [f"## {name}", "", *section(body, header, text.count("\n", 0, text.index(body)) + 1)]
    return lines


def interface(root: Path) -> str:
    return on_page([*sections(root, HEADER), *sections(root, OPTIONS)])


def rules(root: Path) -> str:
    text = text_of(root, HEADER).partition(" *\n * Calling order: ")
    found = RULE.findall("".join(text[1:]).partition(" */")[0] + " */")
    if not found:
        raise Missing(f"{HEADER} has no rules: write ` * NAME: RULE` above the code")
    lines: list[str] = []
    for name, rule in found:
        text = f"- **{name}.** {sentence(marked(plain(rule)))}"
        lines += textwrap.wrap(text, 120, subsequent_indent="  ")
    return on_page([*lines, ""])
