#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs jobs with ranks of the program and a rank whose author used only docs/spec.

usage: page_test.py ATP
"""

import json
import socket
import struct
import subprocess
import sys
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import page_rank

ATP = sys.argv.pop(1)
VECTORS = Path(__file__).parent / "hash.json"
PATIENCE_S = 60
Number = TypeVar("Number", int, float)
PERIOD = 4093
LARGEST = 10_000_000


def float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def contribution(rank: int, element: int) -> int:
    """Returns the int32 element that `atp bench` contributes as `rank`; a float32 element is this number / SCALE."""
    return (element * 2654435761 + rank * 40503 + 12345 & page_rank.MASK32) % (2 * LARGEST + 1) - LARGEST


def scaled(rank: int, element: int) -> int:
    return round(float32(float32(contribution(rank, element) / page_rank.SCALE) * float32(page_rank.SCALE)))


def repeated(values: list[Number], count: int) -> list[Number]:
    return (values * (count // len(values) + 1))[:count]


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_index(job: int, token: int, channel: int, window_log2: int, slot: int, aggregators: int) -> int:
    return page_rank.first_indices(job, token, channel, 1 << window_log2, aggregators)[slot]


class Hashes(unittest.TestCase):
    def test_hashes_match_the_vectors(self) -> None:
        functions: dict[str, Callable[..., int]] = {
            "index": page_rank.index,
            "first_index": first_index,
            "audit": page_rank.audit,
            "purpose": page_rank.purpose,
        }
        for row in json.loads(VECTORS.read_text()):
            with self.subTest(row=row):
                arguments = [value for name, value in row.items() if name not in ("function", "value")]
                self.assertEqual(functions[row["function"]](*arguments), row["value"])


class SharedJob(unittest.TestCase):
    elements = 20_000
    rounds = 3

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen([ATP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process: "subprocess.Popen[str]") -> None:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)

    def join(
        self, *flags: str, audits: bool = False
    ) -> "tuple[page_rank.Rank, page_rank.Store, subprocess.Popen[str]]":
        """Starts a switch and `atp bench` as rank 0, and joins as rank 1. Returns rank 1, its store and the process."""
        switch, store_port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_STREAM)
        self.start("switch", "--listen", f"127.0.0.1:{switch}", "--memory", "4MB", "--lanes", "352", "--quiet")
        bench = self.start(
            *("bench", "--rank", "0", "--world", "2", "--switch", f"127.0.0.1:{switch}"),
            *("--rendezvous", f"127.0.0.1:{store_port}", "--bytes", str(4 * self.elements)),
            *("--rounds", str(self.rounds - 1), "--warmup", "1", "--timeout", "30s", "--deadline", "20s"),
            *("--scaling", "fixed", "--lanes", "int32", *flags),
        )
        store = page_rank.Store(("127.0.0.1", store_port), time.monotonic() + 30)
        return page_rank.Rank(store, ("127.0.0.1", switch), 1, 2, audits), store, bench

    def finish(self, store: page_rank.Store, bench: "subprocess.Popen[str]") -> None:
        """Exchanges the data that ranks exchange at the end of a benchmark, and checks that rank 0 succeeds."""
        rendezvous = page_rank.Rendezvous(store, "atp-bench", 1, 2)
        for measured in range(self.rounds - 1):
            rendezvous.gather(f"time-0-{measured}", b"0.001")
        rendezvous.gather("cpu-0", b"0.001")
        rendezvous.gather("end", b"")
        store.close()
        output, error = bench.communicate(timeout=PATIENCE_S)
        self.assertEqual(bench.returncode, 0, output + error)

    def test_sums_of_floats_have_the_expected_bits(self) -> None:
        rank, store, bench = self.join()
        own, other = ([scaled(each, at) for at in range(PERIOD)] for each in (1, 0))
        sums = [float32((a + b) * (1 / page_rank.SCALE)) for a, b in zip(own, other)]
        expected = struct.pack(f">{self.elements}f", *repeated(sums, self.elements))
        for _ in range(self.rounds):
            rank.barrier()
            self.assertEqual(rank.sum_floats(repeated(own, self.elements)), expected)
        self.finish(store, bench)
        rank.leave()

    def test_sums_of_integers_with_audit_are_exact(self) -> None:
        rank, store, bench = self.join("--type", "int32", "--audit", audits=True)
        own, other = ([contribution(each, at) for at in range(PERIOD)] for each in (1, 0))
        sums = [a + b for a, b in zip(own, other)]
        expected = struct.pack(f">{self.elements}i", *repeated(sums, self.elements))
        for _ in range(self.rounds):
            rank.barrier()
            self.assertEqual(rank.sum_integers(repeated(own, self.elements)), expected)
        self.finish(store, bench)
        rank.leave()

    def test_broadcast_against_allreduce_fails_on_both_ranks(self) -> None:
        rank, store, bench = self.join()
        with self.assertRaises(page_rank.Mismatch):
            rank.broadcast_from(0, 4)
        store.close()
        bench.communicate(timeout=PATIENCE_S)
        self.assertEqual(bench.returncode, 1)
        rank.leave()


if __name__ == "__main__":
    unittest.main()
