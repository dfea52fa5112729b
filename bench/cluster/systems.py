# SPDX-License-Identifier: Apache-2.0
"""What is measured: for each system, the commands that its switches and its ranks are started with."""
import os
from dataclasses import dataclass

SWITCH_PORT = 4790
FIRST_RENDEZVOUS_PORT = 4800  # one for each job


@dataclass(frozen=True)
class Work:
    """What every system is asked to do in one round."""
    bytes: int
    operations: int
    warmup: int
    jobs: int


@dataclass(frozen=True)
class Rank:
    """One process of one job. `hosts` are those of all its ranks, in their order; `store` is a folder of the job's."""
    job: int
    number: int
    hosts: tuple
    store: str

    @property
    def host(self):
        return self.hosts[self.number]


class Atp:
    """Daemons in the switches' namespaces, and the command's own benchmark in the hosts'."""
    name = "atp"
    program = "atp"
    variants = ("",)

    def __init__(self, programs, options):
        self._program = os.path.join(programs, self.program)
        self._memory = options.memory
        self._loss = options.loss
        self._switch_flags = options.switch_flags
        self._rank_flags = options.rank_flags

    def switch_command(self, switch):
        command = [self._program, "switch", "--listen", _endpoint(switch, SWITCH_PORT), "--memory", self._memory]
        if switch.parent:
            command += ["--parent", _endpoint(switch.parent, SWITCH_PORT)]
        if self._loss:
            command += ["--loss", f"{self._loss:.9f}"]
        return command + self._switch_flags

    def rank_command(self, rank, work, _variant):
        return [self._program, "bench", "--rank", str(rank.number), "--world", str(len(rank.hosts)),
                "--rendezvous", _endpoint(rank.hosts[0], FIRST_RENDEZVOUS_PORT + rank.job),
                "--switch", _endpoint(rank.host.switch, SWITCH_PORT),
                "--bytes", str(work.bytes), "--rounds", str(work.operations), "--warmup", str(work.warmup), "--json",
                *self._rank_flags]


class Gloo:
    """No switches. Which of its algorithms is the fastest depends on the network: the benchmark tries them all."""
    name = "gloo"
    program = "bench_gloo"
    algorithms = ("ring", "ring_chunked", "halving_doubling", "bcube")

    def __init__(self, programs, options):
        self._program = os.path.join(programs, self.program)
        self.variants = self.algorithms if options.gloo_algorithm == "best" else (options.gloo_algorithm,)

    def switch_command(self, _switch):
        return None

    def rank_command(self, rank, work, variant):
        return [self._program, "--rank", str(rank.number), "--world", str(len(rank.hosts)), "--store", rank.store,
                "--address", rank.host.address, "--algorithm", variant,
                "--bytes", str(work.bytes), "--rounds", str(work.operations), "--warmup", str(work.warmup), "--json"]


BY_NAME = {system.name: system for system in (Atp, Gloo)}


def _endpoint(node, port):
    return f"{node.address}:{port}"
