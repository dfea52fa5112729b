# SPDX-License-Identifier: Apache-2.0
"""Runs the systems in turns and keeps the result of each turn."""

import contextlib
import json
import os
import shlex
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Optional

import faults
import measured
import processes
import sharing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from switch_report import additions_of_jobs  # noqa: E402

STREAM_PORT = 4780
STREAM_SECONDS = 2.5
STREAM_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stream.py")


def _operations_within(span, seconds):
    """How many operations of these lengths, one after the other, end within a span; of the last one a share."""
    done = 0.0
    for length in seconds:
        done += min(1, span / length)
        span -= length
        if span <= 0:
            break
    return done


@dataclass(frozen=True)
class Turn:
    """One run of one system. The fields *_cpu_seconds are processor times."""

    jobs: list  # for each job, the `seconds` of its operations and the `ranks_cpu_seconds` of all of them
    switches_cpu_seconds: float  # of the switch daemons after their start
    ports_cpu_seconds: Optional[float]  # of the kernel for packets that arrive at switch ports; None: unknown
    machine_cpu_seconds: float  # of the whole machine
    machine_busy: float  # share of the processors' time that was not idle, over the operations of the longest job
    traffic: dict  # {(from, to): (bytes, dropped packets)}
    counters: list  # of each switch that has counters
    faults: dict = field(default_factory=dict)  # of --fault: {(from, to): {name of a count: frames}}
    # Of --sample, since the start of the turn: [seconds, bytes that the first host sent, bytes that it received].
    series: Optional[list] = None
    # Of --sample: [seconds, {job: [packets with gradients that switches added, and that they forwarded]}].
    additions: Optional[list] = None

    @property
    def jobs_seconds(self):
        return [job["seconds"] for job in self.jobs]

    @property
    def ranks_cpu_seconds(self):
        return sum(job["ranks_cpu_seconds"] for job in self.jobs)

    def layout(self):
        """Where the first job's sums are added; None: the system has no layouts."""
        return self.jobs[0].get("layout")

    def operations_per_second(self):
        """Operations per second, added over all jobs."""
        return sum(len(seconds) / sum(seconds) for seconds in self.jobs_seconds)

    def fastest(self):
        return min(second for seconds in self.jobs_seconds for second in seconds)

    def jobs_together(self):
        """Operations per second of each job while all ran. Jobs do not begin at the same moment, so the last fifth of
        the shortest one does not count: there, others may run alone."""
        together = 0.8 * min(sum(seconds) for seconds in self.jobs_seconds)
        return [_operations_within(together, seconds) / together for seconds in self.jobs_seconds]

    def goodput_bps(self, work):
        """Goodput per host link: the sum of the medians of all jobs with a rank there, on the host with the largest."""
        goodputs = [
            work.bytes_of(job) * 8 / statistics.median(seconds) for job, seconds in enumerate(self.jobs_seconds)
        ]
        hosts = {host for of_job in work.job_hosts for host in of_job} or {None}
        return max(
            sum(bps for job, bps in enumerate(goodputs) if host in work.hosts_of(job, (host,))) for host in hosts
        )


