# SPDX-License-Identifier: Apache-2.0
"""Shared by the checkers of this folder: modules as the build declares them, sources, lists of exceptions, output.

A checker prints one line per violation: `file:line: violation: next step`. It exits with 0 (no violations), 1
(violations) or 2 (bad arguments, or a missing input).
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

CPP_SUFFIXES = (".h", ".cc", ".c", ".cu")
KEYWORDS = {"SET", "VARIANT", "SOURCES", "USES", "PRIVATE_LINKS", "PUBLIC_LINKS", "DEFINITIONS", "APART"}
# Targets atp_... that are no modules.
AUXILIARY = {"c", "flags", "hardening", "checks", "libbpf", "torch_libraries", "highway_targets"}
COMMAND = re.compile(r"\b(\w+)\s*\(")


class Missing(Exception):
    """The checker cannot run: exit status 2."""


@dataclass
class Module:
    name: str
    set: str  # machine, driver, app or lab
    folder: Path
    prefix: str  # how its headers are included: "net", "apps/atp"
    line: int  # of its declaration in the CMakeLists.txt of the folder
    cmake: Path  # the file of its declaration
    variant: str = ""
    uses: dict[str, int] = field(default_factory=dict)  # module, line of its name
    by_hand: bool = False  # declared without atp_module(): it uses what it links

    def entry(self, use: str) -> str:
        """How the declaration of this module names a module that it uses."""
        return f"atp_{use} to target_link_libraries()" if self.by_hand else f"{use} to USES"


def parser_of(description: str, build: bool = False) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, metavar="FOLDER",
                        help="repository to check [that of this program]")  # fmt: skip
    if build:
        parser.add_argument(
            "build", type=Path, metavar="BUILD", help="a finished build of type Release, such as build/release"
        )
    return parser


def run(check, parser: argparse.ArgumentParser) -> int:
    """Runs check(arguments), which returns violations, and prints them."""
    arguments = parser.parse_args()
    arguments.root = arguments.root.resolve()
    try:
        if not arguments.root.is_dir():
            raise Missing(f"{arguments.root} is no folder: name the repository with --root")
        violations = check(arguments)
    except Missing as missing:
        print(f"{parser.prog}: {missing}", file=sys.stderr)
        return 2
    for violation in violations:
        print(violation)
    if violations:
        print(f"{parser.prog}: {len(violations)} violation{'s' if len(violations) > 1 else ''}")
        return 1
    print(f"{parser.prog}: no violations")
    return 0


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def without_comments(text: str) -> str:
    """C or C++ with each comment replaced by spaces; lines keep their numbers, strings stay."""
    pattern = r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|(//[^\n]*|/\*(?:.|\n)*?\*/)'
    return re.sub(pattern, lambda match: blank(match) if match[2] else match[0], text)


def without_strings(text: str) -> str:
    """The text of without_comments() with each literal replaced by spaces, but for the names in #include lines."""
    return re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', blank, text)


def commands_of(path: Path):
    """(name, line, [(argument, line)]) for each command of a CMakeLists.txt. Variables of set() are expanded."""
    text = re.sub(r"#[^\n]*", blank, path.read_text())
    variables: dict[str, list[tuple[str, int]]] = {}
    at = 0
    while match := COMMAND.search(text, at):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        at = end
        arguments = []
        for word in re.finditer(r'"(?:\\.|[^"\\])*"|[^\s"]+', text[match.end() : end - 1]):
            line = text.count("\n", 0, match.end() + word.start()) + 1
            variable = re.fullmatch(r"\$\{(\w+)\}", word[0])
            arguments += variables.get(variable[1], []) if variable else [(word[0], line)]
        name, line = match[1].lower(), text.count("\n", 0, match.start()) + 1
        if name == "set" and arguments:
            variables[arguments[0][0]] = arguments[1:]
        yield name, line, arguments


