# SPDX-License-Identifier: Apache-2.0
"""The table of faults: for each one, what is broken, and the cause that each rank must read. Data only; job.py makes
the faults and verdict.py compares.

Jobs: `star:4` is one rack, with the switch `sw`. `racks:2x2` has ranks 0 and 1 under the leaf `rack0`, ranks 2 and 3
under the leaf `rack1`, and the root `core`. Rank r runs on the host `h<r>`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

# Silence for so long is a failure. Switches get it as --hold; the ranks' own limit must be equal.
HOLD_SECONDS = 3
# A fault with evidence must be named before silence alone could be the reason.
EVIDENCE_SECONDS = 0.8 * HOLD_SECONDS
# All others, with room for a busy machine. The harness waits for so long; how soon a rank reads its error is a result.
SILENCE_SECONDS = HOLD_SECONDS + 8

SWITCH = r"10\.77\.0\.1(?!\d)"  # of one rack; in two racks the root
ROOT = SWITCH
LEAF_0 = r"10\.77\.1\.1(?!\d)"
LEAF_1 = r"10\.77\.2\.1(?!\d)"


@dataclass(frozen=True)
class Kill:
    """SIGKILL to the process of a rank (`rank2`) or of a switch (by its node: `sw`, `rack1`, `core`)."""

    process: str


@dataclass(frozen=True)
class Stop:
    """SIGSTOP until the row is over."""

    process: str


@dataclass(frozen=True)
class Pause:
    """SIGSTOP, and SIGCONT after less than the hold time."""

    process: str
    seconds: float = 0.4 * HOLD_SECONDS


@dataclass(frozen=True)
class Link:
    """Faults of links, as bench/cluster/run --fault has them."""

    faults: tuple


@dataclass(frozen=True)
class Mtu:
    """Lowers the MTU of a host's interface."""

    host: str
    bytes: int = 1000


@dataclass(frozen=True)
class Differ:
    """One rank makes another call than the others in the midst of the job; `flags` are those of rank.py."""

    rank: int
    flags: tuple


@dataclass(frozen=True)
class Start:
    """One rank starts with other arguments; `flags` replace those of rank.py."""

    rank: int
    flags: tuple


@dataclass(frozen=True)
class Cause:
    """What a rank must read: each of `words` (regular expressions), all of `ranks` by number, and no other rank."""

    ranks: tuple = ()
    words: tuple = ()


Fault = Union[Kill, Stop, Pause, Link, Mtu, Differ, Start]


@dataclass(frozen=True)
class Row:
    """One fault. `cause` is what each rank that `reads` must name; `causes` replaces it for some ranks. Without a cause
    nothing is wrong: no rank may read an error, and all go on.

    `evidence`: the fault leaves a trace from which it must be named at once; without, silence must be. If `today` is
    not empty, the row is expected to fail: it says what ranks read today."""

    name: str
    shape: str
    fault: Fault
    cause: Cause | None
    reads: tuple
    evidence: bool = False
    causes: dict = field(default_factory=dict)
    program: str = "rank.py"
    delay_seconds: float = 0.0  # from the first sums to the fault
    today: str = ""

    def cause_of(self, rank):
        return self.causes.get(rank, self.cause)

    def limit_seconds(self):
        return EVIDENCE_SECONDS if self.evidence else SILENCE_SECONDS


ALL = (0, 1, 2, 3)


def others(*culprits):
    return tuple(rank for rank in ALL if rank not in culprits)


def rank(number, *words):
    return Cause((number,), words)


def switch(*words):
    return Cause((), words)


