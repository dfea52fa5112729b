# SPDX-License-Identifier: Apache-2.0
"""Man pages: one of each program and one of each subcommand."""

from __future__ import annotations

import re
import textwrap

from cli.description import Argument, Command, Flag, Program

NOTE = '.\\" SPDX-License-Identifier: Apache-2.0\n.\\" tools/write_cli writes this page from `{} --describe`.'
WIDTH = 100


def escaped(text: str) -> str:
    """Text that roff prints as it is. All hyphens stay hyphens that a reader can copy."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    return text.replace("'", "\\(aq")


def prose(text: str) -> str:
    """Lines of text. Between backquotes it is bold; hyphens inside of words are those of a language."""
    pieces = re.split(r"`([^`]*)`", text)
    words = []
    for number, piece in enumerate(pieces):
        marked = escaped(piece) if number % 2 else re.sub(r"(?<=\w)\\-(?=\w)", "-", escaped(piece))
        words.append(f"\\fB{marked}\\fP" if number % 2 else marked)
    return "\n".join(line.replace("\n", "\n.br\n") for line in wrapped("".join(words)))


def wrapped(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += [".br"] if lines else []
        for line in textwrap.wrap(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False):
            lines.append(f"\\&{line}" if line.startswith((".", "'")) else line)
    return lines


def head(program: Program, title: str, summary: str) -> list[str]:
    summary = summary[0].lower() + summary[1:]
    if not re.match(r"[a-z]", summary) or summary.startswith("aTP"):
        summary = summary[0].upper() + summary[1:]
    return [
        NOTE.format(program.name),
        f'.TH {escaped(title.upper())} 1 "" "{escaped(program.name)} {program.version}" "ATP"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{escaped(title)} \\- {escaped(summary)}",
        ".SH SYNOPSIS",
    ]


def labelled(label: str, text: str) -> list[str]:
    return [".TP", label, prose(text)]


def suffix(values: str, default: str) -> str:
    return (f" ({values})" if values else "") + (f" [{default}]" if default else "")


def flag_lines(flag: Flag) -> list[str]:
    label = ", ".join(f"\\fB{escaped(name)}\\fP" for name in flag.names)
    if flag.placeholder:
        label += f" \\fI{escaped(flag.placeholder)}\\fP"
    return labelled(label, flag.text + suffix(flag.values, flag.default) + (" Required." if flag.required else ""))


def argument_lines(argument: Argument) -> list[str]:
    return labelled(f"\\fI{escaped(argument.usage)}\\fP", argument.help + suffix(argument.values, argument.default))


def see_also(pages: list[str]) -> list[str]:
    lines = [f".BR {escaped(page)} (1){',' if page != pages[-1] else ''}" for page in pages]
    return [".SH SEE ALSO", *lines]


def command_page(program: Program, command: Command) -> str:
    title = f"{program.name}-{command.name}"
    lines = head(program, title, command.description)
    lines += [f".B {escaped(program.name)} {escaped(command.name)}", escaped(command.usage)]
    lines += [".SH DESCRIPTION", prose(f"{command.description}.")]
    if command.arguments:
        lines += [".SH ARGUMENTS", *(line for argument in command.arguments for line in argument_lines(argument))]
    lines += [".SH OPTIONS"]
    for heading, flags in [*command.groups, ("Other", [command.help])]:
        lines += [f'.SS "{escaped(heading)}"', *(line for flag in flags for line in flag_lines(flag))]
    if command.values:
        lines += [".SH VALUES"]
        lines += [line for name, looks in command.values for line in labelled(f"\\fI{name}\\fP", looks)]
    lines += [".SH EXAMPLES"]
    for line, effect in command.examples:
        lines += [".TP", f"\\fB{escaped(line)}\\fP", prose(effect)]
    if command.files:
        lines += [".PP", ".EX", *(escaped(line) for line in command.files.rstrip("\n").split("\n")), ".EE"]
    lines += [".SH EXIT STATUS"]
    lines += [line for status, when in command.exit for line in labelled(f"\\fB{status}\\fP", when)]
    others = [program.name, *(f"{program.name}-{other.name}" for other in program.commands if other is not command)]
    return "\n".join([*lines, *see_also(others)]) + "\n"


def program_page(program: Program) -> str:
    lines = head(program, program.name, program.description)
    lines += [f".B {escaped(program.name)}", "\\fISUBCOMMAND\\fP [\\fIFLAGS\\fP]"]
    lines += [".SH DESCRIPTION", prose(f"{program.description}.")]
    lines += [".SH SUBCOMMANDS"]
    for command in program.commands:
        lines += [".TP", f".BR {escaped(f'{program.name}-{command.name}')} (1)", prose(command.description)]
    lines += [".SH OPTIONS", *(line for flag in program.flags for line in flag_lines(flag))]
    pages = [f"{program.name}-{command.name}" for command in program.commands]
    return "\n".join([*lines, *see_also(pages)]) + "\n"


def pages_of(program: Program) -> dict[str, str]:
    """The text of each page by the name of its file."""
    pages = {f"{program.name}.1": program_page(program)}
    for command in program.commands:
        pages[f"{program.name}-{command.name}.1"] = command_page(program, command)
    return pages
