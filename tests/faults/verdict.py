# SPDX-License-Identifier: Apache-2.0
"""Decides whether what a rank read names the cause that a row asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"\d+(?:\s*(?:-|\.\.|to)\s*\d+)?"
_RANKS = re.compile(rf"\branks?\s+({_NUMBER}(?:(?:\s*,\s*|\s+and\s+|\s*,\s+and\s+){_NUMBER})*)")
_RANGE = re.compile(r"(\d+)\s*(?:-|\.\.|to)\s*(\d+)")


@dataclass(frozen=True)
class Reading:
    """What one rank read, and how many seconds after the fault; None: nothing. `problem` is a result that no fault
    excuses, such as a wrong sum."""

    rank: int
    text: str | None
    seconds: float | None = None
    problem: str = ""


def ranks_named(text):
    """Numbers of all ranks that a text names: `rank 2`, `ranks 0, 1 and 3`, `ranks 0-3`."""
    named = set()
    for match in _RANKS.finditer(text):
        rest = match[1]
        for first, last in _RANGE.findall(rest):
            named.update(range(int(first), int(last) + 1))
        named.update(map(int, re.findall(r"\d+", _RANGE.sub("", rest))))
    return named


def faults_of(reading, cause):
    """What is wrong with a reading: one sentence each. `cause` None: the rank must read nothing."""
    if reading.problem:
        return [reading.problem]
    if cause is None:
        return [] if reading.text is None else ["reads an error, but nothing is wrong"]
    if reading.text is None:
        return ["reads nothing"]
    named = ranks_named(reading.text)
    missing = [f"does not name rank {rank}" for rank in cause.ranks if rank not in named]
    missing += [f"does not say /{word}/" for word in cause.words if not re.search(word, reading.text)]
    innocent = sorted(named - set(cause.ranks))
    return missing + [f"names rank {rank}, which is innocent" for rank in innocent]


def problems_of(row, readings):
    """{rank: sentences} of the ranks whose reading is not what the row asks for."""
    by_rank = {reading.rank: reading for reading in readings}
    found = {}
    for rank in row.reads:
        sentences = faults_of(by_rank[rank], row.cause_of(rank))
        if sentences:
            found[rank] = sentences
    # A wrong sum fails a row on any rank.
    for reading in readings:
        if reading.problem and reading.rank not in found:
            found[reading.rank] = [reading.problem]
    return found


def outcome_of(row, readings):
    """`holds`; or `expected to fail`, `unexpected pass`, `fails`. A wrong sum is never expected."""
    problems = problems_of(row, readings)
    if any(reading.problem for reading in readings):
        return "fails"
    if row.today:
        return "expected to fail" if problems else "unexpected pass"
    return "fails" if problems else "holds"
