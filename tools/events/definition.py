# SPDX-License-Identifier: Apache-2.0
"""The definition of events and counters, src/events.toml, as objects. Keys of the file are the names of the attributes.
read() refuses what a writer could not follow, with the line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from written import Bad, built, text_of, toml_of, unique

REPORT = Path("drivers/client/switch_report.cc")  # below the folder of the definition: writes the reports
LOGGERS = ("switch", "rank", "python")
# Sections of docs/reference/counters.md.
PAGES = ("packets", "threads", "kernel", "servers", "workers", "ranks", "benchmarks")


@dataclass
class Severity:
    name: str
    meaning: str
    python: int  # its level in Python's module logging
    default: list[str] = field(default_factory=list)  # who writes it by default


@dataclass
class Event:
    name: str
    severity: str
    when: str
    switch: str = ""
    rank: str = ""
    python: str = ""
    limit: str = ""
    do: str = ""

    @property
    def identifier(self) -> str:
        return self.name.replace(" ", "_")

    @property
    def keys(self) -> dict[str, str]:
        """The keys of a line by who writes it."""
        return {logger: getattr(self, logger) for logger in LOGGERS if getattr(self, logger)}


@dataclass
class Key:
    name: str
    meaning: str


@dataclass
class Counter:
    name: str
    unit: str
    counts: str
    grows: str = "normal"
    member: str = ""
    only: str = ""
    shown: str = ""

    @property
    def text(self) -> str:
        return f"{self.unit} {self.counts}"


@dataclass
class Group:
    meaning: str
    struct: str
    table: str
    page: str
    counter: list[Counter]
    prefix: str = ""
    by_hand: bool = False


@dataclass
class Definition:
    severities: list[Severity]
    events: list[Event]
    keys: list[Key]  # of events
    report: list[Key]
    slowest: list[Key]
    groups: dict[str, Group]

    def events_of(self, *loggers: str) -> list[Event]:
        return [event for event in self.events if any(getattr(event, logger) for logger in loggers)]


class Reader:
    """Reads the file, and knows the line of each entry, which has one line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = text_of(Path(), path).splitlines()
        self.data = toml_of(path)

    def where(self, list_of: str, name: str) -> str:
        """`list_of`: the line before the first entry."""
        begin = self._lines.index(list_of) if list_of in self._lines else 0
        entry = f'name = "{name}"'
        found = (number for number, line in enumerate(self._lines, 1) if number > begin and entry in line)
        return f"{self._path}:{next(found, begin + 1)}: {name}"

    def entries(self, kind: type, list_of: str, tables: list[dict]) -> list[Any]:
        items = [built(kind, self.where(list_of, str(table.get("name", "?"))), table) for table in tables]
        unique(items, f"{self._path}: {list_of}")
        return items


def check_event(definition: Definition, where: str, event: Event) -> None:
    severities = [severity.name for severity in definition.severities]
    if event.severity not in severities:
        raise Bad(f"{where} has the unknown severity {event.severity}: use {', '.join(severities)}")
    if not re.fullmatch(r"[a-z][a-z0-9]*( [a-z0-9]+)+", event.name):
        raise Bad(f"{where} is no noun and verb in small letters")
    if not event.keys:
        raise Bad(f"{where}: nobody writes it: add the keys of {' or '.join(LOGGERS)}")
    known = {key.name for key in definition.keys}
    for key in " ".join(event.keys.values()).split():
        if key.rstrip("?") not in known:
            raise Bad(f"{where} has the unknown key {key}: define it")


def check_counter(where: str, counter: Counter) -> None:
    if counter.only not in ("", "struct", "page"):
        raise Bad(f"{where} is only for {counter.only}: use struct or page")


def check_report(path: Path, definition: Definition, code: str) -> None:
    written = set(re.findall(r'archive\.\w+\("(\w+)"', code))
    defined = {key.name.removesuffix("[]").split(".")[-1] for key in (*definition.report, *definition.slowest)}
    for name in sorted(written ^ defined):
        raise Bad(
            f"{path}: {name} is a key of a report {'without a meaning' if name in written else 'no longer'}: {REPORT}"
        )


def read(path: Path) -> Definition:
    reader = Reader(path)
    data = reader.data
    if unknown := data.keys() - {"severity", "event", "key", "report", "slowest", "counters"}:
        raise Bad(f"{path}: unknown table {sorted(unknown)[0]}")
    groups = {}
    for name, table in data.get("counters", {}).items():
        header = f"[counters.{name}]"
        counters = reader.entries(Counter, header, table.pop("counter", []))
        groups[name] = built(Group, reader.where(header, name), {**table, "counter": counters})
        if groups[name].page not in PAGES:
            raise Bad(f"{reader.where(header, name)} has the unknown page {groups[name].page}: use {', '.join(PAGES)}")
        for counter in counters:
            check_counter(reader.where(header, counter.name), counter)
    lists = {"severity": Severity, "event": Event, "key": Key, "report": Key, "slowest": Key}
    found = [reader.entries(kind, f"{name} = [", data.get(name, [])) for name, kind in lists.items()]
    definition = Definition(*found, groups)
    for event in definition.events:
        check_event(definition, reader.where("event = [", event.name), event)
    used = {key.rstrip("?") for event in definition.events for keys in event.keys.values() for key in keys.split()}
    for key in definition.keys:
        if key.name not in used:
            raise Bad(f"{reader.where('key = [', key.name)} is a key of no event: remove it")
    check_report(path, definition, text_of(path.parent, REPORT))
    return definition
