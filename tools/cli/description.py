# SPDX-License-Identifier: Apache-2.0
"""A program's commands, as `atp --describe` prints them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from source_tree import Missing

# What a shell completes for a value of this name, besides words.
KINDS = {"FILE": "file", "FOLDER": "folder", "INTERFACE": "interface", "INTERFACES": "interface"}


@dataclass(frozen=True)
class Flag:
    names: tuple[str, ...]
    help: str
    default: str
    required: bool
    placeholder: str = ""  # empty: the flag takes no value
    repeats: bool = False
    values: str = ""
    words: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return KINDS.get(self.placeholder, "")

    @property
    def text(self) -> str:
        return f"{self.help}; may be repeated" if self.repeats else self.help


@dataclass(frozen=True)
class Argument:
    usage: str
    placeholder: str
    many: bool
    required: bool
    help: str
    values: str
    words: tuple[str, ...]
    default: str

    @property
    def kind(self) -> str:
        return KINDS.get(self.placeholder, "")


@dataclass(frozen=True)
class Command:
    name: str
    description: str
    arguments: list[Argument]
    groups: list[tuple[str, list[Flag]]]
    help: Flag
    values: list[tuple[str, str]]  # name, how it looks
    examples: list[tuple[str, str]]  # line, effect
    files: str
    exit: list[tuple[int, str]]

    @property
    def flags(self) -> list[Flag]:
        return [*(flag for _, flags in self.groups for flag in flags), self.help]

    @property
    def usage(self) -> str:
        """What follows the name of the command."""
        required = [f"{flag.names[0]} {flag.placeholder}" for flag in self.flags if flag.required]
        return " ".join([*required, "[FLAGS]", *(argument.usage for argument in self.arguments)])


@dataclass(frozen=True)
class Program:
    name: str
    description: str
    version: str
    flags: list[Flag]
    commands: list[Command]


def tuples(cells: dict) -> dict:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in cells.items()}


def command_of(cells: dict) -> Command:
    return Command(
        name=cells["name"],
        description=cells["description"],
        arguments=[Argument(**tuples(argument)) for argument in cells["arguments"]],
        groups=[(group["heading"], [Flag(**tuples(flag)) for flag in group["flags"]]) for group in cells["groups"]],
        help=Flag(**tuples(cells["help"])),
        values=[(value["name"], value["looks"]) for value in cells["values"]],
        examples=[(example["line"], example["effect"]) for example in cells["examples"]],
        files=cells["files"],
        exit=[(one["status"], one["when"]) for one in cells["exit"]],
    )


def read(program: Path) -> Program:
    try:
        printed = subprocess.run([program, "--describe"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise Missing(f"{program} does not run ({error.strerror}): build it") from None
    try:
        cells = json.loads(printed.stdout)
    except ValueError:
        raise Missing(f"{program} --describe prints no JSON, exit status {printed.returncode}") from None
    flags = [Flag(**tuples(flag)) for flag in cells["flags"]]
    commands = [command_of(command) for command in cells["commands"]]
    return Program(cells["name"], cells["description"], cells["version"], flags, commands)