@dataclass(frozen=True)
class Bench:
    """Settings shared by the turns of one run. `hosts` holds the host of each rank of a job that has ranks on every host;
    `link_faults` are those of --fault. `sample_seconds`: the time between samples of the first host's link; None: it is
    not sampled."""

    network: object
    hosts: tuple
    work: measured.Work
    timeout_seconds: float
    show: bool
    link_faults: Optional[faults.LinkFaults] = None
    sample_seconds: Optional[float] = None

    def best_variant(self, system):
        """The fastest variant of a system. Runs one operation with each variant."""
        if len(system.variants) == 1:
            return system.variants[0]
        trial = replace(self, work=replace(self.work, operations=1), sample_seconds=None)
        goodput = {variant: trial.turn(system, variant).goodput_bps(self.work) for variant in system.variants}
        if self.show:
            tried = ", ".join(f"{variant} {bps / 1e6:.1f}" for variant, bps in goodput.items())
            print(f"{system.name}, one operation per variant, Mbit/s per rank: {tried}", file=sys.stderr)
        return max(goodput, key=goodput.get)

    def turn(self, system, variant):
        """Starts the switches, then the ranks of all jobs. Ends the switches after the ranks have ended."""
        with self.network.free_ports() if system.takes_ports else contextlib.nullcontext():
            return self._sampled_turn(system, variant) if self.sample_seconds else self._turn(system, variant)

    def _sampled_turn(self, system, variant):
        host = self.hosts[0]
        sent, received = self.network.up_bytes(host), self.network.down_bytes(host)
        with (
            sharing.Meter(self.network, host, seconds=self.sample_seconds) as meter,
            self._sampled_counters(system) as additions,
        ):
            turn = self._turn(system, variant)
        samples = [[each.at, each.job_bytes - sent, each.other_bytes - received] for each in meter.samples]
        return replace(turn, series=samples, additions=additions or None)

    @contextlib.contextmanager
    def _sampled_counters(self, system):
        """While the `with` block runs, a thread asks the switches for their counters after each time of --sample."""
        begin, stop, additions = time.monotonic(), threading.Event(), []

        def ask():
            while not stop.wait(self.sample_seconds):
                # Before it listens and after its end, a switch does not answer.
                with contextlib.suppress(processes.Failed, ValueError, KeyError):
                    if counters := self._counters(system):
                        additions.append([time.monotonic() - begin, additions_of_jobs(counters)])

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield additions
        finally:
            stop.set()
            thread.join()

    def _turn(self, system, variant):
        switches, ranks = [], []
        traffic_before = self.network.traffic()
        faults_before = self._fault_counts()
        ports_before = self.network.ports_cpu_seconds()
        machine_before = _machine_time()
        try:
            self.start_switches(system, switches)
            start_cpu_seconds = sum(process.cpu_seconds_so_far() for process in switches)
            with _Processors() as processors:
                first_ranks = self._start_ranks(system, variant, ranks)
                processes.wait_all(ranks, self.timeout_seconds, servers=switches)
            machine = _machine_time() - machine_before
            ports = self.network.ports_cpu_seconds()
            counters = self._counters(system)
        finally:
            processes.stop(ranks)
            processes.stop(switches)
        processes.require_orderly_end(switches)
        results = [_result_of(rank) for rank in first_ranks]
        self._require_hosts(system, results)
        return Turn(
            results,
            sum(process.cpu_seconds for process in switches) - start_cpu_seconds,
            None if ports is None else ports - ports_before,
            machine.worked(),
            processors.busy_in_last(max(sum(result["seconds"]) for result in results)),
            _difference(traffic_before, self.network.traffic()),
            counters,
            faults.difference(faults_before, self._fault_counts()),
        )

    def _require_hosts(self, system, results):
        """No system may reach a bar by other hosts' memory, or miss it because its ranks share none."""
        for job, result in enumerate(results):
            hosts = self.work.hosts_of(job, self.hosts)
            expected = hosts.count(hosts[0])
            if system.sums_on_hosts and result["host_ranks"] != expected:
                raise processes.Failed(
                    f"{system.name}: {result['host_ranks']} ranks of a host summed in memory, not {expected}"
                )

    def _fault_counts(self):
        return self.link_faults.counts() if self.link_faults else {}

    def stream_bps(self):
        """The rate of a plain TCP stream from the host of the first rank to the host of the last rank."""
        sender, receiver = self.hosts[0], self.hosts[-1]
        receiving = self._start("receiver", receiver, [sys.executable, STREAM_PROGRAM, "receive", str(STREAM_PORT)])
        ends = [receiving]
        try:
            ends.append(
                self._start(
                    "sender",
                    sender,
                    [sys.executable, STREAM_PROGRAM, "send", receiver.address, str(STREAM_PORT), str(STREAM_SECONDS)],
                )
            )
            processes.wait_all(ends, self.timeout_seconds)
        finally:
            processes.stop(ends)
        return float(receiving.output())

    def start_switches(self, system, started):
        """Starts the daemons and adds them to `started`, which the caller must stop even after an exception. Returns
        when all listen."""
        for node in self.network.topology.daemon_nodes:
            for number, daemon in enumerate(system.daemons(node)):
                started.append(self._start(f"{system.name}-{node.name}-{number}", node, daemon.command))
                processes.wait_until_bound(started[-1], daemon.port, daemon.protocol)

    def _counters(self, system):
        """Counters of the switches. Daemons on server hosts are not included."""
        time.sleep(system.counters_age_seconds)
        commands = [(switch, system.counters_command(switch)) for switch in self.network.topology.switches]
        return [
            json.loads(processes.output_of(self.network.entry(switch), command))
            for switch, command in commands
            if command is not None
        ]

    def _start_ranks(self, system, variant, started):
        """Starts the ranks of all jobs. Returns the first rank of each job, which prints the results."""
        first_ranks = []
        for job in range(self.work.jobs):
            store = tempfile.mkdtemp(dir=self.network.folder)
            hosts = self.work.hosts_of(job, self.hosts)
            entries = tuple(self.network.entry(host) for host in hosts)
            starting = hosts[:1] if system.first_rank_starts_others else hosts
            for number, host in enumerate(starting):
                rank = measured.Rank(job, number, hosts, entries, store, self.network.host_device)
                command = system.rank_command(rank, self.work, variant)
                started.append(self._start(f"{system.name}-job{job}-rank{number}", host, command))
                if number == 0:
                    first_ranks.append(started[-1])
        return first_ranks

    def _start(self, name, node, command):
        if self.show:
            print(f"{node.name}: {shlex.join(command)}", file=sys.stderr)
        return processes.Process(name, self.network.entry(node), command, self.network.folder)


