# SPDX-License-Identifier: Apache-2.0
"""What is measured: for each system, the commands that its switches and its ranks are started with."""
import os
import sys
from dataclasses import dataclass

FOLDER = os.path.dirname(os.path.abspath(__file__))
TORCH_ALL_REDUCE = os.path.join(FOLDER, "torch_all_reduce.py")

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
    """One process of one job. `hosts` are those of all its ranks, in their order; `store` is a folder of the job's;
    `device` is the interface that it speaks through."""
    job: int
    number: int
    hosts: tuple
    store: str
    device: str

    @property
    def host(self):
        return self.hosts[self.number]


class Atp:
    """Daemons in the switches' namespaces, and the command's own benchmark in the hosts'."""
    name = "atp"
    programs = ("atp",)
    targets = programs
    variants = ("",)

    def __init__(self, programs, options):
        self._program = os.path.join(programs, "atp")
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
    programs = ("bench_gloo",)
    targets = programs
    algorithms = ("ring", "ring_chunked", "halving_doubling", "bcube")

    def __init__(self, programs, options):
        self._program = os.path.join(programs, "bench_gloo")
        self.variants = self.algorithms if options.gloo_algorithm == "best" else (options.gloo_algorithm,)

    def switch_command(self, _switch):
        return None

    def rank_command(self, rank, work, variant):
        return [self._program, "--rank", str(rank.number), "--world", str(len(rank.hosts)), "--store", rank.store,
                "--address", rank.host.address, "--algorithm", variant,
                "--bytes", str(work.bytes), "--rounds", str(work.operations), "--warmup", str(work.warmup), "--json"]


class TorchAtp(Atp):
    """The same daemons; the ranks are PyTorch's, with the backend."""
    name = "torch-atp"
    targets = ("atp", "atp_torch")

    def __init__(self, programs, options):
        super().__init__(programs, options)
        self._torch = Torch(programs, options)

    def rank_command(self, rank, work, _variant):
        return self._torch.rank_command("atp", rank, work)


class TorchGloo:
    """PyTorch's own Gloo, which chooses its algorithm itself."""
    name = "torch-gloo"
    programs = ()
    targets = ()
    variants = ("",)

    def __init__(self, programs, options):
        self._torch = Torch(programs, options)

    def switch_command(self, _switch):
        return None

    def rank_command(self, rank, work, _variant):
        return self._torch.rank_command("gloo", rank, work)


class Torch:
    """How PyTorch's ranks are started: what users would set, and one thread each, since the ranks share a machine."""

    def __init__(self, programs, options):
        self._python = options.python
        self._package = os.path.join(os.path.dirname(programs), "python")

    def rank_command(self, backend, rank, work):
        return ["env", f"PYTHONPATH={self._package}", "OMP_NUM_THREADS=1", f"GLOO_SOCKET_IFNAME={rank.device}",
                f"ATP_SWITCH={_endpoint(rank.host.switch, SWITCH_PORT)}", self._python, TORCH_ALL_REDUCE,
                "--backend", backend, "--rank", str(rank.number), "--world", str(len(rank.hosts)),
                "--store", os.path.join(rank.store, "store"), "--bytes", str(work.bytes),
                "--rounds", str(work.operations), "--warmup", str(work.warmup)]


BY_NAME = {system.name: system for system in (Atp, Gloo, TorchAtp, TorchGloo)}


def default_python(root):
    """The one that the build takes by default: what scripts/setup.sh has made, or else any."""
    made = os.path.join(root, "build", "venv", "bin", "python")
    return made if os.path.exists(made) else sys.executable


def _endpoint(node, port):
    return f"{node.address}:{port}"
