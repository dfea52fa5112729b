# SPDX-License-Identifier: Apache-2.0
"""Starts the job of a row with its switches in network namespaces, makes the fault, and collects what ranks read."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "cluster"))

import faults  # noqa: E402
import network  # noqa: E402
import processes  # noqa: E402
import rows as table  # noqa: E402
import topology  # noqa: E402
import verdict  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))
SWITCH_PORT = 4790
STORE_PORT = 4800
QUEUE_BYTES = 1 << 20
START_SECONDS = 60.0  # until all ranks sum
RESUME_SECONDS = 3.0  # for a rank that was stopped, to read something after it goes on
SUMS_AFTER_FAULT = 30  # by each rank, if nothing is wrong
POLL_SECONDS = 0.02


class Unavailable(Exception):
    """This machine lacks something that a row needs."""


@dataclass(frozen=True)
class Tools:
    """`programs` is the folder of atp and link_fault, `library` the path of libatp.so, `python` a Python with torch and
    `packages` the folder of its package atp."""

    programs: str
    library: str
    python: str
    packages: str

    def program(self, name):
        return os.path.join(self.programs, name)


def describe(fault):
    """One line about a fault: `Kill rank2`."""
    values = [
        " ".join(value) if isinstance(value, tuple) else str(value)
        for value in (getattr(fault, name) for name in fault.__dataclass_fields__)
    ]
    return " ".join([type(fault).__name__.lower(), *values])


def run_row(row, tools, limit_seconds=None):
    """The readings of all ranks that the fault does not end. Raises network.Unavailable, faults.Unavailable or
    Unavailable if the row cannot run here, and processes.Failed if the job does not start."""
    if row.program == "rank_torch.py":
        _require_torch(tools)
    shape = topology.parse(row.shape)
    with network.build(shape, network.Links(None, None, QUEUE_BYTES)) as built:
        job = Job(row, built, tools, limit_seconds or row.limit_seconds())
        try:
            job.start()
            return job.readings(job.make_fault())
        finally:
            job.end()


def _require_torch(tools):
    environment = f"PYTHONPATH={tools.packages}"
    try:
        processes.output_of(["env", environment], [tools.python, "-c", "import torch, atp"], START_SECONDS)
    except (processes.Failed, OSError) as error:
        raise Unavailable(f"{tools.python} cannot import torch and atp: {error}") from error


class Job:
    """The processes of one row. The caller must call end() in every case."""

    def __init__(self, row, built, tools, limit_seconds):
        self._row = row
        self._limit_seconds = limit_seconds
        self._built = built
        self._tools = tools
        self._hosts = built.topology.hosts
        self._switches = {}
        self._ranks = []
        self._begin = None

    def start(self):
        """Returns when all ranks sum, or at once if the fault is a rank that starts differently."""
        if self._row.program == "rank.py":
            for node in self._built.topology.switches:
                self._switches[node.name] = self._start(node.name, node, self._switch_command(node))
                processes.wait_until_bound(self._switches[node.name], SWITCH_PORT)
        self._begin = time.monotonic()
        for number, host in enumerate(self._hosts):
            self._ranks.append(self._start(f"rank{number}", host, self._rank_command(number, host)))
        if not isinstance(self._row.fault, table.Start):
            self._wait(lambda: all(self._last(rank, "working") for rank in self._ranks), START_SECONDS)

    def make_fault(self):
        """Returns the time of the fault, of CLOCK_MONOTONIC."""
        fault = self._row.fault
        if isinstance(fault, table.Start):
            return self._begin
        if isinstance(fault, table.Differ):
            rank = self._ranks[fault.rank]
            self._wait(lambda: self._last(rank, "differs"), START_SECONDS)
            return self._last(rank, "differs")["at"]
        time.sleep(self._row.delay_seconds)
        begin = time.monotonic()
        if isinstance(fault, table.Link):
            program = self._tools.program(faults.PROGRAM)
            ends = faults.ends_of(self._built.topology, [faults.parse(text) for text in fault.faults])
            faults.LinkFaults(self._built, program).set(ends)
        elif isinstance(fault, table.Mtu):
            [host] = [host for host in self._hosts if host.name == fault.host]
            words = ["ip", "link", "set", "dev", self._built.host_device, "mtu", str(fault.bytes)]
            processes.output_of(self._built.entry(host), words)
        else:
            self._signal(fault)
        return begin

    def readings(self, begin):
        """Waits until all ranks have read what they must, or longer than the fault allows."""
        if self._row.cause is None:
            return self._readings_of_nothing(begin)
        reads = [self._ranks[number] for number in self._row.reads]
        self._wait_or_give_up(lambda: all(self._has_ended(rank) for rank in reads), self._limit_seconds)
        readings = [self._reading(number, begin) for number in self._row.reads]
        if isinstance(self._row.fault, table.Stop) and self._row.fault.process.startswith("rank"):
            # What the stopped rank reads when it goes on is reported and not judged.
            stopped = self._process(self._row.fault.process)
            stopped.signal(signal.SIGCONT)
            self._wait_or_give_up(lambda: self._has_ended(stopped), RESUME_SECONDS)
            readings.append(self._reading(self._ranks.index(stopped), begin))
        return sorted(readings, key=lambda reading: reading.rank)

    def end(self):
        everything = [*self._ranks, *self._switches.values()]
        for process in everything:
            process.signal(signal.SIGCONT)
        processes.stop(everything)

    def _readings_of_nothing(self, begin):
        before = [self._sums(rank) for rank in self._ranks]
        self._wait_or_give_up(
            lambda: all(
                self._has_ended(rank) or self._sums(rank) >= sums + SUMS_AFTER_FAULT
                for rank, sums in zip(self._ranks, before)
            ),
            self._limit_seconds,
        )
        readings = []
        for number, sums in enumerate(before):
            reading = self._reading(number, begin)
            if (
                reading.text is None
                and not reading.problem
                and self._sums(self._ranks[number]) < sums + SUMS_AFTER_FAULT
            ):
                reading = verdict.Reading(number, None, None, "does not go on, and reads nothing")
            readings.append(reading)
        return readings

    def _signal(self, fault):
        process = self._process(fault.process)
        process.signal(signal.SIGKILL if isinstance(fault, table.Kill) else signal.SIGSTOP)
        if isinstance(fault, table.Pause):
            time.sleep(fault.seconds)
            process.signal(signal.SIGCONT)

    def _process(self, name):
        if name.startswith("rank"):
            return self._ranks[int(name.removeprefix("rank"))]
        return self._switches[name]

    def _reading(self, number, begin):
        rank = self._ranks[number]
        error = self._last(rank, "error")
        if self._last(rank, "wrong sum"):
            return verdict.Reading(number, None, None, "has a wrong sum")
        if error:
            return verdict.Reading(number, error["text"], round(error["at"] - begin, 2))
        if rank.poll():
            return verdict.Reading(number, None, None, f"ended without an error: {rank.complaint()}")
        return verdict.Reading(number, None)

    def _has_ended(self, rank):
        return rank.poll() or self._last(rank, "error") is not None

    def _sums(self, rank):
        beat = self._last(rank, "beat")
        return beat["sums"] if beat else 0

    @staticmethod
    def _last(rank, event):
        """The last event of this name that a rank has printed; None if there is none."""
        whole_lines = rank.output().rpartition("\n")[0].splitlines()
        events = [json.loads(line) for line in whole_lines if line.startswith("{")]
        return next((found for found in reversed(events) if found["event"] == event), None)

    def _wait(self, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition():
            ended = [rank for rank in self._ranks if rank.poll()]
            late = time.monotonic() > deadline
            if ended or late:
                concerned = ended or self._ranks
                why = "ended before the fault" if ended else f"not ready after {seconds:.0f} s"
                texts = [rank.complaint() + "\n" + rank.output() for rank in concerned]
                raise processes.Failed(f"ranks {why}:\n  " + "\n  ".join(texts))
            time.sleep(POLL_SECONDS)

    @staticmethod
    def _wait_or_give_up(condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _start(self, name, node, command):
        return processes.Process(name, self._built.entry(node), command, self._built.folder)

    def _switch_command(self, node):
        parent = ["--parent", f"{node.parent.address}:{SWITCH_PORT}"] if node.parent else []
        listen = f"{node.address}:{SWITCH_PORT}"
        hold = f"{table.HOLD_SECONDS}s"
        return [self._tools.program("atp"), "switch", "--listen", listen, "--memory", "4MB", "--hold", hold, *parent]

    def _rank_command(self, number, host):
        common = ["--rank", str(number), "--world", str(len(self._hosts))]
        if self._row.program == "rank_torch.py":
            return [
                "env",
                f"PYTHONPATH={self._tools.packages}",
                "OMP_NUM_THREADS=1",
                f"MASTER_ADDR={self._hosts[0].address}",
                self._tools.python,
                os.path.join(FOLDER, self._row.program),
                *common,
                *("--store", os.path.join(self._built.folder, "torch-store")),
            ]
        fault = self._row.fault
        own = fault.flags if isinstance(fault, (table.Start, table.Differ)) and fault.rank == number else ()
        return [
            sys.executable,
            os.path.join(FOLDER, self._row.program),
            *("--library", self._tools.library),
            *("--switch", f"{host.switch.address}:{SWITCH_PORT}"),
            *("--store", f"{self._hosts[0].address}:{STORE_PORT}"),
            *common,
            *own,
        ]
