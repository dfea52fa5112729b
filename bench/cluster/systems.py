# SPDX-License-Identifier: Apache-2.0
"""The measured systems: for each one, the commands that start its switches and its ranks."""

import collections
import dataclasses
import json
import os
from dataclasses import dataclass
from typing import Optional

import network
import pipeline
import topology as topologies
from workloads import tables

FOLDER = os.path.dirname(os.path.abspath(__file__))
TORCH_COLLECTIVE = os.path.join(FOLDER, "torch_collective.py")
MPI_AGENT = os.path.join(FOLDER, "mpi_agent")
TORCH_TRAINING = os.path.join(FOLDER, "torch_training.py")

SWITCH_PORT = 4790
FIRST_RENDEZVOUS_PORT = 4800  # one per job
PIPELINE_LANES = 8  # a program with more lanes compiles for minutes
PIPELINE_AGGREGATORS = 4096
# Fragments in flight: with more of them, packets wait in the model for longer than the timers of the workers.
PIPELINE_WINDOW = 4
PIPELINE_REPORT_SECONDS = 1.5  # the agent reads the counters of the model every second


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


@dataclass(frozen=True)
class Operation:
    """A collective on a tensor of elements of a type. Only PyTorch's systems measure others than this default.
    `magnitude` is the largest element of the first rank; None: the usual one of the system. `lane_type` is that of ATP;
    None: its default."""

    collective: str = "all_reduce"
    type: str = "float32"
    magnitude: Optional[float] = None
    lane_type: Optional[str] = None


@dataclass(frozen=True)
class Work:
    """The work of each system in one turn: operations on `bytes` bytes, or steps of a workload with `bytes` bytes of
    gradients."""

    bytes: int
    operations: int
    warmup: int
    jobs: int
    workload: Optional[Workload] = None
    operation: Operation = Operation()


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


