# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reference/{events,counters}.md."""

from __future__ import annotations

from collections.abc import Callable

from events.definition import Definition, Event
from written import on_page, page_table

# How a switch and a rank write a severity that they do not write by default.
SETTINGS = {"switch": "`--log-level {}`", "rank": "`ATP_LOG={}`"}


def severities(definition: Definition) -> str:
    rows = []
    for severity in definition.severities:
        if severity.name in {event.severity for event in definition.events}:
            written = [
                "written by default" if logger in severity.default else setting.format(severity.name)
                for logger, setting in SETTINGS.items()
            ]
            rows.append([f"`{severity.name}`", severity.meaning, *written])
    return on_page(page_table(["severity", "is for", *SETTINGS], rows))


def keys_of(event: Event) -> str:
    keys = event.keys
    if len(keys) > 1 and len(set(keys.values())) == 1:
        return f"`{event.switch}`"
    return "; ".join(f"{logger}: `{words}`" for logger, words in keys.items())


def events(*loggers: str) -> Callable[[Definition], str]:
    def write(definition: Definition) -> str:
        rows = [
            [
                f"`{event.name}`",
                event.severity,
                keys_of(event),
                event.when + (event.limit and f". At most {event.limit}"),
                event.do,
            ]
            for event in definition.events_of(*loggers)
        ]
        return on_page(page_table(["event", "severity", "keys", "written when", "what you do"], rows))

    return write


def keys(of: str) -> Callable[[Definition], str]:
    def write(definition: Definition) -> str:
        rows = [[f"`{key.name}`", key.meaning] for key in getattr(definition, of)]
        return on_page(page_table(["key", "holds"], rows))

    return write


def counters(page: str) -> Callable[[Definition], str]:
    def write(definition: Definition) -> str:
        rows = [
            [f"`{group.prefix}{each.name}`", each.text, each.grows]
            for group in definition.groups.values()
            if group.page == page
            for each in group.counter
            if each.only != "struct"
        ]
        return on_page(page_table(["counter", "counts", "if it grows"], rows))

    return write
