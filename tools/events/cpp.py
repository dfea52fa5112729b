# SPDX-License-Identifier: Apache-2.0
"""Events and counters in C++, C and Python: the tables of observe/events.{h,cc}, structs of counters with their tables, and
the levels and events of python/atp/_log.py."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

from events.definition import Counter, Definition, Group
from written import WIDTH, c_comment, cpp_comment, members


def text(lines: list[str]) -> str:
    return "\n".join([*lines, ""])


def quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


# ------------------------------------------------------------------------------------------------------------- Severities


def levels(definition: Definition) -> dict[str, int]:
    """The level of each severity in Python, and that of a log that writes nothing."""
    return {**{severity.name: severity.python for severity in definition.severities}, "off": 51}


def severities(definition: Definition) -> str:
    names = list(levels(definition))
    rows = [(f"{severity.name},", severity.meaning) for severity in definition.severities]
    return text([
        "// In the order of importance. As the level of a log: lines of this severity and of the ones after it are written.",
        "enum class Severity : std::uint8_t {",
        *members([*rows, ("off,", "level only: writes nothing")], cpp_comment),
        "};",
        f'inline constexpr std::string_view severity_forms = "{", ".join(names[:-1])} or {names[-1]}";',
    ])  # fmt: skip


def severity_names(definition: Definition) -> str:
    names = list(levels(definition))
    return f"constexpr std::array<std::string_view, {len(names)}> severities{{{quoted(names)}}};\n"


def python_levels(definition: Definition) -> str:
    numbers = ", ".join(str(level) for level in levels(definition).values())
    return f"constexpr std::array python_levels{{{numbers}}};  // of module logging, by observe::Severity\n"


def python(definition: Definition) -> str:
    pairs = ", ".join(f'"{name}": {level}' for name, level in levels(definition).items())
    names = [f'{event.identifier.upper()} = "{event.name}"' for event in definition.events_of("python")]
    return text([f"_LEVELS = {{{pairs}}}", *names])


# ----------------------------------------------------------------------------------------------------------------- Events


def events(definition: Definition) -> str:
    names = [f"    {event.identifier}," for event in definition.events_of("switch", "rank")]
    return text(["enum class LogEvent : std::uint8_t {", *names, "};"])


def event_rows(definition: Definition) -> str:
    lines = ["// clang-format off", "constexpr std::array table{"]
    for event in definition.events_of("switch", "rank"):
        keys = quoted([event.switch, event.rank])
        lines.append(f'    EventRow{{"{event.name}", Severity::{event.severity}, {{{keys}}}}},')
    return text([*lines, "};", "// clang-format on"])


# --------------------------------------------------------------------------------------------------------------- Counters

# The namespaces of the tables that metrics of a switch show.
SPACES = {
    "switch": "protocol",
    "shard": "client",
    "tree": "control",
    "udp": "net",
    "kernel": "client",
    "server": "protocol",
}


def counter_row(group: Group, counter: Counter) -> str:
    member, _, index = (counter.member or counter.name).rstrip("]").partition("[")
    place = f"&{group.struct}::{member}" + (f", {index}" if index else "")
    return f'    counter<{place}>("{counter.name}"),'


def counters(name: str) -> Callable[[Definition], str]:
    """The struct of a group, unless a person writes it, and its table."""

    def write(definition: Definition) -> str:
        group = definition.groups[name]
        comment = cpp_comment(group.meaning)
        table = [counter_row(group, each) for each in group.counter if not each.only]
        lines = [f"inline constexpr std::array {group.table}{{", *table, "};"]
        if group.by_hand:
            return text([*comment, *lines])
        rows = [(f"std::uint64_t {each.member or each.name} = 0;", each.text)
                for each in group.counter if each.only != "page"]  # fmt: skip
        return text([*comment, f"struct {group.struct} {{", *members(rows, cpp_comment), "};", "", *lines])

    return write


def plain(markdown: str) -> str:
    """Without the marks of code and links, and without a character that a string of C++ escapes."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "").replace('"', "'")


def helps(name: str, space: str = "") -> Callable[[Definition], str]:
    """What each counter of a group counts, as metrics explain it, in the order of the group's table in this namespace."""

    def write(definition: Definition) -> str:
        group = definition.groups[name]
        lines = [
            "// clang-format off",
            f"constexpr std::array<std::string_view, {space}{group.table}.size()> {name}_help{{",
        ]
        for counter in group.counter:
            if counter.only:
                continue
            grows = "" if counter.grows.startswith("normal") else f". If it grows: {counter.grows}"
            sentence = plain(f"{counter.unit[0].upper()}{counter.unit[1:]} {counter.counts}{grows}")
            pieces = textwrap.wrap(sentence, WIDTH - 8, drop_whitespace=False)
            lines += [f'    "{piece}"' for piece in pieces]
            lines[-1] += ","
        return text([*lines, "};", "// clang-format on"])

    return write


def shown(definition: Definition) -> dict[str, list[str]]:
    """The names of the counters that are shown as the same, by what they are shown as."""
    found: dict[str, list[str]] = {}
    for group in definition.groups.values():
        for counter in group.counter:
            if counter.shown:
                found.setdefault(counter.shown, []).append(counter.name)
    return found


def shown_in_cpp(definition: Definition) -> str:
    rows = [f"inline constexpr std::string_view {what}_counters[] = {{{quoted(names)}}};"
            for what, names in shown(definition).items()]  # fmt: skip
    return text(rows)


def shown_in_page(definition: Definition) -> str:
    rows = [f"const {what.upper()} = [{quoted(names)}];".replace('"', "'") for what, names in shown(definition).items()]
    return text(rows)


def c_struct(name: str) -> Callable[[Definition], str]:
    """A struct of atp.h. Its members are in the order of the binary interface: append only."""

    def write(definition: Definition) -> str:
        group = definition.groups[name]
        rows = [(f"uint64_t {each.name};", each.text) for each in group.counter]
        size = "    /* Written by the function that writes the counters. */\n    size_t struct_size;"
        return text([*c_comment(group.meaning), "struct atp_counters {", size, *members(rows, c_comment), "};"])

    return write


def c_copies(name: str) -> Callable[[Definition], str]:
    def write(definition: Definition) -> str:
        group = definition.groups[name]
        return text([
            f"atp_counters counters_from(const comm::{group.struct}& counted) {{",
            "    atp_counters known{};",
            *(f"    known.{each.name} = counted.{each.name};" for each in group.counter),
            "    return known;",
            "}",
        ])  # fmt: skip

    return write


def python_class(name: str) -> Callable[[Definition], str]:
    def write(definition: Definition) -> str:
        group = definition.groups[name]
        meaning = textwrap.wrap(group.meaning, WIDTH, initial_indent='    """', subsequent_indent="    ")
        fields = [f"    {each.name}: int  # {each.text}" for each in group.counter]
        head = ["@dataclass(frozen=True)", f"class {group.struct}:"]
        return text([*head, *meaning, '    """', "", *fields, "", ""])

    return write