ROWS = (
    # One rack: processes
    Row("rank_killed", "star:4", Kill("rank2"), rank(2), others(2), evidence=True),
    Row("rank_0_killed", "star:4", Kill("rank0"), rank(0), others(0), evidence=True),
    Row("rank_stopped", "star:4", Stop("rank2"), rank(2), others(2)),
    Row("switch_killed", "star:4", Kill("sw"), switch(SWITCH), ALL, evidence=True),
    Row("switch_stopped", "star:4", Stop("sw"), switch(SWITCH), ALL),
    Row("embedded_switch_killed", "star:3", Kill("rank0"), rank(0), (1, 2), evidence=True, program="rank_torch.py"),
    Row("embedded_switch_stopped", "star:3", Stop("rank0"), rank(0), (1, 2), program="rank_torch.py"),
    # One rack: links
    Row("host_cut", "star:4", Link(("cut@host2",)), rank(2), ALL, causes={2: switch(SWITCH)}),
    Row("link_cut_up", "star:4", Link(("cut@host2:up",)), rank(2), ALL, causes={2: rank(2, SWITCH)}),
    Row("link_cut_down", "star:4", Link(("cut@host2:down",)), rank(2), ALL, causes={2: switch(SWITCH)}),
    Row("mtu_lowered", "star:4", Mtu("h2"), rank(2, "MTU"), ALL, evidence=True),
    Row("long_packets_lost_up", "star:4", Link(("drop>1000@host2:up",)), rank(2, "MTU|long"), ALL),
    Row("long_packets_lost_down", "star:4", Link(("drop>1000@host2:down",)), rank(2, "MTU|long"), ALL),
    # One rack: disagreement
    Row(
        "lengths_differ",
        "star:4",
        Differ(2, ("--other-elements", "30000")),
        rank(2, r"20,?000|80,?000", r"30,?000|120,?000"),
        ALL,
        evidence=True,
    ),
    Row("types_differ", "star:4", Differ(2, ("--type", "int32")), rank(2, "float32", r"\bint32"), ALL, evidence=True),
    Row(
        "calls_differ",
        "star:4",
        Differ(2, ("--call", "broadcast")),
        rank(2, "all_reduce", "broadcast"),
        ALL,
        evidence=True,
    ),
    Row("world_sizes_differ", "star:4", Start(2, ("--world", "5")), rank(2, r"\b4\b", r"\b5\b"), ALL, evidence=True),
    Row(
        "settings_differ",
        "star:4",
        Start(2, ("--channels", "3")),
        rank(2, r"channels\W+3|3 channels", r"channels\W+1|1 channel"),
        ALL,
        evidence=True,
    ),
    # Two racks: processes
    Row("racks_rank_killed_beside_rank_0", "racks:2x2", Kill("rank1"), rank(1), others(1), evidence=True),
    Row("racks_rank_killed_in_the_other_rack", "racks:2x2", Kill("rank3"), rank(3), others(3), evidence=True),
    Row("racks_rank_stopped", "racks:2x2", Stop("rank3"), rank(3), others(3)),
    Row("leaf_killed", "racks:2x2", Kill("rack1"), switch(LEAF_1), ALL, evidence=True),
    Row("leaf_of_rank_0_killed", "racks:2x2", Kill("rack0"), switch(LEAF_0), ALL, evidence=True),
    Row("leaf_stopped", "racks:2x2", Stop("rack1"), switch(LEAF_1), ALL),
    Row("root_killed", "racks:2x2", Kill("core"), switch(ROOT), ALL, evidence=True),
    Row("root_stopped", "racks:2x2", Stop("core"), switch(ROOT), ALL),
    # Two racks: links
    Row("rack_cut", "racks:2x2", Link(("cut@uplink1",)), switch(LEAF_1), ALL),
    Row("uplink_cut_up", "racks:2x2", Link(("cut@uplink1:up",)), switch(LEAF_1), ALL),
    Row("uplink_cut_down", "racks:2x2", Link(("cut@uplink1:down",)), switch(LEAF_1), ALL),
    Row("racks_host_cut", "racks:2x2", Link(("cut@host3",)), rank(3), ALL, causes={3: switch(LEAF_1)}),
    Row("racks_mtu_lowered", "racks:2x2", Mtu("h3"), rank(3, "MTU"), ALL, evidence=True),
    Row(
        "long_packets_lost_above_a_leaf", "racks:2x2", Link(("drop>1000@uplink1:up",)), switch(LEAF_1, "MTU|long"), ALL
    ),
    Row(
        "long_packets_lost_below_the_root",
        "racks:2x2",
        Link(("drop>1000@uplink1:down",)),
        switch(LEAF_1, "MTU|long"),
        ALL,
    ),
    # Two racks: disagreement
    Row(
        "racks_lengths_differ",
        "racks:2x2",
        Differ(3, ("--other-elements", "30000")),
        rank(3, r"20,?000|80,?000", r"30,?000|120,?000"),
        ALL,
        evidence=True,
    ),
    Row(
        "racks_settings_differ",
        "racks:2x2",
        Start(3, ("--scale", "1000")),
        rank(3, r"scale\W+1000\b|scale\W+1e\+?0?3", r"scale\W+1000000|scale\W+1e\+?0?6"),
        ALL,
        evidence=True,
    ),
    # Nothing is wrong
    Row("rank_paused", "star:4", Pause("rank2"), None, ALL),
    Row("switch_paused", "star:4", Pause("sw"), None, ALL),
    Row("leaf_paused", "racks:2x2", Pause("rack1"), None, ALL),
    Row("root_paused", "racks:2x2", Pause("core"), None, ALL),
    Row("links_lose_a_little", "racks:2x2", Link(("loss=1%@hosts", "loss=1%@uplinks")), None, ALL),
)
