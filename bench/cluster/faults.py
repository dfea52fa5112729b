# SPDX-License-Identifier: Apache-2.0
"""Faults of links: parses --fault, and sets the faults at the ends of links with the program link_fault."""

import json
import os
import re
from dataclasses import dataclass

import processes

PROGRAM = "link_fault"
DIRECTIONS = ("up", "down")
COUNTS_OF_FAULTS = ("cut", "too_long", "lost", "marked", "duplicated", "delayed")
EXIT_UNAVAILABLE = 77

LONGEST_BYTES = 65_535
MOST_BPS = 10**12
MOST_QUEUE_BYTES = 10**9

BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "kib": 2**10, "mib": 2**20}
BITS = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}

FORMS = "FAULT@LINK or FAULT@LINK:up or FAULT@LINK:down"
KINDS = "loss=SHARE, drop>BYTES, duplicates=SHARE, reorder=SHARE, mark=RATE/SIZE and cut"


class Unavailable(Exception):
    """This kernel or user cannot make faults."""


@dataclass(frozen=True)
class Fault:
    """One fault of --fault. `setting` is the argument of link_fault, `place` names links, and `directions` holds `up`
    (from the node below), `down`, or both."""

    text: str
    setting: str
    place: str
    directions: tuple

    @property
    def kind(self):
        return self.setting.partition("=")[0]


def parse(text):
    """Parses `loss=1%@host2:up`; for other text, raises ValueError with the reason."""
    match = re.fullmatch(r"([^@]+)@([a-z]+\d*)(?::(up|down))?", text)
    if not match:
        raise ValueError(f"'{text}' is not accepted: write {FORMS}")
    fault, place, direction = match.groups()
    return Fault(text, _setting_of(fault), place, (direction,) if direction else DIRECTIONS)


def _setting_of(text):
    if text == "cut":
        return text
    name, sign, value = re.fullmatch(r"([a-z]*)([=>]?)(.*)", text).groups()
    if (name, sign) in (("loss", "="), ("duplicates", "=")):
        return f"{name}={_share(text, value):.12f}"
    if (name, sign) == ("reorder", "="):
        return f"delays={_share(text, value):.12f}"
    if (name, sign) == ("drop", ">"):
        return f"longest={_quantity(text, value, BYTES, LONGEST_BYTES)}"
    if (name, sign) == ("mark", "="):
        rate, slash, size = value.partition("/")
        if not slash:
            raise ValueError(f"'{text}' is not accepted: write mark=RATE/SIZE, such as mark=400mbit/64KiB")
        return f"mark={_quantity(text, rate, BITS, MOST_BPS)}/{_quantity(text, size, BYTES, MOST_QUEUE_BYTES)}"
    raise ValueError(f"'{text}' is not accepted: faults are {KINDS}")


def _share(text, value):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", value)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0
    if not 0 < share <= 1:
        raise ValueError(f"'{text}' is not accepted: write a share above 0 and at most 1, such as 0.001 or 0.1%")
    return share


def _quantity(text, value, units, most):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", value.lower())
    quantity = round(float(match[1]) * units[match[2]]) if match and match[2] in units else 0
    if not 1 <= quantity <= most:
        raise ValueError(f"'{text}' is not accepted: write a quantity from 1 to {most}, in {_names_of(units)}")
    return quantity


def _names_of(units):
    return "bytes, kB, MB, KiB or MiB" if units is BYTES else "bit, kbit, mbit or gbit"


def ends_of(shape, faults):
    """Settings by end of a link, which is (node below, direction). Raises ValueError if a topology lacks a link, or an
    end has two faults of a kind."""
    settings = {}
    for fault in faults:
        for below in _nodes_below(shape, fault):
            for direction in fault.directions:
                of_end = settings.setdefault((below, direction), {})
                if fault.kind in of_end:
                    raise ValueError(f"'{fault.text}' is a second fault of its kind at this link: keep one of them")
                of_end[fault.kind] = fault.setting
    return {end: tuple(of_end.values()) for end, of_end in settings.items()}


def _nodes_below(shape, fault):
    """The lower nodes of the links that a fault names."""
    hosts = {f"host{number}": host for number, host in enumerate(shape.hosts)}
    racks = {f"uplink{number}": rack for number, rack in enumerate(rack for rack in shape.switches if rack.parent)}
    groups = {"hosts": list(hosts.values()), "uplinks": list(racks.values())}
    links = {**hosts, **racks, **({"server": shape.server} if shape.server else {})}
    named = groups.get(fault.place) or ([links[fault.place]] if fault.place in links else [])
    if not named:
        known = [f"host0 to host{len(hosts) - 1}", "hosts"]
        known += [f"uplink0 to uplink{len(racks) - 1}", "uplinks"] if racks else []
        known += ["server"] if shape.server else []
        raise ValueError(f"'{fault.text}' names no link: links of {shape.text} are {', '.join(known)}")
    return named


class LinkFaults:
    """Faults at the ends of a network's links. They end with the network. `program` is the path of link_fault."""

    def __init__(self, network, program):
        self._network = network
        self._program = program
        self._ends = {}  # of all faults so far, in the order of their seeds

    def set(self, settings, seed=1):
        """Sets the faults of ends, in place of their earlier ones; {(node below, direction): settings}. Each end has a
        seed of its own."""
        for end, of_end in settings.items():
            number = self._ends.setdefault(end, len(self._ends))
            node, device, _ = self._network.end_of_link(*end)
            if any(setting.startswith("delays=") for setting in of_end):
                self._network.add_slow_class(node, device)
            self._run(node, "set", device, *of_end, f"seed={(seed + number) % 2**32}")

    def clear(self):
        """Removes all faults and their counts."""
        for end in self._ends:
            node, device, _ = self._network.end_of_link(*end)
            self._run(node, "clear", device)
        self._ends = {}

    def counts(self):
        """Counts of each end that has or had a fault: {(from, to): {name: count}}."""
        counts = {}
        for end in self._ends:
            node, device, names = self._network.end_of_link(*end)
            counts[names] = json.loads(self._run(node, "counts", device))
        return counts

    def _run(self, node, *words):
        if not os.access(self._program, os.X_OK):
            raise Unavailable(f"program {self._program} is missing: build the target {PROGRAM}, which needs clang")
        try:
            return processes.output_of(self._network.entry(node), [self._program, *words])
        except processes.Failed as error:
            if error.status == EXIT_UNAVAILABLE:
                raise Unavailable(str(error)) from error
            raise


def difference(before, after):
    return {
        end: {name: count - before.get(end, {}).get(name, 0) for name, count in counts.items()}
        for end, counts in after.items()
    }


def sum_of(turns):
    """Adds the counts of several turns: {"h2 to sw": {name: count}}."""
    total = {}
    for turn in turns:
        for (sender, receiver), counts in turn.items():
            of_end = total.setdefault(f"{sender} to {receiver}", dict.fromkeys(counts, 0))
            for name, count in counts.items():
                of_end[name] += count
    return total


def describe(total):
    """Lines of a report about the counts of a system: what happened at each end."""
    lines = []
    for end, counts in total.items():
        happened = [f"{counts[name]} {name.replace('_', ' ')}" for name in COUNTS_OF_FAULTS if counts[name]]
        lines.append(f"{end}: {counts['frames']} frames, {', '.join(happened) or 'none affected'}")
    return lines
