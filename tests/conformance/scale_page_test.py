#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes scale.json from its inputs, by the rules of docs/spec/numbers.md and without code of this implementation.

usage: scale_page_test.py
"""

from __future__ import annotations

import itertools
import json
import math
import struct
import unittest
from fractions import Fraction
from pathlib import Path
from typing import Any

ROWS = json.loads(Path(__file__).with_name("scale.json").read_text())
# Of each form: elements of a span and of a cell, b, the exponent for sums without a reference, the largest magnitude.
FORMS = {
    "int32": (16192, 16192, 24, 25, 2**31),
    "int16": (5632, 128, 12, 15, 32767.5),
    "int8": (5632, 128, 4, 7, 127.5),
}
EXACT = 127
NAN = 0x7FC00000


def expanded(runs: list) -> list:
    return [value for count, value in runs for _ in range(count)]


def runs_of(values: list) -> list:
    return [[len(list(group)), value] for value, group in itertools.groupby(values)]


def float_of(bits: int) -> float:
    return struct.unpack(">f", bits.to_bytes(4, "big"))[0]


def float32(value: float) -> float:
    try:
        return struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bits_of(value: float) -> int:
    return NAN if math.isnan(value) else int.from_bytes(struct.pack(">f", value), "big")


def bounded(exponent: int) -> int:
    return max(-127, min(127, exponent))


def log2(value: float) -> int:
    """The largest exponent of a power of two that is not above the value."""
    return math.frexp(value)[1] - 1


def largest_of(values: list[float]) -> float:
    return max((abs(value) for value in values if math.isfinite(value)), default=0.0)


def integer_of(value: float, c: int, limit: float) -> int | None:
    product = float32(value * 2.0**c) if math.isfinite(value) else value
    return round(product) if abs(product) < limit else None


def exact_sum(values: list[float]) -> float:
    if all(map(math.isfinite, values)):
        return float32(float(sum(map(Fraction, values)))) + 0.0
    return float32(sum(values))


class Job:
    """The operations of a row, in order."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.workers = row["workers"]
        self.job_scale = row["job_scale"]
        self.span, self.cell, self.b, self.first, self.limit = FORMS[row["form"]]
        self.ranks = 1 << (self.workers - 1).bit_length()
        self.reference: list[tuple[list[int], list[float]]] = []  # of each span: c of the cells, the sums

    def parts(self, values: list, length: int) -> list[list]:
        return [values[at : at + length] for at in range(0, len(values), length)]

    def without_reference(self, spans: list[list[list[float]]]) -> tuple[list, list[list[int]]]:
        """The words of each worker, and c of each span's cells."""
        width = self.workers.bit_length()
        each = 32 // width
        words = [[0] * (-(-256 // each) * len(spans)) for _ in range(self.workers)]
        found: list[int | None] = []
        for number, span in enumerate(spans):
            fields = []
            for worker, values in enumerate(span):
                if largest := largest_of(values):
                    fields.append(bits_of(largest) >> 23)
                    words[worker][number * -(-256 // each) + fields[-1] // each] += 1 << width * (fields[-1] % each)
            found.append(max(fields, default=None))
        known = [field for field in found if field is not None]

        def exponent(field: int | None) -> int:
            if field is None and not known:
                return log2(self.job_scale)
            e = max(1, max(known) if field is None else field) - 127
            return bounded(self.first - log2(self.ranks) - (e + 1))

        cells = [-(-len(span[0]) // self.cell) for span in spans]
        return words, [[exponent(field)] * count for field, count in zip(found, cells)]

    def from_reference(self, used: list[int], sums: list[float]) -> list[int]:
        following: list[int | None] = []
        for c_ref, cell in zip(used, self.parts(sums, self.cell)):
            if not all(map(math.isfinite, cell)):
                following.append(bounded(c_ref - 1))
            elif largest := largest_of(cell):
                following.append(min(bounded(self.b - log2(largest)), bounded(c_ref + 4)))
            else:
                following.append(None)
        known = [c for c in following if c is not None]
        if not known:
            return used
        least = min(known)
        return [min(least if c is None else c, least + 2, max(100, least)) for c in following]

    def vote(self, values: list[float], coarsest: int) -> int:
        t = max(1, Fraction(2) ** (self.b - self.b // 3) / self.ranks)
        largest = largest_of(values)
        return (1 << 16 if Fraction(largest) >= t / Fraction(2) ** coarsest else 1) if largest else 0

    def summed(self, values: list[float], c: int) -> float:
        integers = [integer_of(value, c, 2**31) for value in values]
        if None in integers:
            return exact_sum(values)
        return float32(sum(integers) * 2.0**-c) + 0.0

    def operate(self, inputs: list[list[float]]) -> dict[str, Any]:
        """The members of a step."""
        small = len(inputs[0]) <= 256
        spans = [list(span) for span in zip(*(self.parts(values, self.span) for values in inputs))]
        exponents: list = []
        if small:
            proposals = [[EXACT]]
        elif self.reference:
            proposals = [self.from_reference(*reference) for reference in self.reference]
        else:
            exponents, proposals = self.without_reference(spans)
        votes = [] if small else [
            [self.vote(span[worker], min(cells)) for span, cells in zip(spans, proposals)]
            for worker in range(self.workers)
        ]  # fmt: skip
        made: dict[str, Any] = {"spans": [], "lanes": [[] for _ in inputs], "sums": [], "results": []}
        self.reference = []
        for number, (span, cells) in enumerate(zip(spans, proposals)):
            exact = small or 0 < sum(own[number] for own in votes) < 1 << 16
            floats = exact or max(cells) == EXACT
            made["spans"].append({
                "proposal": max(cells), "coarsest": min(cells), "scale": EXACT if exact else max(cells),
                "cells": [] if floats else cells,
            })  # fmt: skip
            sums = []
            for at, values in enumerate(zip(*span)):
                c = EXACT if exact else cells[at // self.cell]
                lanes = [None if floats else integer_of(value, c, self.limit) for value in values]
                for own, lane in zip(made["lanes"], lanes):
                    own.append(lane)
                made["sums"].append(None if None in lanes else sum(lanes))
                sums.append(self.summed(list(values), c))
            made["results"] += map(bits_of, sums)
            self.reference.append((cells, sums))
        return {
            "exponents": list(map(runs_of, exponents)),
            "votes": list(map(runs_of, votes)),
            "spans": made["spans"],
            "lanes": list(map(runs_of, made["lanes"])),
            "sums": runs_of(made["sums"]),
            "results": runs_of(made["results"]),
        }


class Rows(unittest.TestCase):
    maxDiff = 2000

    def test_every_step_follows_from_its_inputs(self) -> None:
        for row in ROWS:
            job = Job(row)
            for number, step in enumerate(row["steps"]):
                with self.subTest(row["description"], step=number):
                    inputs = [list(map(float_of, expanded(runs))) for runs in step["inputs"]]
                    made = job.operate(inputs)
                    self.assertEqual(made, {name: value for name, value in step.items() if name != "inputs"})

    def test_rows_meet_each_rule(self) -> None:
        steps = [step for row in ROWS for step in row["steps"]]
        refused = [step for step in steps if any(not span["cells"] for span in step["spans"])]
        uneven = [step for step in steps if any(span["proposal"] != span["coarsest"] for span in step["spans"])]
        alone = [step for step in steps if None in expanded(step["sums"]) and len(step["sums"]) > 1]
        for found in (refused, uneven, alone):
            self.assertTrue(found)
        self.assertEqual({row["form"] for row in ROWS}, set(FORMS))


if __name__ == "__main__":
    unittest.main()