# Flags of `atp-lab switch` and `atp-lab bench` that `atp` lacks.
EXPERIMENTS = {
    *("--protocol", "--switchml-mode", "--switchml-timeout", "--no-halving"),
    *("--port-rate", "--queue", "--ecn", "--loss", "--lossy-ports", "--seed"),
}


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
    switch only; without `shares_hosts`, one rank on each host. With `sums_on_hosts`, the result states how many ranks
    of a host summed in memory. With `takes_ports`, its switches replace the bridges, and its counters are
    `counters_age_seconds` old at most. `tools` are programs that the build does not make."""

    programs = ()
    tools = ()
    modules = ()
    targets = ()
    variants = ("",)
    first_rank_starts_others = False
    spans_racks = True
    shares_hosts = True
    sums_on_hosts = False
    takes_ports = False
    counters_age_seconds = 0

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


class AtpSwitches(System):
    """Runs the daemons of ATP in the namespaces of the switches and of a server host."""

    programs = ("atp", "atp-lab")
    experiment = False
    targets = ("atp", "atp-lab")

    def __init__(self, name, programs, options):
        super().__init__(name)
        # Only atp-lab has the flags of EXPERIMENTS.
        experiment = (
            self.experiment
            or options.loss
            or EXPERIMENTS
            & {flag.split("=")[0] for flag in (*options.switch_flags, *getattr(options, "rank_flags", ()))}
        )
        self._program = os.path.join(programs, "atp-lab" if experiment else "atp")
        self._stats = os.path.join(programs, "atp")
        self._memory = options.memory
        self._loss = options.loss
        self._switch_flags = options.switch_flags
        self._topology = options.topology

    def daemon_command(self, node):
        return self.server_command(node) if node == self._topology.server else self.switch_command(node)

    def server_command(self, host):
        """Without aggregators (--memory 0), the daemon only runs the server: it adds packets that no switch added."""
        return [self._program, "switch", "--listen", _endpoint(host, SWITCH_PORT), "--memory", "0"]

    def switch_command(self, switch):
        command = [self._program, "switch", "--listen", _endpoint(switch, SWITCH_PORT), "--memory", self._memory]
        if switch.parent:
            command += ["--parent", _endpoint(switch.parent, SWITCH_PORT)]
        if self._loss:
            command += ["--loss", f"{self._loss:.9f}"]
        return command + self._switch_flags

    def counters_command(self, switch):
        return [self._stats, "stats", _endpoint(switch, SWITCH_PORT), "--json"]


class InKernel:
    """Starts daemons with --xdp: the kernel aggregates packets that arrive on the ports of the bridge."""

    spans_racks = False

    def switch_command(self, switch):
        ports = [topologies.port_to(host) for host in self._topology.hosts_of(switch)]
        return [*super().switch_command(switch), "--xdp", ",".join(ports)]

    def server_command(self, host):
        """Workers use the daemon of the server host as their switch. They do not address the switch in the path."""
        return [self._program, "switch", "--listen", _endpoint(host, SWITCH_PORT), "--memory", self._memory]

    def address_flags(self, rank):
        asked = self._topology.server or rank.host.switch
        return ["--switch", _endpoint(asked, SWITCH_PORT)]


class Atp(AtpSwitches):
    """Ranks are processes of `atp bench` in the namespaces of the hosts."""

    sums_on_hosts = True

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self._rank_flags = options.rank_flags

    def rank_command(self, rank, work, _variant):
        return [
            self._program,
            "bench",
            "--rank",
            str(rank.number),
            "--world",
            str(len(rank.hosts)),
            "--rendezvous",
            _endpoint(rank.hosts[0], FIRST_RENDEZVOUS_PORT + rank.job),
            *self.address_flags(rank),
            "--bytes",
            str(work.bytes),
            "--rounds",
            str(work.operations),
            "--warmup",
            str(work.warmup),
            "--json",
            *(["--host-level"] if rank.shares_host else []),
            *(["--lanes", work.operation.lane_type] if work.operation.lane_type else []),
            *self._rank_flags,
        ]

    def address_flags(self, rank):
        """Flags with the address of the switch of a rank and, if there is one, of the dedicated server."""
        server = self._topology.server
        dedicated = ["--dedicated-server", _endpoint(server, SWITCH_PORT)] if server else []
        return ["--switch", _endpoint(rank.host.switch, SWITCH_PORT), *dedicated]


class AtpInKernel(InKernel, Atp):
    pass


class AtpInPipeline(Atp):
    """While a turn runs, a simple_switch of BMv2 and its agent replace each bridge. Workers use the daemon on the host of
    the server as their switch; the model aggregates packets that pass."""

    programs = targets = ("atp",)
    tools = pipeline.TOOLS
    takes_ports = True
    counters_age_seconds = PIPELINE_REPORT_SECONDS

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self._compiled = None

    def prepare(self, folder):
        network.require_tools("ethtool", "ethtool")
        self._compiled = pipeline.compiled(folder, PIPELINE_LANES, PIPELINE_AGGREGATORS)

    def daemons(self, node):
        if node == self._topology.server:
            return super().daemons(node)
        ports = [topologies.port_to(below) for below, above in self._topology.links() if above == node]
        model = pipeline.model_command(self._compiled, [*ports, *([topologies.UPLINK_DEVICE] if node.parent else [])])
        return [Daemon(model, pipeline.THRIFT_PORT, "tcp"), Daemon(self.switch_command(node))]

    def switch_command(self, switch):
        level = 1 if self._topology.has_racks and switch.parent is None else 0
        return [self._program, "switch", "--listen", _endpoint(switch, SWITCH_PORT), *pipeline.agent_flags(level)]

    def server_command(self, host):
        memory = ["--memory", self._memory, "--lanes", str(PIPELINE_LANES)]
        return [self._program, "switch", "--listen", _endpoint(host, SWITCH_PORT), *memory, *self._switch_flags]

    def address_flags(self, rank):
        rack = ["--rack", rank.host.switch.name] if self._topology.has_racks else []
        window = ["--window", str(PIPELINE_WINDOW)] if "--window" not in self._rank_flags else []
        return ["--switch", _endpoint(self._topology.server, SWITCH_PORT), *rack, *window]


class AtpWithoutSwitch(Atp):
    """Nothing runs at the switches. Each host serves a part of the sums."""

    def daemon_command(self, _node):
        return None

    def counters_command(self, _switch):
        return None

    def address_flags(self, rank):
        return ["--listen", _endpoint(rank.host, 0)]


class AtpWithLeaves(Atp):
    """Only the first `leaves` racks have a switch that adds. Without `has_root`, no switch is above the racks. Ranks know
    their rack and the rates of the links, and choose the layout."""

    leaves = 0
    has_root = True

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self._rates = ["--link-rate", f"{options.rate}", "--uplink-rate", f"{options.uplink}"]
        self._racks = [switch for switch in self._topology.switches if switch.parent]

    def _adds(self, switch):
        return switch in self._racks[: self.leaves] or (self.has_root and switch.parent is None)

    def daemon_command(self, node):
        return self.switch_command(node) if self._adds(node) else None

    def switch_command(self, switch):
        command = super().switch_command(switch)
        if not self.has_root and "--parent" in command:
            at = command.index("--parent")
            del command[at : at + 2]
        return command

    def counters_command(self, switch):
        return super().counters_command(switch) if self._adds(switch) else None

    def address_flags(self, rank):
        near = rank.host.switch
        adding = near if self._adds(near) else near.parent
        if self._adds(adding):
            place = ["--switch", _endpoint(adding, SWITCH_PORT)]
        else:
            place = []
        return [*place, "--listen", _endpoint(rank.host, 0), "--uplink", near.name, *self._rates]


class SwitchMl(Atp):
    """The programs of ATP with the protocol SwitchML and one switch. The best number of packets in flight and the best
    timeout depend on the network. Unless flags of the ranks set one of them, the benchmark tries some pairs."""

    experiment = True
    spans_racks = False
    shares_hosts = False
    sums_on_hosts = False
    tunings = {
        f"{slots} slots, {timeout}": ("--window", str(slots), "--switchml-timeout", timeout)
        for slots, timeout in ((16, "1ms"), (64, "5ms"), (256, "20ms"))
    }

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        if not {"--window", "--switchml-timeout"} & set(options.rank_flags):
            self.variants = tuple(self.tunings)

    def switch_command(self, switch):
        return [*super().switch_command(switch), "--protocol", "switchml"]

    def rank_command(self, rank, work, variant):
        tuning = self.tunings.get(variant, ())
        return [*super().rank_command(rank, work, variant), "--protocol", "switchml", *tuning]


class Gloo(System):
    """Gloo. The fastest of its algorithms depends on the network, so by default the benchmark tries all of them."""

    programs = ("bench_gloo",)
    targets = ("bench_gloo",)
    algorithms = ("ring", "ring_chunked", "halving_doubling", "bcube")

    def __init__(self, name, programs, options):
        super().__init__(name)
        self._program = os.path.join(programs, "bench_gloo")
        self.variants = self.algorithms if options.gloo_algorithm == "best" else (options.gloo_algorithm,)

    def rank_command(self, rank, work, variant):
        return [
            self._program,
            "--rank",
            str(rank.number),
            "--world",
            str(len(rank.hosts)),
            "--store",
            rank.store,
            "--address",
            rank.host.address,
            "--algorithm",
            variant,
            "--bytes",
            str(work.bytes),
            "--rounds",
            str(work.operations),
            "--warmup",
            str(work.warmup),
            "--json",
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
            "env",
            "OMPI_ALLOW_RUN_AS_ROOT=1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            f"ATP_ENTRIES={json.dumps(dict(zip(addresses, rank.entries)))}",
            "mpirun",
            *(word for name, value in settings.items() for word in ("--mca", name, value)),
            "--bind-to",
            "none",
            "--host",
            ",".join(f"{address}:{count}" for address, count in slots.items()),
            "-n",
            str(len(rank.hosts)),
            self._program,
            "--bytes",
            str(work.bytes),
            "--rounds",
            str(work.operations),
            "--warmup",
            str(work.warmup),
            "--json",
        ]


class TorchAtp(AtpSwitches):
    """Ranks use PyTorch with the `atp` backend."""

    modules = ("torch", "atp")
    targets = ("atp", "atp_torch")

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self._torch = TorchRanks("atp", programs, options)

    def rank_command(self, rank, work, _variant):
        return self._torch.command(rank, work)


class TorchAtpInKernel(InKernel, TorchAtp):
    pass


class TorchGloo(System):
    """Ranks use PyTorch with its own Gloo backend, which chooses the algorithm."""

    programs = ("atp",)
    modules = ("torch",)
    targets = ("atp",)

    def __init__(self, name, programs, options):
        super().__init__(name)
        self._torch = TorchRanks("gloo", programs, options)

    def rank_command(self, rank, work, _variant):
        return self._torch.command(rank, work)


class TorchGlooFloat8(TorchGloo):
    """The same, with a communication hook that sends float8 and adds in float32."""

    def rank_command(self, rank, work, _variant):
        operation = dataclasses.replace(work.operation, collective="all_reduce_float8")
        return self._torch.command(rank, dataclasses.replace(work, operation=operation))


class TorchRanks:
    """Commands of the ranks that use PyTorch. Each rank computes with one thread, because all ranks share a host."""

    def __init__(self, backend, programs, options):
        self._backend = backend
        self._python = options.python
        self._programs = programs

    def command(self, rank, work):
        return [
            "env",
            f"PYTHONPATH={package_folder(self._programs)}",
            "OMP_NUM_THREADS=1",
            f"GLOO_SOCKET_IFNAME={rank.device}",
            f"ATP_SWITCH={_endpoint(rank.host.switch, SWITCH_PORT)}",
            f"ATP_HOST_LEVEL={'on' if rank.shares_host else 'off'}",
            *([f"ATP_LANES={work.operation.lane_type}"] if work.operation.lane_type else []),
            self._python,
            *self._task(work),
            "--backend",
            self._backend,
            "--rank",
            str(rank.number),
            "--world",
            str(len(rank.hosts)),
            "--store",
            os.path.join(rank.store, "store"),
            "--warmup",
            str(work.warmup),
        ]

    def _task(self, work):
        if work.workload is None:
            magnitude = work.operation.magnitude
            return [
                TORCH_COLLECTIVE,
                "--collective",
                work.operation.collective,
                "--type",
                work.operation.type,
                *(["--magnitude", str(magnitude)] if magnitude is not None else []),
                "--bytes",
                str(work.bytes),
                "--rounds",
                str(work.operations),
            ]
        workload = work.workload
        link = ["--link-bps", str(workload.link_bps)] if workload.link_bps else []
        return [
            TORCH_TRAINING,
            "--programs",
            self._programs,
            "--workload",
            workload.name,
            "--parallel",
            workload.parallel,
            "--share",
            str(workload.share),
            "--compute",
            workload.compute,
            "--steps",
            str(work.operations),
            *link,
        ]


OF_ALL_REDUCE = {
    "atp": Atp,
    "atp-xdp": AtpInKernel,
    "atp-p4": AtpInPipeline,
    "atp-none": AtpWithoutSwitch,
    "gloo": Gloo,
    "openmpi": OpenMpi,
    "torch-atp": TorchAtp,
    "torch-gloo": TorchGloo,
    "torch-gloo-float8": TorchGlooFloat8,
    "switchml": SwitchMl,
}
# These measure every collective and type.
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
    "both": ("atp", "atp-xdp"),
    "none": ("atp-none",),
}


def package_folder(programs):
    """The folder of Python packages in the build that contains these programs."""
    return os.path.join(os.path.dirname(programs), "python")


def _endpoint(node, port):
    return f"{node.address}:{port}"
