# SPDX-License-Identifier: Apache-2.0
"""Two parts of docs/reference/python.md: the docstring of the package, and its public names with theirs.

Public is what __all__ lists, in that order. Docstrings have Google's sections `Args:`, `Attributes:` and `Raises:`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

from source_tree import Missing
from written import on_page, page_table, text_of

PACKAGE = Path("python/atp")
# Attributes that another page has, by class.
ELSEWHERE = {
    "Counters": ["[Counters](counters.md#ranks) lists the other attributes.", ""],
    "Options": ["[Options](options.md#table) lists the attributes.", ""],
}
HEADS = {"Args": ("argument", "is"), "Attributes": ("attribute", "is"), "Raises": ("exception", "means")}
SECTION = re.compile(r"^(Args|Raises|Attributes):$")
CODE = re.compile(r"`[^`]*`|\b(?:ATP|TORCH)_[A-Z_]+|\b\w+\(\)")

Definition = ast.FunctionDef | ast.ClassDef


def marked(text: str) -> str:
    return CODE.sub(lambda found: found[0] if found[0].startswith("`") else f"`{found[0]}`", text)


def table(section: str, text: str) -> list[str]:
    """Of the entries `NAME: MEANING`, whose further lines are indented."""
    entries = re.sub(r"\n {2,}(?=\S)", " ", textwrap.dedent(text)).splitlines()
    cells = [entry.partition(": ") for entry in entries]
    rows = [
        [", ".join(f"`{each}`" for each in name.split(", ")), marked(meaning.rstrip("."))] for name, _, meaning in cells
    ]
    return page_table(list(HEADS[section]), rows)


def page_of(docstring: str, name: str = "") -> list[str]:
    lines: list[str] = []
    section = ""
    for paragraph in docstring.split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if found := SECTION.match(head):
            section = found[1]
            if (section, name) != ("Attributes", "Options"):
                lines += [*table(section, rest), ""]
            lines += ELSEWHERE.get(name, []) if section == "Attributes" else []
        elif paragraph.startswith("    "):
            if not lines[-2:-1] == ["```"]:
                lines += ["```python", "```", ""]
            lines[-2:-2] = [*([""] if lines[-3] != "```python" else []), *textwrap.dedent(paragraph).splitlines()]
        elif section:
            raise Missing(f"a docstring goes on after {section}: {head}")
        else:
            lines += [*textwrap.wrap(marked(" ".join(paragraph.split())), 120), ""]
    return lines


def docstring_of(node: ast.Module | Definition, where: str) -> str:
    docstring = ast.get_docstring(node)
    if not docstring:
        raise Missing(f"{where} has no docstring: write one")
    return docstring


def modules(root: Path) -> dict[str, Definition]:
    """The definition of each name that the package imports from its modules; in public modules, if several have it."""
    found: dict[str, Definition] = {}
    for path in sorted((root / PACKAGE).glob("*.py"), key=lambda path: (path.name[0] == "_", path.name)):
        for node in ast.parse(text_of(root, path)).body:
            if isinstance(node, Definition) and path.name != "__init__.py":
                found.setdefault(node.name, node)
    return found


def signature(name: str, node: Definition) -> str:
    """Without types, which the docstring names where they matter."""
    if isinstance(node, ast.ClassDef):
        makers = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if not makers:
            return f"atp.{name}(**attributes)"
        node = makers[0]
    arguments = node.args
    for argument in (*arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    arguments.args = [each for each in arguments.args if each.arg != "self"]
    return f"atp.{name}({ast.unparse(arguments)})"


def public(root: Path) -> list[str]:
    for node in ast.parse(text_of(root, PACKAGE / "__init__.py")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    raise Missing(f"{PACKAGE}/__init__.py has no __all__")


def package(root: Path) -> str:
    path = PACKAGE / "__init__.py"
    return on_page(page_of(docstring_of(ast.parse(text_of(root, path)), str(path))))


def names(root: Path) -> str:
    known = modules(root)
    lines: list[str] = []
    for name in public(root):
        if name not in known:
            raise Missing(f"{PACKAGE} defines no {name}, which is in __all__")
        lines += [f"## {name}", "", "```python", signature(name, known[name]), "```", ""]
        lines += page_of(docstring_of(known[name], f"{PACKAGE}: {name}"), name)
    return on_page(lines)
