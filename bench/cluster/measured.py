# SPDX-License-Identifier: Apache-2.0
"""What the benchmark measures: a system, its work, and its processes."""

import os
from dataclasses import dataclass
from typing import Optional

from workloads import tables

SWITCH_PORT = 4790


@dataclass(frozen=True)
class Workload:
    """A model to train, and the scaled table of its layers. The times of the layers are scaled so that their ratio to
    transfer times on links of `link_bps` is that of the testbed. None: the times shrink with the model only."""

    name: str
    share: float
    compute: str
    link_bps: Optional[int]
    table: tables.Table
    parallel: str = "ddp"  # how ranks share the model: one of tables.PARALLEL


COLLECTIVES = ("all_reduce", "broadcast", "barrier", "reduce_scatter", "all_gather", "both")


@dataclass(frozen=True)
class Operation:
    """A collective on a tensor of elements of a type. A system measures this default, and the others of its `collectives`.
    `magnitude` is the largest element of the first rank; None: the usual one of the system. `lane_type` is that of ATP;
    None: its default."""

    collective: str = "all_reduce"
    type: str = "float32"
    magnitude: Optional[float] = None
    lane_type: Optional[str] = None


@dataclass(frozen=True)
class Work:
    """The work of each system in one turn: operations on `bytes` bytes, or steps of a workload with `bytes` bytes of
    gradients. With `models`, each job trains its own. `job_hosts` holds the hosts of the first jobs' ranks; the others
    have ranks on every host."""

    bytes: int
    operations: int
    warmup: int
    jobs: int
    workload: Optional[Workload] = None
    operation: Operation = Operation()
    models: tuple = ()
    job_hosts: tuple = ()

    def bytes_of(self, job):
        return self.models[job].bytes if self.models else self.bytes

    def hosts_of(self, job, every):
        """The host of each rank of a job; `every` lists them for a job with ranks on every host."""
        return self.job_hosts[job] if job < len(self.job_hosts) else every

    def bytes_of_ranks(self, world):
        """One operation of every job, added over all ranks; `world` is the number of ranks on every host."""
        return sum(self.bytes_of(job) * len(self.hosts_of(job, range(world))) for job in range(self.jobs))


@dataclass(frozen=True)
class Rank:
    """One process of one job. `hosts` lists the host of each rank of the job, and `entries` the prefix that runs a
    command at this host. `store` is a folder of the job; `device` is the interface that the process uses."""

    job: int
    number: int
    hosts: tuple
    entries: tuple
    store: str
    device: str

    @property
    def host(self):
        return self.hosts[self.number]

    @property
    def shares_host(self):
        return len(set(self.hosts)) != len(self.hosts)


@dataclass(frozen=True)
class Daemon:
    """A program of a switch or of the host of the server. It has started when it has a socket on `port`."""

    command: list
    port: int = SWITCH_PORT
    protocol: str = "udp"


class System:
    """A measured system. It needs `programs`, which the build targets `targets` build, and the Python modules
    `modules`. If it has several `variants`, the benchmark uses the fastest. With `first_rank_starts_others`, the
    benchmark starts only the first rank, which starts the other ranks. Without `spans_racks`, the system supports one
    switch only; without `shares_hosts`, one rank on each host. With
    `needs_server_host`, the server has a host of its own. With `sums_on_hosts`, the result states how many ranks
    of a host summed in memory. With `takes_ports`, its switches replace the bridges, and its counters are
    `counters_age_seconds` old at most. `tools` are programs that the build does not make. It measures `collectives` with
    each type and magnitude; without any, only an all-reduce of float32. With `trains_models`, its ranks understand
    --model."""

    programs = ()
    tools = ()
    modules = ()
    targets = ()
    variants = ("",)
    first_rank_starts_others = False
    spans_racks = True
    shares_hosts = True
    sums_on_hosts = False
    needs_server_host = False
    takes_ports = False
    counters_age_seconds = 0
    collectives = ()
    trains_models = False

    def __init__(self, name):
        self.name = name

    def prepare(self, folder):
        """Writes files that the daemons need to a folder, once in a run."""

    def daemon_command(self, _node):
        """Command of the daemon on a switch or on the host of the server; None: no daemon."""
        return None

    def daemons(self, node):
        """All daemons of a node, in the order to start them."""
        command = self.daemon_command(node)
        return [] if command is None else [Daemon(command)]

    def counters_command(self, _switch):
        """Command that prints the counters of a switch; None if the system has no counters."""
        return None


def flags_of_rank(rank):
    """Flags that all measured programs understand: which rank of how many."""
    return ["--rank", str(rank.number), "--world", str(len(rank.hosts))]


def flags_of_work(work, job=0):
    """Flags that all measured programs understand: operations on so many bytes, and the result in JSON. Those that train
    models understand a model instead."""
    what = work.models[job].flags() if work.models else ["--bytes", str(work.bytes)]
    return [*what, "--rounds", str(work.operations), "--warmup", str(work.warmup), "--json"]


def package_folder(programs):
    """The folder of Python packages in the build that contains these programs."""
    return os.path.join(os.path.dirname(programs), "python")


def endpoint(node, port):
    return f"{node.address}:{port}"
