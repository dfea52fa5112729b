# SPDX-License-Identifier: Apache-2.0
"""Systems that are programs of ATP: the commands that start their switches and their ranks."""

import argparse
import itertools
import os

import network
import pipeline
import topology as topologies
from measured import SWITCH_PORT, Daemon, System, endpoint, flags_of_rank, flags_of_work

FIRST_RENDEZVOUS_PORT = 4800  # one per job
PIPELINE_LANES = 8  # a program with more lanes compiles for minutes
PIPELINE_AGGREGATORS = 4096
# Fragments in flight: with more of them, packets wait in the model for longer than the timers of the workers.
PIPELINE_WINDOW = 4
PIPELINE_REPORT_SECONDS = 1.5  # the agent reads the counters of the model every second

# Flags of `atp-lab switch` and `atp-lab bench` that `atp` lacks.
EXPERIMENTS = {
    *("--protocol", "--switchml-mode", "--switchml-timeout", "--no-halving"),
    *("--port-rate", "--queue", "--ecn", "--loss", "--lossy-ports", "--seed"),
    *("--linear", "--partition", "--job-number", "--forward-share"),
}


def assignment_of(switch_flags):
    """The switch flags that say how slots find their aggregators. Servers and ranks need them too."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--partition")
    known, _ = parser.parse_known_args(switch_flags)
    return (["--linear"] if known.linear else []) + (["--partition", known.partition] if known.partition else [])


class AtpSwitches(System):
    """Runs the daemons of ATP in the namespaces of the switches and of a server host."""

    programs = ("atp", "atp-lab")
    experiment = False
    targets = ("atp", "atp-lab")

    def __init__(self, name, programs, options):
        super().__init__(name)
        self._job_flags = getattr(options, "job_flags", [])
        flags = [*options.switch_flags, *getattr(options, "rank_flags", ()), *itertools.chain(*self._job_flags)]
        # Only atp-lab has the flags of EXPERIMENTS, and models.
        experiment = self.experiment or options.loss or EXPERIMENTS & {flag.split("=")[0] for flag in flags}
        experiment = experiment or getattr(options, "models", ())
        self._program = os.path.join(programs, "atp-lab" if experiment else "atp")
        self._stats = os.path.join(programs, "atp")
        self._memory = options.memory
        self._loss = options.loss
        self._switch_flags = options.switch_flags
        self._assignment = assignment_of(options.switch_flags)
        self._topology = options.topology

    def daemon_command(self, node):
        return self.server_command(node) if node == self._topology.server else self.switch_command(node)

    def server_command(self, host):
        """Without aggregators (--memory 0), the daemon only runs the server: it adds packets that no switch added."""
        return [self._program, "switch", "--listen", endpoint(host, SWITCH_PORT), "--memory", "0", *self._assignment]

    def parent_of(self, switch):
        return switch.parent

    def switch_command(self, switch):
        command = [self._program, "switch", "--listen", endpoint(switch, SWITCH_PORT), "--memory", self._memory]
        if self.parent_of(switch):
            command += ["--parent", endpoint(self.parent_of(switch), SWITCH_PORT)]
        if self._loss:
            command += ["--loss", f"{self._loss:.9f}"]
        return command + self._switch_flags

    def counters_command(self, switch):
        return [self._stats, "stats", endpoint(switch, SWITCH_PORT), "--json"]


class InKernel:
    """Starts daemons with --xdp: the kernel aggregates packets that arrive on the ports of the bridge."""

    spans_racks = False

    def switch_command(self, switch):
        ports = [topologies.port_to(host) for host in self._topology.hosts_of(switch)]
        return [*super().switch_command(switch), "--xdp", ",".join(ports)]

    def server_command(self, host):
        """Workers use the daemon of the server host as their switch. They do not address the switch in the path."""
        where = ["--listen", endpoint(host, SWITCH_PORT), "--memory", self._memory]
        return [self._program, "switch", *where, *self._assignment]

    def address_flags(self, rank):
        asked = self._topology.server or rank.host.switch
        return ["--switch", endpoint(asked, SWITCH_PORT)]


class Atp(AtpSwitches):
    """Ranks are processes of `atp bench` in the namespaces of the hosts."""

    sums_on_hosts = True
    collectives = ("all_reduce", "reduce_scatter", "all_gather", "both")
    trains_models = True

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self._rank_flags = options.rank_flags

    def rank_command(self, rank, work, _variant):
        return [
            self._program,
            "bench",
            *flags_of_rank(rank),
            *("--rendezvous", endpoint(rank.hosts[0], FIRST_RENDEZVOUS_PORT + rank.job)),
            *self.address_flags(rank),
            *flags_of_work(work, rank.job),
            *([] if rank.shares_host else ["--network"]),
            *self._operation_flags(work),
            *self._assignment,
            *(["--job-number", str(rank.job)] if "--partition" in self._assignment else []),
            *self._rank_flags,
            *(self._job_flags[rank.job] if rank.job < len(self._job_flags) else []),
        ]

    @staticmethod
    def _operation_flags(work):
        operation = work.operation
        flags = ["--type", operation.type]
        if not work.models:
            flags += ["--collective", operation.collective]
        if operation.magnitude:
            flags += ["--magnitude", str(operation.magnitude)]
        if operation.lane_type:
            flags += ["--lanes", operation.lane_type]
        return flags

    def address_flags(self, rank):
        """Flags with the address of the switch of a rank and, if there is one, of the dedicated server."""
        server = self._topology.server
        dedicated = ["--dedicated-server", endpoint(server, SWITCH_PORT)] if server else []
        return ["--switch", endpoint(rank.host.switch, SWITCH_PORT), *dedicated]


class AtpInKernel(InKernel, Atp):
    pass


class AtpInPipeline(Atp):
    """While a turn runs, a simple_switch of BMv2 and its agent replace each bridge. Workers use the daemon on the host of
    the server as their switch; the model aggregates packets that pass."""

    programs = targets = ("atp",)
    tools = pipeline.TOOLS
    program_of_model = pipeline.PROGRAM
    takes_ports = True
    trains_models = False
    counters_age_seconds = PIPELINE_REPORT_SECONDS

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self._compiled = None

    def prepare(self, folder):
        network.require_tools("ethtool", "ethtool")
        self._compiled = pipeline.compiled(folder, self.program_of_model, PIPELINE_LANES, PIPELINE_AGGREGATORS)

    def daemons(self, node):
        if node == self._topology.server:
            return super().daemons(node)
        ports = [topologies.port_to(below) for below, above in self._topology.links() if above == node]
        model = pipeline.model_command(self._compiled, [*ports, *([topologies.UPLINK_DEVICE] if node.parent else [])])
        return [Daemon(model, pipeline.THRIFT_PORT, "tcp"), Daemon(self.switch_command(node))]

    def switch_command(self, switch):
        level = 1 if self._topology.has_racks and switch.parent is None else 0
        flags = [*pipeline.agent_flags(level), *pipeline.HOLD]
        return [self._program, "switch", "--listen", endpoint(switch, SWITCH_PORT), *flags]

    def server_command(self, host):
        flags = ["--memory", self._memory, "--lanes", str(PIPELINE_LANES), *pipeline.HOLD]
        return [self._program, "switch", "--listen", endpoint(host, SWITCH_PORT), *flags, *self._switch_flags]

    def address_flags(self, rank):
        rack = ["--rack", rank.host.switch.name] if self._topology.has_racks else []
        window = ["--window", str(PIPELINE_WINDOW)] if "--window" not in self._rank_flags else []
        return ["--switch", endpoint(self._topology.server, SWITCH_PORT), *rack, *window]


class AtpInPasses(AtpInPipeline):
    program_of_model = pipeline.PROGRAM_OF_PASSES


class AtpWithoutSwitch(Atp):
    """Nothing runs at the switches. Each host serves a part of the sums."""

    def daemon_command(self, _node):
        return None

    def counters_command(self, _switch):
        return None

    def address_flags(self, rank):
        return ["--listen", endpoint(rank.host, 0)]


class AtpRacks(Atp):
    """Each switch adds only for the hosts of its own rack. The host of the server, which has no aggregators, is the parent
    of all, so the switch on the path there forwards the sums of other racks like any packet."""

    needs_server_host = True

    def parent_of(self, _switch):
        return self._topology.server

    def address_flags(self, rank):
        return ["--switch", endpoint(rank.host.switch, SWITCH_PORT)]


class AtpNowhere(AtpWithoutSwitch):
    """No switch adds: all gradients go to the server, which is the only daemon."""

    needs_server_host = True

    def daemon_command(self, node):
        return self.server_command(node) if node == self._topology.server else None

    def address_flags(self, rank):
        return ["--switch", endpoint(self._topology.server, SWITCH_PORT)]


class AtpWithLeaves(Atp):
    """Only the first `leaves` racks have a switch that adds. Without `has_root`, no switch is above the racks. Ranks know
    their rack and the rates of the links, and choose the layout."""

    leaves = 0
    has_root = True
    trains_models = False

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        self._rates = ["--link-rate", f"{options.rate}", "--uplink-rate", f"{options.uplink}"]
        self._racks = [switch for switch in self._topology.switches if switch.parent]

    def _adds(self, switch):
        return switch in self._racks[: self.leaves] or (self.has_root and switch.parent is None)

    def daemon_command(self, node):
        return self.switch_command(node) if self._adds(node) else None

    def parent_of(self, switch):
        return switch.parent if self.has_root else None

    def counters_command(self, switch):
        return super().counters_command(switch) if self._adds(switch) else None

    def address_flags(self, rank):
        near = rank.host.switch
        adding = near if self._adds(near) else near.parent
        if self._adds(adding):
            place = ["--switch", endpoint(adding, SWITCH_PORT)]
        else:
            place = []
        return [*place, "--listen", endpoint(rank.host, 0), "--uplink", near.name, *self._rates]


class SwitchMl(Atp):
    """The programs of ATP with the protocol SwitchML and one switch. The best number of packets in flight and the best
    timeout depend on the network. Unless flags of the ranks set one of them, the benchmark tries some pairs. Each
    timeout is about three times what the slots need at a link: a shorter one would repeat packets that are only
    queued."""

    experiment = True
    spans_racks = False
    shares_hosts = False
    sums_on_hosts = False
    collectives = ("all_reduce",)
    timeouts_ms = {16: 1, 64: 5, 256: 20}  # by slots, at 500 Mbit/s and above

    def __init__(self, name, programs, options):
        super().__init__(name, programs, options)
        slower = max(1, 500_000_000 / options.rate)
        self.tunings = {
            f"{slots} slots, {timeout}": ("--window", str(slots), "--switchml-timeout", timeout)
            for slots, timeout in ((slots, f"{ms * slower * 1000:.0f}us") for slots, ms in self.timeouts_ms.items())
        }
        if not {"--window", "--switchml-timeout"} & {*options.rank_flags, *itertools.chain(*self._job_flags)}:
            self.variants = tuple(self.tunings)

    def switch_command(self, switch):
        return [*super().switch_command(switch), "--protocol", "switchml"]

    def rank_command(self, rank, work, variant):
        tuning = self.tunings.get(variant, ())
        return [*super().rank_command(rank, work, variant), "--protocol", "switchml", *tuning]
