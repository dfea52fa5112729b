# SPDX-License-Identifier: Apache-2.0
"""All systems by their names: programs of ATP, its peers, and backends of PyTorch."""

import collections
import dataclasses
import json
import os

from atp_systems import (
    Atp,
    AtpInKernel,
    AtpInPasses,
    AtpInPipeline,
    AtpNowhere,
    AtpRacks,
    AtpSwitches,
    AtpWithLeaves,
    AtpWithoutSwitch,
    InKernel,
    SwitchMl,
)
from measured import COLLECTIVES, SWITCH_PORT, System, endpoint, flags_of_rank, flags_of_work, package_folder

FOLDER = os.path.dirname(os.path.abspath(__file__))
TORCH_COLLECTIVE = os.path.join(FOLDER, "torch_collective.py")
MPI_AGENT = os.path.join(FOLDER, "mpi_agent")
TORCH_TRAINING = os.path.join(FOLDER, "torch_training.py")


class Gloo(System):
    """Gloo. The fastest of its algorithms depends on the network, so by default the benchmark tries all of them."""

    programs = ("bench_gloo",)
    targets = ("bench_gloo",)
    algorithms = ("ring", "ring_chunked", "halving_doubling", "bcube")
    trains_models = True

    def __init__(self, name, programs, options):
        super().__init__(name)
        self._program = os.path.join(programs, "bench_gloo")
        self.variants = self.algorithms if options.gloo_algorithm == "best" else (options.gloo_algorithm,)

    def rank_command(self, rank, work, variant):
        return [
            self._program,
            *flags_of_rank(rank),
            *("--store", rank.store),
            *("--address", rank.host.address),
            *("--algorithm", variant),
            *flags_of_work(work, rank.job),
        ]


class OpenMpi(System):
    """Open MPI over TCP. Open MPI chooses the algorithms. mpirun runs on the first host and starts the processes of the
    other hosts through mpi_agent, which replaces ssh."""

    programs = ("bench_mpi",)
    targets = ("bench_mpi",)
    first_rank_starts_others = True

    def __init__(self, name, programs, options):
        super().__init__(name)
        self._program = os.path.join(programs, "bench_mpi")

    def rank_command(self, rank, work, _variant):
        addresses = [host.address for host in rank.hosts]
        slots = collections.Counter(addresses)
        settings = {
            "btl": "tcp,self",
            "btl_tcp_if_include": rank.device,
            "mpi_yield_when_idle": "1",  # ranks may share processors
            "oob_tcp_if_include": rank.device,
            "orte_leave_session_attached": "1",
            "plm_rsh_agent": MPI_AGENT,
            "pml": "ob1",
        }
        return [
            *("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"),
            f"ATP_ENTRIES={json.dumps(dict(zip(addresses, rank.entries)))}",
            "mpirun",
            *(word for name, value in settings.items() for word in ("--mca", name, value)),
            *("--bind-to", "none", "-n", str(len(rank.hosts))),
            *("--host", ",".join(f"{address}:{count}" for address, count in slots.items())),
            self._program,
            *flags_of_work(work),
        ]


class TorchAtp(AtpSwitches):
    """Ranks use PyTorch with the `atp` backend."""

    modules = ("torch", "atp")
    targets = ("atp", "atp_torch")
    collectives = COLLECTIVES

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self.ranks = TorchRanks("atp", programs, options)

    def rank_command(self, rank, work, _variant):
        return self.ranks.command(rank, work)


class TorchAtpInKernel(InKernel, TorchAtp):
    pass


class TorchGloo(System):
    """Ranks use PyTorch with its own Gloo backend, which chooses the algorithm."""

    programs = ("atp",)
    modules = ("torch",)
    targets = ("atp",)
    collectives = COLLECTIVES

    def __init__(self, name, programs, options):
        super().__init__(name)
        self.ranks = TorchRanks("gloo", programs, options)

    def rank_command(self, rank, work, _variant):
        return self.ranks.command(rank, work)