def _result_of(rank):
    lines = rank.output().splitlines()
    try:
        result = json.loads(lines[-1])
        return {**result, "seconds": [float(seconds) for seconds in result["seconds"]]}
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise processes.Failed(f"output without a result ({error!r}):\n  {rank.complaint()}") from error


@dataclass(frozen=True)
class MachineTime:
    """Time of all processors of this host in seconds.

    The kernel measures idle time in nanoseconds, but samples work at ticks of a slow clock. Programs that use timers
    run in step with this clock, so that the samples show too much or too little work. Work is therefore computed as the
    rest of the time.
    """

    all: float
    idle: float
    stolen: float  # by the hypervisor

    def __sub__(self, before):
        return MachineTime(self.all - before.all, self.idle - before.idle, self.stolen - before.stolen)

    def worked(self):
        return max(0.0, self.all - self.idle - self.stolen)

    def busy_share(self):
        return min(1.0, max(0.0, 1 - self.idle / self.all))


def _machine_time():
    """The times since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        lines = [line.split() for line in file if line.startswith("cpu")]
    idle, waiting, _, _, stolen = (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in lines[0][4:9])
    return MachineTime(time.monotonic() * (len(lines) - 1), idle + waiting, stolen)


class _Processors:
    """Samples the processors' time while the `with` block runs. The start of twenty programs takes all processors for a
    second, which says nothing about the operations that follow, so the share in use is that of the end of the block."""

    SAMPLE_SECONDS = 0.05

    def __init__(self):
        self._count = os.cpu_count()

    def __enter__(self):
        self._samples, self._stop = [_machine_time()], threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _sample(self):
        while not self._stop.wait(self.SAMPLE_SECONDS):
            self._samples.append(_machine_time())

    def busy_in_last(self, seconds):
        """The share of the time that was not idle from `seconds` before the end on."""
        last = self._samples[-1]
        begin = last.all - seconds * self._count
        first = max(
            (sample for sample in self._samples[:-1] if sample.all <= begin),
            default=self._samples[0],
            key=lambda sample: sample.all,
        )
        span = last - first
        return span.busy_share() if span.all > 0 else 0.0


def _difference(before, after):
    return {link: tuple(now - then for now, then in zip(after[link], before[link])) for link in after}
