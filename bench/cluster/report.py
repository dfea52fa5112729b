# SPDX-License-Identifier: Apache-2.0
"""Formats the results of the turns as a table and as JSON."""

import json
import os
import statistics
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import faults  # noqa: E402
from switch_report import share_in_network  # noqa: E402

# A frame with an IP packet of 1,500 bytes, as links count it: with the Ethernet header of 14 bytes, without checksum,
# preamble and gap. UDP over IPv4 leaves 1,472 bytes.
FRAME_BYTES = 1514
UDP_PAYLOAD_BYTES = 1472


def limit_bps(topology, links):
    """Upper limit of the goodput of an all-reduce: a tensor crosses each link at least once in each direction. None for
    a local topology, which has no links."""
    if topology.is_local:
        return None
    has_uplinks = any(switch.parent for switch in topology.switches)
    narrowest_bps = min(links.host_bps, links.uplink_bps) if has_uplinks else links.host_bps
    return narrowest_bps * UDP_PAYLOAD_BYTES / FRAME_BYTES


@dataclass(frozen=True)
class Setting:
    """The environment and the settings of a measurement."""

    topology: object
    links: object
    placement: str
    work: object
    faults: tuple = ()  # as --fault has them
    ranks_per_host: int = 1
    leaves: tuple = ()  # as --leaves has them

    @property
    def world(self):
        return len(self.topology.hosts) * self.ranks_per_host

    def as_dict(self):
        return {
            "topology": self.topology.text,
            "placement": self.placement,
            "server": "host" if self.topology.server else "switch",
            "rate_bps": self.links.host_bps,
            "uplink_bps": self.links.uplink_bps,
            "server_bps": self.links.server_bps,
            "queue_bytes": self.links.queue_bytes,
            "offloads": self.links.offloads,
            "bytes": self.work.bytes,
            "collective": self.work.operation.collective,
            "type": self.work.operation.type,
            "magnitude": self.work.operation.magnitude,
            "world": self.world,
            "ranks_per_host": self.ranks_per_host,
            "jobs": self.work.jobs,
            "models": [str(model) for model in self.work.models],
            "job_hosts": [[host.name for host in hosts] for hosts in self.work.job_hosts],
            "operations": self.work.operations,
            "faults": list(self.faults),
        }

    def describe_faults(self, turns):
        """Lines with the counts of the faults for each system. `turns` maps the name of a system to its turns."""
        lines = [
            f"{name}, {line}"
            for name in (turns if self.faults else ())
            for line in faults.describe(faults.sum_of(turn.faults for turn in turns[name]))
        ]
        return [*lines, ""] if lines else []

    def describe_links(self):
        if self.topology.is_local:
            return f"{self.topology.text} over this machine's loopback"
        uplinks = ""
        if any(switch.parent for switch in self.topology.switches):
            uplinks = f", uplinks of {self.links.uplink_bps / 1e6:g} Mbit/s"
        each = f" ({self.ranks_per_host} on each host)" if self.ranks_per_host > 1 else ""
        frames = "" if self.links.offloads else ", without offloads"
        faulty = f", faults {' '.join(self.faults)}" if self.faults else ""
        return (
            f"{self.topology.text}, ranks {self.placement}{each}, links of {self.links.host_bps / 1e6:g} Mbit/s"
            f"{uplinks}{frames}{faulty}"
        )

    def bounds_of_rings(self):
        """By the number of racks with a switch: the goodput of Rina's ring at most, in which each such rack is one member
        and each host of the others another."""
        limit = limit_bps(self.topology, self.links)
        racks = len({host.switch for host in self.topology.hosts})
        of_rack = len(self.topology.hosts) // racks
        members = {count: count + (racks - count) * of_rack for count in self.leaves}
        return {count: limit * size / (2 * (size - 1)) for count, size in members.items()}

    def describe_jobs(self):
        return f"{self.work.jobs} jobs, " if self.work.jobs > 1 else ""

    def operations_of_a_turn(self):
        """Number of operations of all jobs, including the warm-up."""
        return (self.work.operations + self.work.warmup) * self.work.jobs

    def traffic_of_an_operation(self, turns):
        """Per operation: mean bytes over all links of a kind, and the packets that all links dropped. None for a local
        topology."""
        if self.topology.is_local:
            return None
        kinds = {"host_sent_bytes": [], "host_received_bytes": [], "uplink_sent_bytes": [], "uplink_received_bytes": []}
        hosts = {host.name for host in self.topology.hosts}
        for below, above in self.topology.links():
            kind = "host" if below.name in hosts else "uplink"
            for turn in turns:
                kinds[f"{kind}_sent_bytes"].append(turn.traffic[below.name, above.name][0])
                kinds[f"{kind}_received_bytes"].append(turn.traffic[above.name, below.name][0])
        dropped = [sum(packets for _, packets in turn.traffic.values()) for turn in turns]
        operations = self.operations_of_a_turn()
        means = {kind: statistics.fmean(counts or [0]) / operations for kind, counts in kinds.items()}
        return {**means, **self._server_bytes(turns), "dropped_packets": statistics.fmean(dropped) / operations}

    def _server_bytes(self, turns):
        """What reached the host of the server, if there is one."""
        server = self.topology.server
        if server is None:
            return {}
        received = [turn.traffic[server.switch.name, server.name][0] for turn in turns]
        return {"server_received_bytes": statistics.fmean(received) / self.operations_of_a_turn()}