class TorchGlooFloat8(TorchGloo):
    """The same, with a communication hook that sends float8 and adds in float32."""

    collectives = ()

    def rank_command(self, rank, work, _variant):
        operation = dataclasses.replace(work.operation, collective="all_reduce_float8")
        return self.ranks.command(rank, dataclasses.replace(work, operation=operation))


class TorchRanks:
    """Commands of the ranks that use PyTorch. Each rank computes with one thread, because all ranks share a host."""

    def __init__(self, backend, programs, options):
        self.backend = backend
        self._server = options.topology.server
        self._python = options.python
        self._programs = programs

    def command(self, rank, work):
        return [
            "env",
            f"PYTHONPATH={package_folder(self._programs)}",
            "OMP_NUM_THREADS=1",
            f"GLOO_SOCKET_IFNAME={rank.device}",
            f"ATP_SWITCH={endpoint(rank.host.switch, SWITCH_PORT)}",
            f"ATP_HOST_LEVEL={'on' if rank.shares_host else 'off'}",
            *([f"ATP_LANES={work.operation.lane_type}"] if work.operation.lane_type else []),
            *([f"ATP_SERVER=dedicated:{endpoint(self._server, SWITCH_PORT)}"] if self._server else []),
            self._python,
            *self.task(work),
            *("--backend", self.backend),
            *flags_of_rank(rank),
            *("--store", os.path.join(rank.store, "store")),
        ]

    def task(self, work):
        """The program of a rank and the flags of its work."""
        warmup = ["--warmup", str(work.warmup)]
        if work.workload is None:
            operation = work.operation
            magnitude = ["--magnitude", str(operation.magnitude)] if operation.magnitude is not None else []
            size = ["--bytes", str(work.bytes), "--rounds", str(work.operations)]
            kind = ["--collective", operation.collective, "--type", operation.type]
            return [TORCH_COLLECTIVE, *kind, *magnitude, *size, *warmup]
        workload = work.workload
        model = ["--workload", workload.name, "--parallel", workload.parallel, "--share", str(workload.share)]
        steps = ["--compute", workload.compute, "--steps", str(work.operations)]
        link = ["--link-bps", str(workload.link_bps)] if workload.link_bps else []
        return [TORCH_TRAINING, "--programs", self._programs, *model, *steps, *link, *warmup]


OF_ALL_REDUCE = {
    "atp": Atp,
    "atp-xdp": AtpInKernel,
    "atp-p4": AtpInPipeline,
    "atp-p4-passes": AtpInPasses,
    "atp-none": AtpWithoutSwitch,
    "atp-racks": AtpRacks,
    "atp-nowhere": AtpNowhere,
    "gloo": Gloo,
    "openmpi": OpenMpi,
    "torch-atp": TorchAtp,
    "torch-gloo": TorchGloo,
    "torch-gloo-float8": TorchGlooFloat8,
    "switchml": SwitchMl,
}
# Systems of a collective that is not the default.
OF_TORCH = ("torch-atp", "torch-gloo")
OF_TRAINING = {"atp": TorchAtp, "atp-xdp": TorchAtpInKernel, "gloo": TorchGloo}

# With so many racks that have a switch; `-no-root`: no switch is above them.
OF_LEAVES = {
    f"atp-leaves{count}{suffix}": type(f"AtpLeaves{count}", (AtpWithLeaves,), {"leaves": count, "has_root": not suffix})
    for count in range(10)
    for suffix in ("", "-no-root")
}
OF_ALL_REDUCE_AND_LEAVES = {**OF_ALL_REDUCE, **OF_LEAVES}

# The systems that replace `atp`, by the value of --switch.
OF_SWITCH = {
    "user": ("atp",),
    "xdp": ("atp-xdp",),
    "p4": ("atp-p4",),
    "p4-passes": ("atp-p4-passes",),
    "both": ("atp", "atp-xdp"),
    "none": ("atp-none",),
}
