# SPDX-License-Identifier: Apache-2.0
"""Completions for bash, zsh and fish."""

from __future__ import annotations

from cli.description import Argument, Command, Flag, Program

NOTE = "# SPDX-License-Identifier: Apache-2.0\n# tools/write_cli writes this from `{} --describe`."


def quoted(text: str) -> str:
    """A word of a shell, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def short(text: str) -> str:
    """One line without the marks of code."""
    return text.replace("\n", "; ").replace("`", "")


# ----------------------------------------------------------------------------------------------------------------- bash

BASH = """{note}
_{function}() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command='' flags='' words='' kind='' i
    # bash divides --flag=value into three words.
    if [[ $word == = ]]; then
        word=''
    elif [[ $before == = ]] && ((COMP_CWORD > 1)); then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
            {names}) command=${{COMP_WORDS[i]}} && break ;;
        esac
    done
    case $command in
{cases}
        *)
            flags={flags}
            words={commands}
            ;;
    esac
    COMPREPLY=()
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
        return
    fi
    case $kind in
        none) ;;
        file)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            ;;
        folder)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$word")
            ;;
        interface) mapfile -t COMPREPLY < <(cd /sys/class/net 2>/dev/null && compgen -f -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    esac
}}
complete -F _{function} {program}
"""


def function_of(program: Program) -> str:
    return program.name.replace("-", "_")


def bash_values(flag: Flag | Argument) -> str:
    return f"words={quoted(' '.join(flag.words))}" if flag.words else f"kind={flag.kind or 'none'}"


def bash_case(command: Command) -> list[str]:
    names = " ".join(name for flag in command.flags for name in flag.names)
    lines = [f"        {command.name})", f"            flags={quoted(names)}"]
    default = bash_values(command.arguments[0]) if command.arguments else "kind=none"
    by_values: dict[str, list[str]] = {}
    for flag in command.flags:
        if flag.placeholder:
            by_values.setdefault(bash_values(flag), []).extend(flag.names)
    lines.append("            case $before in")
    lines += [f"                {' | '.join(names)}) {values} ;;" for values, names in by_values.items()]
    return [*lines, f"                *) {default} ;;", "            esac", "            ;;"]


def bash(program: Program) -> str:
    return BASH.format(
        note=NOTE.format(program.name),
        function=function_of(program),
        program=program.name,
        names=" | ".join(command.name for command in program.commands),
        cases="\n".join(line for command in program.commands for line in bash_case(command)),
        flags=quoted(" ".join(name for flag in program.flags for name in flag.names)),
        commands=quoted(" ".join(command.name for command in program.commands)),
    )


# ------------------------------------------------------------------------------------------------------------------ zsh

ZSH = """#compdef {program}
{note}
_{function}() {{
    local curcontext=$curcontext state line ret=1
    local -a commands
    typeset -A opt_args
    _arguments -C \\
{flags} \\
        '1: :->command' \\
        '*:: :->argument' && ret=0
    case $state in
        command)
            commands=(
{commands}
            )
            _describe -t commands subcommand commands && ret=0
            ;;
        argument)
            case $line[1] in
{cases}
            esac
            ;;
    esac
    return ret
}}
_{function} "$@"
"""
ZSH_KINDS = {"file": "_files", "folder": "_files -/", "interface": "_net_interfaces"}


def zsh_text(text: str) -> str:
    """The explanation of a flag."""
    return short(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def zsh_action(flag: Flag | Argument) -> str:
    """The name of a value, and what completes it."""
    name = flag.placeholder.replace(":", "\\:")
    action = f"({' '.join(flag.words)})" if flag.words else ZSH_KINDS.get(flag.kind, " ")
    return f"{name}:{action}"


def zsh_specs(flag: Flag) -> list[str]:
    specs = []
    for name in flag.names:
        others = f"({' '.join(flag.names)})" if len(flag.names) > 1 else ""
        prefix = "*" if flag.repeats else others
        value = f"=[{zsh_text(flag.text)}]:{zsh_action(flag)}" if flag.placeholder else f"[{zsh_text(flag.text)}]"
        specs.append(quoted(f"{prefix}{name}{value}"))
    return specs


def zsh_case(command: Command) -> list[str]:
    specs = [spec for flag in command.flags for spec in zsh_specs(flag)]
    for number, argument in enumerate(command.arguments, 1):
        specs.append(quoted(f"{'*' if argument.many else number}:{zsh_action(argument)}"))
    lines = [f"                {command.name})", "                    _arguments \\"]
    lines += [f"                        {spec} \\" for spec in specs]
    return [*lines[:-1], f"{lines[-1].removesuffix(' ' + chr(92))} && ret=0", "                    ;;"]


def zsh(program: Program) -> str:
    commands = [f"{command.name}:{short(command.description)}" for command in program.commands]
    return ZSH.format(
        note=NOTE.format(program.name),
        function=function_of(program),
        program=program.name,
        flags=" \\\n".join(f"        {spec}" for flag in program.flags for spec in zsh_specs(flag)),
        commands="\n".join(f"                {quoted(command)}" for command in commands),
        cases="\n".join(line for command in program.commands for line in zsh_case(command)),
    )


# ----------------------------------------------------------------------------------------------------------------- fish

FISH_KINDS = {
    "file": "-r -F",
    "folder": "-x -a '(__fish_complete_directories)'",
    "interface": "-x -a '(__fish_print_interfaces)'",
}


def fish_text(text: str) -> str:
    return "'" + short(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_values(flag: Flag | Argument) -> str:
    return f"-x -a {fish_text(' '.join(flag.words))}" if flag.words else FISH_KINDS.get(flag.kind, "-x")


def fish_flag(program: Program, condition: str, flag: Flag) -> list[str]:
    lines = []
    for name in flag.names:
        option = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        value = f" {fish_values(flag)}" if flag.placeholder else ""
        lines.append(f"complete -c {program.name} -n {condition} {option}{value} -d {fish_text(flag.text)}")
    return lines


def fish(program: Program) -> str:
    no_command = "__fish_use_subcommand"
    lines = [NOTE.format(program.name), f"complete -c {program.name} -f"]
    for flag in program.flags:
        lines += fish_flag(program, no_command, flag)
    for command in program.commands:
        text = fish_text(command.description)
        lines.append(f"complete -c {program.name} -n {no_command} -a {command.name} -d {text}")
    for command in program.commands:
        seen = fish_text(f"__fish_seen_subcommand_from {command.name}")
        for argument in command.arguments:
            values = {"file": "-F"}.get(argument.kind, "")
            if argument.words:
                values = f"-a {fish_text(' '.join(argument.words))}"
            if values:
                lines.append(f"complete -c {program.name} -n {seen} {values} -d {fish_text(argument.help)}")
        for flag in command.flags:
            lines += fish_flag(program, seen, flag)
    return "\n".join(lines) + "\n"
