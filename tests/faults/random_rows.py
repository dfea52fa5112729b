# SPDX-License-Identifier: Apache-2.0
"""Rows that a seed draws: a fault of a random kind, at a random process or link, at a random moment."""

from __future__ import annotations

import random
import re

import rows as table

SHAPES = {"star:4": ("sw",), "racks:2x2": ("rack0", "rack1", "core")}
ADDRESSES = {"sw": table.SWITCH, "core": table.ROOT, "rack0": table.LEAF_0, "rack1": table.LEAF_1}
DIRECTIONS = ("", ":up", ":down")
LONGEST_DELAY_SECONDS = 1.0


def name_of(seed, number):
    return f"random_{seed}_{number}"


def row_of(name):
    """The row of such a name; None for any other name."""
    match = re.fullmatch(r"random_(\d+)_(\d+)", name)
    if not match:
        return None
    draw = random.Random(name)
    shape = draw.choice(list(SHAPES))
    fault, cause, causes, evidence = draw.choice(_KINDS)(draw, shape)
    ends_rank = isinstance(fault, (table.Kill, table.Stop)) and cause.ranks
    reads = table.others(*cause.ranks) if ends_rank else table.ALL
    delay_seconds = draw.uniform(0, LONGEST_DELAY_SECONDS)
    return table.Row(name, shape, fault, cause, reads, evidence, causes, delay_seconds=delay_seconds)


def _end_of_process(draw, shape):
    switch = draw.random() < 0.5
    process = draw.choice(SHAPES[shape]) if switch else f"rank{draw.choice(table.ALL)}"
    cause = table.switch(ADDRESSES[process]) if switch else table.rank(int(process[4:]))
    fault = draw.choice((table.Kill, table.Stop))(process)
    return fault, cause, {}, isinstance(fault, table.Kill)


def _pause(draw, shape):
    process = draw.choice([*SHAPES[shape], *(f"rank{number}" for number in table.ALL)])
    return table.Pause(process, round(draw.uniform(0.1, 0.5) * table.HOLD_SECONDS, 1)), None, {}, False


def _cut_host(draw, shape):
    number = draw.choice(table.ALL)
    address = ADDRESSES[SHAPES[shape][number // 2 if shape == "racks:2x2" else 0]]
    direction = draw.choice(DIRECTIONS)
    # A switch that is heard but does not hear the rank tells it so.
    own = table.rank(number, address) if direction == ":up" else table.switch(address)
    return table.Link((f"cut@host{number}{direction}",)), table.rank(number), {number: own}, False


def _cut_rack(draw, shape):
    if shape != "racks:2x2":
        return _cut_host(draw, shape)
    rack = draw.choice((0, 1))
    fault = table.Link((f"cut@uplink{rack}{draw.choice(DIRECTIONS)}",))
    return fault, table.switch(ADDRESSES[f"rack{rack}"]), {}, False


def _lower_mtu(draw, _shape):
    number = draw.choice(table.ALL)
    return table.Mtu(f"h{number}", draw.randint(700, 1400)), table.rank(number, "MTU"), {}, True


def _noise(draw, shape):
    """Loss, copies and marks, which recovery must bear."""
    links = ["hosts", *(f"host{number}" for number in table.ALL)]
    links += ["uplinks", "uplink0", "uplink1"] if shape == "racks:2x2" else []
    kinds = (
        f"loss={draw.uniform(0.001, 0.02):.4f}",
        f"duplicates={draw.uniform(0.01, 0.5):.4f}",
        f"mark={draw.randint(1, 100)}mbit/{draw.randint(10, 100)}kB",
    )
    chosen = draw.sample(kinds, draw.randint(1, len(kinds)))
    faults = tuple(f"{kind}@{draw.choice(links)}{draw.choice(DIRECTIONS)}" for kind in chosen)
    return table.Link(faults), None, {}, False


_KINDS = (_end_of_process, _end_of_process, _pause, _cut_host, _cut_rack, _lower_mtu, _noise)