def linked_modules(arguments) -> dict[str, int]:
    """Names of modules in link targets: `atp_net`, `$<$<BOOL:${ATP_XDP}>:atp_xdp>`."""
    return {name: line for word, line in arguments for name in re.findall(r"(?<![\w$])atp_(\w+)", word)}


def module_of_call(path: Path, root: Path, line: int, arguments) -> Module:
    sections: dict[str, list[tuple[str, int]]] = {}
    section = ""
    for word, at in arguments[1:]:
        if word in KEYWORDS:
            section = word
        else:
            sections.setdefault(section, []).append((word, at))
    folder = path.parent
    prefix = f"apps/{folder.name}" if folder.parent == root / "src" / "apps" else folder.name
    first = lambda key: sections.get(key, [("", 0)])[0][0]  # noqa: E731
    module = Module(arguments[0][0], first("SET"), folder, prefix, line, path, first("VARIANT"))
    module.uses = dict(sections.get("USES", []))
    module.uses.update(linked_modules(sections.get("PRIVATE_LINKS", []) + sections.get("PUBLIC_LINKS", [])))
    return module


def modules_of(root: Path) -> list[Module]:
    """All modules of src, variants too, and the libraries beside them (the C library, the library for PyTorch)."""
    modules = []
    for path in [*sorted((root / "src").rglob("CMakeLists.txt")), root / "python" / "CMakeLists.txt"]:
        if not path.exists():
            continue
        others: dict[str, Module] = {}
        for name, line, arguments in commands_of(path):
            if name == "atp_module":
                modules.append(module_of_call(path, root, line, arguments))
            elif name == "add_library" and {"SHARED", "MODULE"} & {w for w, _ in arguments}:
                python = path.parent == root / "python"
                folder = path.parent / "csrc" if python else path.parent
                label = "python" if python else folder.name
                kind = "app" if python else "driver"
                others[arguments[0][0]] = Module(label, kind, folder, folder.name, line, path, by_hand=True)
            elif name == "target_link_libraries" and arguments and arguments[0][0] in others:
                others[arguments[0][0]].uses.update(linked_modules(arguments[1:]))
            elif name == "atp_use_headers" and arguments and arguments[0][0] in others:
                others[arguments[0][0]].uses.update(arguments[1:])
        for module in others.values():
            modules.append(module)
    if not modules:
        raise Missing(f"{root}/src declares no module: name the repository with --root")
    for module in modules:
        module.uses = {name: line for name, line in module.uses.items() if name not in AUXILIARY}
    return modules


def sources_of(module: Module) -> list[Path]:
    return sorted(path for path in module.folder.rglob("*") if path.suffix in CPP_SUFFIXES and path.is_file())


def exceptions_of(path: Path, fields: int) -> dict[tuple[str, ...], tuple[int, str]]:
    """A list of exceptions: `fields` words a line are the key, the rest is its value. Key: (line number, value)."""
    entries: dict[tuple[str, ...], tuple[int, str]] = {}
    if not path.exists():
        return entries
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, fields)
        if len(words) < fields:
            raise Missing(f"{path}:{number}: an entry has {fields} words or more")
        key = tuple(words[:fields])
        if key in entries:
            raise Missing(f"{path}:{number}: {' '.join(key)} is listed twice: remove one entry")
        entries[key] = (number, words[fields] if len(words) > fields else "")
    return entries


def number_of(path: Path, line: int, text: str) -> int:
    try:
        return int(text.split()[0])
    except (IndexError, ValueError):
        raise Missing(f"{path}:{line}: an entry ends in a number") from None


def lower_entries(path: Path, changes: dict[int, str | None]) -> None:
    """Rewrites the lines of a list of exceptions: line number, new text or None to remove it."""
    lines = path.read_text().splitlines()
    kept = [changes.get(number, line) for number, line in enumerate(lines, 1)]
    path.write_text("".join(f"{line}\n" for line in kept if line is not None))