class Report:
    """All results of one run. `turns` maps the name of a system to the list of its turns."""

    def __init__(self, setting, stream_bps, variants, turns):
        self._setting = setting
        self._topology = setting.topology
        self._work = setting.work
        self._stream_bps = stream_bps
        self._variants = variants
        self._turns = turns
        self._limit_bps = limit_bps(setting.topology, setting.links)

    def as_json(self):
        return json.dumps(
            {
                **self._setting.as_dict(),
                **self._comparison(),
                "limit_bps": self._limit_bps,
                "ring_bounds_bps": self._setting.bounds_of_rings(),
                "stream_bps": self._stream_bps,
                "rounds": self._rounds(),
                "systems": {name: self._system(name) for name in self._turns},
                "overhead_of_torch": {name: self._overhead_of_torch(name) for name in self._through_torch()},
            },
            indent=2,
        )

    def _comparison(self):
        """Compares the first system with the second."""
        name, *others = self._turns
        peer = others[0] if others else None
        goodputs = self._goodputs(name)
        peers = self._goodputs(peer) if peer else []
        ratios = [own / other for own, other in zip(goodputs, peers)]
        system = self._system(name)
        return {
            "workers": self._setting.world,
            "rate_mbps": None if self._topology.is_local else self._setting.links.host_bps / 1e6,
            **with_ends("goodput_mbps", [goodput / 1e6 for goodput in goodputs]),
            "limit_mbps": self._limit_bps / 1e6 if self._limit_bps else None,
            "share_of_limit": system["share_of_limit"],
            "peer": peer,
            **with_ends("peer_goodput_mbps", [goodput / 1e6 for goodput in peers]),
            **with_ends("ratio", ratios),
            "in_network_share": system["in_network_share"],
            "cpu_s_per_gb": system["cpu_seconds_per_gb"],
            "peer_cpu_s_per_gb": self._system(peer)["cpu_seconds_per_gb"] if peer else None,
        }

    def as_text(self):
        lines = [
            self._headline(),
            *self._limit_lines(),
            "",
            f"{'system':<32} {'Mbit/s per rank':>15} {'min .. max':>17} {'of limit':>8} {'x gloo':>7} "
            f"{'CPU s/GB':>8} {'switch':>6} {'+ports':>6} {'machine':>7} {'busy':>5} {'sent MB':>8} {'got MB':>8} {'up MB':>8} {'dropped':>8}",
        ]
        lines += [self._row(name) for name in self._turns] + [""]
        lines += self._setting.describe_faults(self._turns)
        lines += self._steps_lines()
        return "\n".join(lines + [self._overhead_line(name) for name in self._through_torch()] + [_LEGEND])

    def _headline(self):
        operation = self._work.operation
        magnitude = "" if operation.magnitude is None else f" up to {operation.magnitude:g}"
        what = f"{operation.collective} of {self._work.bytes / 1e6:g} MB {operation.type}{magnitude}"
        if self._work.models:
            what = ", ".join(map(str, self._work.models))
        return (
            f"{self._setting.describe_links()}: {self._setting.describe_jobs()}{what}, "
            f"{len(self._rounds())} rounds of {self._work.operations} operations"
        )

    def _limit_lines(self):
        if self._limit_bps is None:
            return []
        share = self._stream_bps / self._limit_bps
        return [
            f"limit: {self._limit_bps / 1e6:.1f} Mbit/s of payload ({UDP_PAYLOAD_BYTES} of the {FRAME_BYTES} bytes "
            f"of a full frame); a plain TCP stream reached {self._stream_bps / 1e6:.1f}, {share:.3f} of it",
            *(
                f"bound of Rina, a ring of {count} racks with a switch and of the hosts of the others: {bound / 1e6:.1f}"
                for count, bound in self._setting.bounds_of_rings().items()
            ),
        ]

    def _row(self, name):
        system = self._system(name)
        each = self._goodputs(name)
        chosen = self._variants[name] or (system["layout"] if self._setting.leaves else None)
        title = f"{name} ({chosen})" if chosen else name
        spread = f"{min(each) / 1e6:.1f} .. {max(each) / 1e6:.1f}"
        traffic = system["traffic_of_an_operation"]
        return (
            f"{title:<32} {system['goodput_bps'] / 1e6:>15.1f} {spread:>17} "
            f"{or_dash(system['share_of_limit'], '.3f'):>8} {or_dash(system['ratio_to_gloo'], '.2f'):>7} "
            f"{system['cpu_seconds_per_gb']:>8.2f} {system['switch_cpu_seconds_per_gb']:>6.2f} "
            f"{or_dash(system['switch_box_cpu_seconds_per_gb'], '.2f'):>6} "
            f"{system['machine_cpu_seconds_per_gb']:>7.2f} {system['machine_busy']:>5.2f} "
            f"{megabytes(traffic, 'host_sent_bytes'):>8} {megabytes(traffic, 'host_received_bytes'):>8} "
            f"{megabytes(traffic, 'uplink_sent_bytes'):>8} "
            f"{or_dash(traffic and traffic['dropped_packets'], '.1f'):>8}"
        )

    def _steps_lines(self):
        """The steps per second of each job that trains a model, for each system."""
        names = [model.name for model in self._work.models]
        rates = {name: self._jobs_steps_per_s(name) for name in (self._turns if names else ())}
        return [
            f"{system}, steps/s: {', '.join(f'{name} {rate:.3f}' for name, rate in zip(names, of_jobs))}"
            for system, of_jobs in rates.items()
        ]

    def _jobs_steps_per_s(self, name):
        return [1 / statistics.median(self._seconds(name, job)) for job in range(self._work.jobs)]

    def _rounds(self):
        return [
            {
                name: {
                    "seconds": turn.jobs_seconds,
                    "goodput_bps": turn.goodput_bps(self._work),
                    "series": turn.series,
                    "additions": turn.additions,
                }
                for name, turn in zip(self._turns, of_one_round)
            }
            for of_one_round in zip(*self._turns.values())
        ]

    def _system(self, name):
        turns = self._turns[name]
        goodput_bps = statistics.median(self._goodputs(name))
        gloo_bps = statistics.median(self._goodputs("gloo")) if "gloo" in self._turns else None
        jobs = range(self._work.jobs)
        return {
            "variant": self._variants[name],
            "layout": turns[0].layout(),
            "goodput_bps": goodput_bps,
            "jobs_goodput_bps": [
                self._work.bytes_of(job) * 8 / statistics.median(self._seconds(name, job)) for job in jobs
            ],
            "jobs_steps_per_s": self._jobs_steps_per_s(name),
            "jobs_together_bps": [
                self._work.bytes_of(job) * 8 * statistics.median(each)
                for job, each in enumerate(zip(*(turn.jobs_together() for turn in turns)))
            ],
            "share_of_limit": goodput_bps / self._limit_bps if self._limit_bps else None,
            "ratio_to_gloo": goodput_bps / gloo_bps if gloo_bps else None,
            "cpu_seconds_per_gb": statistics.median(map(self._cpu_seconds_of_a_gigabyte, turns)),
            "switch_cpu_seconds_per_gb": self._of_a_gigabyte(turn.switches_cpu_seconds for turn in turns),
            "switch_box_cpu_seconds_per_gb": self._of_switch_hosts(turns),
            "machine_cpu_seconds_per_gb": self._of_a_gigabyte(turn.machine_cpu_seconds for turn in turns),
            "in_network_share": share_in_network([switch for turn in turns for switch in turn.counters]),
            "machine_busy": statistics.median(turn.machine_busy for turn in turns),
            "traffic_of_an_operation": self._setting.traffic_of_an_operation(turns),
            "faults": faults.sum_of(turn.faults for turn in turns),
            "seconds": [seconds for job in jobs for seconds in self._seconds(name, job)],
        }

    def _through_torch(self):
        return [name for name in self._turns if f"torch-{name}" in self._turns]

    def _overhead_of_torch(self, name):
        """Extra time through torch.distributed, as a share of the time of the system alone, compared in each round."""
        pairs = zip(self._goodputs(name), self._goodputs(f"torch-{name}"))
        overheads = [alone / through_torch - 1 for alone, through_torch in pairs]
        fastest = [min(turn.fastest() for turn in self._turns[each]) for each in (f"torch-{name}", name)]
        return {
            "median": statistics.median(overheads),
            "min": min(overheads),
            "max": max(overheads),
            "of_fastest": fastest[0] / fastest[1] - 1,
        }

    def _overhead_line(self, name):
        overhead = self._overhead_of_torch(name)
        return (
            f"torch-{name} takes {overhead['median']:.1%} longer than {name} (by round, {overhead['min']:.1%} .. "
            f"{overhead['max']:.1%}; the fastest operation of all {overhead['of_fastest']:.1%})"
        )

    def _goodputs(self, name):
        return [turn.goodput_bps(self._work) for turn in self._turns[name]]

    def _seconds(self, name, job):
        return [seconds for turn in self._turns[name] for seconds in turn.jobs_seconds[job]]

    def _of_switch_hosts(self, turns):
        """Processor time of daemons and ports per gigabyte; None if the time of the ports is unknown."""
        if any(turn.ports_cpu_seconds is None for turn in turns):
            return None
        return self._of_a_gigabyte(turn.switches_cpu_seconds + turn.ports_cpu_seconds for turn in turns)

    def _cpu_seconds_of_a_gigabyte(self, turn):
        """Ranks count their measured operations, daemons the warm-up too."""
        measured_gigabytes = self._work.bytes_of_ranks(self._setting.world) * self._work.operations / 1e9
        return turn.ranks_cpu_seconds / measured_gigabytes + self._of_a_gigabyte([turn.switches_cpu_seconds])

    def _of_a_gigabyte(self, of_turns):
        """Median of the times of the turns, per gigabyte that all ranks contributed. The bytes of the warm-up are
        included, because the times include the warm-up too."""
        operations = self._work.operations + self._work.warmup
        gigabytes = self._work.bytes_of_ranks(self._setting.world) * operations / 1e9
        return statistics.median(of_turns) / gigabytes


_LEGEND = """\
Mbit/s per rank: bits of the tensor divided by the median time, added over all jobs on a host; median of the rounds.
CPU s/GB: user and system time of all ranks and switch daemons, per GB of tensors, added over all ranks, without their
start and without what fills and verifies tensors. switch: the daemons alone. +ports: the daemons and the kernel's work
for packets that arrive at the switches' ports, including the sums of a kernel switch; known with --offloads off.
machine: all work of the processors, including the start of all programs, and other programs. busy: share of all
processors' time that was not idle during the operations; near 1, they may limit the rate instead of the links. sent,
got: MB over a host's link per operation. up: MB over a rack's uplink or a server's link per operation. dropped: packets
that all links dropped per operation."""


def with_ends(key, values):
    """The median, minimum and maximum of `values` under keys that begin with `key`; None if there are no values."""
    return {
        key: statistics.median(values) if values else None,
        f"{key}_min": min(values, default=None),
        f"{key}_max": max(values, default=None),
    }


def megabytes(traffic, kind):
    return or_dash(traffic and traffic[kind] / 1e6, ".1f")


def or_dash(value, form):
    return "-" if value is None else format(value, form)
