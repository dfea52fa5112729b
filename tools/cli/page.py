# SPDX-License-Identifier: Apache-2.0
"""The pages docs/reference/cli.md and cli-lab.md."""

from __future__ import annotations

import re
import textwrap

from cli.description import Command, Flag, Program

NOTE = "<!-- tools/write_cli writes this from `{} --describe`. -->"
END = "<!-- End of the written part. -->"

INTRODUCTIONS = {
    "atp": """# atp

Look up here every subcommand and flag of `atp`, which runs switches, measures, and diagnoses. `atp SUBCOMMAND --help`
prints what this page says, and so does `man atp-SUBCOMMAND` if the program was installed. What runs in the laboratory
is [`atp-lab`](cli-lab.md).""",
    "atp-lab": """# atp-lab

Look up here every subcommand and flag of `atp-lab`, the laboratory: simulator, model checker, figures, planner and
experiments. `atp-lab SUBCOMMAND --help` prints what this page says. What runs in production is [`atp`](cli.md).""",
}

BRACKETS = re.compile(r"[\[\]<>*]")


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, width=120, break_long_words=False, break_on_hyphens=False)


def cell(text: str) -> str:
    """Text of a table that shows each character, but for what is between backquotes."""
    pieces = re.split(r"(`[^`]*`)", text.replace("\n", "<br>").replace("|", "\\|"))
    return "".join(piece if piece.startswith("`") else shown(piece) for piece in pieces)


def shown(text: str) -> str:
    parts = text.split("<br>")
    return "<br>".join(BRACKETS.sub(lambda match: f"\\{match[0]}" if match[0] not in "<>" else
                                    {"<": "&lt;", ">": "&gt;"}[match[0]], part) for part in parts)  # fmt: skip


def code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


def row(*cells: str) -> str:
    return re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(cells)} |")


def flag_row(flag: Flag) -> str:
    label = ", ".join(flag.names) + (f" {flag.placeholder}" if flag.placeholder else "")
    text = f"{flag.text}. Required." if flag.required else flag.text
    return row(code(label), cell(text), cell(flag.values), cell(flag.default))


def section(program: Program, command: Command) -> list[str]:
    path = f"{program.name} {command.name}"
    lines = ["", f"## {path}", "", *wrapped(f"{command.description}."), "", "```", f"{path} {command.usage}", "```", ""]
    lines += ["| flag | does | accepts | default |", "|---|---|---|---|"]
    for argument in command.arguments:
        lines.append(row(code(argument.usage), cell(argument.help), cell(argument.values), cell(argument.default)))
    for heading, flags in command.groups:
        lines += [row(f"**{cell(heading)}**", "", "", ""), *map(flag_row, flags)]
    lines += ["", "Examples:" if len(command.examples) > 1 else "Example:", "", "```sh"]
    width = max((len(line) for line, _ in command.examples), default=0)
    lines += [f"{line:{width}}  # {effect}" for line, effect in command.examples] + ["```"]
    if command.files:
        lines += ["", "```", *command.files.rstrip("\n").split("\n"), "```"]
    status = "; ".join(f"{number} {when}" for number, when in command.exit)
    return [*lines, "", *wrapped(f"Exit status: {status}.")]


def page_of(program: Program) -> str:
    values: dict[str, str] = {}
    for command in program.commands:
        values.update(command.values)
    links = [f"[{command.name}](#{program.name}-{command.name})" for command in program.commands]
    lines = [INTRODUCTIONS[program.name], "", NOTE.format(program.name), "", *wrapped(" · ".join(links)), ""]
    lines += ["| value | looks like |", "|---|---|", *(row(code(name), cell(looks)) for name, looks in values.items())]
    for command in program.commands:
        lines += section(program, command)
    return "\n".join([*lines, "", END]) + "\n"
