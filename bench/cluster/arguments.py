# SPDX-License-Identifier: Apache-2.0
"""Parses and checks the command line. Options that parse() returns are valid together."""

import argparse
import dataclasses
import os
import shlex
import sys

import atp_systems
import faults
import help_text
import measured
import quantities
import systems
import topology as topologies
from workloads import tables

LANE_TYPES = ("int32", "int16", "int8")
TYPES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}  # with their sizes
DEFAULT_BYTES = 25_000_000
DEFAULT_BYTES_OF_P4 = 20_000  # 625 packets of a rank: the reference model handles some 1,000 packets a second
DEFAULT_MEMORY = "64MB"
DEFAULT_MEMORY_OF_P4 = "200KB"  # packets name no aggregator that the pipeline does not have
SWITCHES_OF_P4 = ("p4", "p4-passes")
SYSTEMS_OF_P4 = {name for switch in SWITCHES_OF_P4 for name in systems.OF_SWITCH[switch]}
DEFAULT_WARMUP = 1
DEFAULT_WARMUP_STEPS = 2  # DistributedDataParallel reorders its buckets after the first step

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/cluster/run",
        description=help_text.DESCRIPTION,
        epilog=help_text.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_network(parser.add_argument_group("network"))
    _add_work(parser.add_argument_group("work"))
    _add_systems(parser.add_argument_group("systems"))
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--show", action="store_true", help="print each started command and its node on standard error")
    options = parser.parse_args(arguments)
    if options.uplink is None:
        options.uplink = options.rate
    _settle_operation(parser, options)
    _settle_server(parser, options)
    _settle_pipeline(parser, options)
    _settle_work(parser, options)
    _settle_faults(parser, options)
    return options


def _settle_server(parser, options):
    if options.server == "switch":
        return
    if options.topology.is_local or options.topology.has_racks or options.workload or "switchml" in options.systems:
        parser.error("argument --server: host requires a star topology and all-reduces of atp; use --server switch")
    options.topology = options.topology.with_server()


def _settle_pipeline(parser, options):
    """A switch in P4 has no server of its own: a separate host runs it."""
    is_selected = options.switch in SWITCHES_OF_P4
    if not is_selected and not SYSTEMS_OF_P4 & set(options.systems):
        options.memory = options.memory or DEFAULT_MEMORY
        return
    others = set(options.systems) - SYSTEMS_OF_P4 - {"gloo", "openmpi", "torch-gloo"}
    if is_selected:
        others -= {"atp"}
    if others and options.topology.has_racks:
        parser.error(
            f"argument --systems: {', '.join(sorted(others))} cannot run beside a switch in P4 in racks; use a star topology"
        )
    if options.topology.is_local or options.workload or options.offloads == "off" or options.loss:
        parser.error(
            "argument --switch: a switch in P4 requires a topology with links, and excludes --workload, --offloads off and "
            "--loss; use --fault loss=1%@hosts for losses"
        )
    if options.topology.server is None:
        options.topology = options.topology.with_server()
    options.bytes = options.bytes or DEFAULT_BYTES_OF_P4
    options.memory = options.memory or DEFAULT_MEMORY_OF_P4


def _settle_work(parser, options):
    if options.workload and options.bytes:
        parser.error("argument --bytes: --workload sets the size of the gradients; remove --bytes or --workload")
    options.bytes = options.bytes or DEFAULT_BYTES
    if options.bytes % TYPES[options.type] != 0:
        parser.error(
            f"argument --bytes: {options.bytes} is not a multiple of {TYPES[options.type]}, the size of {options.type}"
        )
    known = systems.OF_TRAINING if options.workload else systems.OF_ALL_REDUCE_AND_LEAVES
    options.systems = _with_switches(parser, options.systems, options.switch)
    options.systems = _with_leaves(parser, options)
    if not set(options.systems) <= set(known):
        parser.error(f"argument --systems: accepted is each of {', '.join(known)} at most once")
    confined = [name for name in options.systems if not known[name].spans_racks]
    if confined and options.topology.has_racks:
        parser.error(f"argument --systems: {', '.join(confined)} cannot span racks; use a star topology")
    alone = [name for name in options.systems if not known[name].shares_hosts]
    if options.ranks_per_host > 1 and (alone or options.topology.is_local):
        parser.error(f"argument --ranks-per-host: use a topology with links, and without {', '.join(alone) or 'local'}")
    if options.loss and any(issubclass(known[name], atp_systems.InKernel) for name in options.systems):
        parser.error("argument --loss: the switch inside the kernel injects no loss; use --switch user")
    if options.warmup is None:
        options.warmup = DEFAULT_WARMUP_STEPS if options.workload else DEFAULT_WARMUP


def _settle_operation(parser, options):
    options.operation = measured.Operation(options.collective, options.type, options.magnitude)
    is_usual = options.operation == measured.Operation()
    if options.workload and not is_usual:
        parser.error("argument --workload: excludes --collective, --type and --magnitude")
    options.operation = dataclasses.replace(options.operation, lane_type=options.lane_type)
    options.systems = options.systems or (["atp", "gloo"] if is_usual else list(systems.OF_TORCH))
    known = systems.OF_ALL_REDUCE_AND_LEAVES
    others = [name for name in options.systems if name in known and options.collective not in known[name].collectives]
    if others and not is_usual:
        able = [name for name in systems.OF_ALL_REDUCE if options.collective in known[name].collectives]
        parser.error(
            f"argument --systems: {', '.join(others)} cannot measure {options.collective} with another --collective, "
            f"--type or --magnitude than the default; use {', '.join(able)}"
        )


def _settle_faults(parser, options):
    if options.faults and options.topology.is_local:
        parser.error("argument --fault: a local topology has no links; use star:N or racks:RxN")
    if options.faults and options.offloads == "off":
        parser.error("argument --fault: excludes --offloads off, which merges frames on arrival; remove one of them")
    try:
        options.ends_with_faults = faults.ends_of(options.topology, options.faults)
    except ValueError as error:
        parser.error(f"argument --fault: {error}")


def _with_switches(parser, names, switch):
    """Replaces `atp` by the systems that --switch selects."""
    if switch != "user" and ("atp" not in names or "atp-xdp" in names):
        parser.error(f"argument --switch: {switch} requires atp in --systems, and no atp-xdp")
    return [system for name in names for system in (systems.OF_SWITCH[switch] if name == "atp" else (name,))]


def _with_leaves(parser, options):
    """Replaces `atp` by a system for each number of --leaves."""
    if options.leaves is None:
        if options.no_root:
            parser.error("argument --no-root: requires --leaves")
        return options.systems
    racks = sum(1 for switch in options.topology.switches if switch.parent)
    if not racks or options.workload or "atp" not in options.systems or max(options.leaves) > racks:
        parser.error(f"argument --leaves: requires atp, all-reduces and as many racks (here {racks}): racks:RxN")
    suffix = "-no-root" if options.no_root else ""
    names = [f"atp-leaves{count}{suffix}" for count in options.leaves]
    return [system for name in options.systems for system in (names if name == "atp" else [name])]


def work_of(options, programs):
    """The work of each system. `programs` is the folder with `atp-lab`, which prints the tables of the models."""
    if not options.workload:
        return measured.Work(
            options.bytes, options.operations, options.warmup, options.jobs, operation=options.operation
        )
    link_bps = None if options.topology.is_local else options.rate
    name, parallel = tables.parts_of(options.workload)
    table = tables.load(name, programs).scaled(options.share, link_bps, options.compute)
    workload = measured.Workload(name, options.share, options.compute, link_bps, table, parallel)
    return measured.Work(
        table.gradient_bytes, options.operations, options.warmup, options.jobs, workload, options.operation
    )


def _add_network(group):
    shape = group.add_mutually_exclusive_group()
    shape.add_argument(
        "--topology", type=_topology, default="star:4", metavar="SHAPE", help="star:N, racks:RxN or local:N [star:4]"
    )
    for flag, kind, metavar in (("--workers", "star", "N"), ("--racks", "racks", "RxN")):
        shape.add_argument(
            flag,
            dest="topology",
            type=_topology_of(kind),
            default=argparse.SUPPRESS,
            metavar=metavar,
            help=f"short for --topology {kind}:{metavar}",
        )
    group.add_argument(
        "--rate",
        type=quantities.rate,
        default="500mbit",
        help="rate of a host's link in each direction, above 0 [500mbit]",
    )
    group.add_argument(
        "--uplink",
        type=quantities.rate,
        metavar="RATE",
        help="rate of a rack's uplink in each direction, above 0 [as --rate]",
    )
    group.add_argument(
        "--queue",
        type=quantities.size,
        default="1MiB",
        metavar="SIZE",
        help="longest queue at each end of a link, above 0; further packets are dropped [1MiB]",
    )
    group.add_argument(
        "--offloads",
        choices=("on", "off"),
        default="on",
        help="off: send frames of wire size and merge them on arrival, as a network card does; on: let up to 64 KiB "
        "cross a link as one packet, for a tenth of the processor time [on]",
    )
    group.add_argument(
        "--fault",
        dest="faults",
        action="append",
        type=_fault,
        default=[],
        metavar="SPEC",
        help="fault of a link, such as loss=1%%@host2:up; may be repeated; see below [none]",
    )
    group.add_argument(
        "--fault-seed",
        type=quantities.seed,
        default=1,
        metavar="N",
        help="seed of lost and duplicated frames, 0 to 4294967295; each end of a link has its own sequence [1]",
    )
    group.add_argument(
        "--ranks-per-host",
        type=quantities.ranks_of_host,
        default=1,
        metavar="N",
        help="ranks of each job on each host, 1 to 63, which the systems may sum in memory first [1]",
    )
    group.add_argument(
        "--placement", choices=("packed", "dealt"), default="packed", help="placement of the ranks [packed]"
    )


def _add_work(group):
    group.add_argument(
        "--bytes",
        type=quantities.size,
        metavar="SIZE",
        help="size of the tensor, whole elements [25MB; with a switch in P4 20 kB, since its model is slow]",
    )
    group.add_argument(
        "--collective",
        choices=measured.COLLECTIVES,
        default="all_reduce",
        help="operation on the tensor; both: a reduce-scatter and an all-gather at a time [all_reduce]",
    )
    group.add_argument("--type", choices=TYPES, default="float32", help="type of the elements [float32]")
    group.add_argument(
        "--magnitude",
        type=quantities.magnitude,
        metavar="X",
        help="largest element of the first rank, above 0, such as 1e-9 [0.02]",
    )
    group.add_argument(
        "--lane-type", choices=LANE_TYPES, help="type of ATP's scaled values in packets [the default of ATP]"
    )
    group.add_argument(
        "--workload",
        choices=tables.WORKLOADS,
        metavar="MODEL",
        help="train this model instead of summing one tensor; see below",
    )
    group.add_argument(
        "--scale",
        dest="share",
        type=quantities.model_share,
        default="1/16",
        metavar="SHARE",
        help="share of the model's parameters, above 0, at most 1: 0.1, 5%% or 1/16 [1/16]",
    )
    group.add_argument(
        "--compute",
        choices=tables.COMPUTE,
        default="recorded",
        help="source of each layer's time [recorded]",
    )
    group.add_argument(
        "--rounds",
        type=quantities.count,
        default=5,
        metavar="N",
        help="turns of each system, 1 to 10000; the report states the median [5]",
    )
    group.add_argument(
        "--operations",
        "--iters",
        type=quantities.count,
        default=3,
        metavar="N",
        help="measured all-reduces or steps per turn, 1 to 10000 [3]",
    )
    group.add_argument(
        "--warmup",
        type=quantities.count_or_none,
        metavar="N",
        help="all-reduces or steps before the measured ones, 0 to 10000 [1 all-reduce, 2 steps]",
    )
    group.add_argument(
        "--jobs",
        type=quantities.count,
        default=1,
        metavar="N",
        help="concurrent jobs, 1 to 10000, each with ranks on every host [1]",
    )
    group.add_argument(
        "--timeout",
        type=quantities.seconds,
        metavar="SECONDS",
        help="longest turn, 1 to 86400 s [60 s plus 30 times the transfer time of the links]",
    )


def _add_systems(group):
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--systems",
        type=_systems,
        metavar="LIST",
        help=f"comma-separated systems in the order of their turns: {', '.join(systems.OF_ALL_REDUCE)} [atp,gloo; with "
        "another collective, type or magnitude torch-atp,torch-gloo]",
    )
    which.add_argument(
        "--peer",
        dest="systems",
        type=_beside_atp,
        default=argparse.SUPPRESS,
        metavar="SYSTEM",
        help="short for --systems atp,SYSTEM",
    )
    group.add_argument(
        "--switch",
        choices=tuple(systems.OF_SWITCH),
        default="user",
        help="where ATP's switch adds: in the daemon (user), in the kernel (xdp), or both in turns; p4, p4-passes: in the "
        "reference model of P4, which runs the whole decision at once or in the passes of a pipeline; none: the hosts "
        "serve the sums [user]",
    )
    group.add_argument(
        "--leaves",
        type=quantities.leaves,
        metavar="LIST",
        help="numbers of racks, the first ones, that have a switch, 0 to 9: 0,2,4 measures all three in turns [all racks]",
    )
    group.add_argument(
        "--no-root",
        action="store_true",
        help="with --leaves: no switch is above the racks, so that ranks choose another layout",
    )
    group.add_argument(
        "--server",
        choices=("switch", "host"),
        default="switch",
        help="where ATP's parameter servers run: on the switch's host or on a separate host. With host and the switch in "
        "the kernel, workers address the server. Its link then carries one copy of each result per worker, or one copy "
        "for all with --rank-flags='--multicast on' [switch]",
    )
    group.add_argument(
        "--memory",
        metavar="SIZE",
        help=f"memory of the aggregators of each ATP switch [{DEFAULT_MEMORY}; with a switch in P4 "
        f"{DEFAULT_MEMORY_OF_P4}, for indices within its 4096 aggregators]",
    )
    group.add_argument(
        "--loss",
        type=quantities.share,
        default=0.0,
        metavar="SHARE",
        help="share of packets that ATP's switches drop, from 0 to below 1: 0.001 or 0.1%%. No effect on Gloo [0]",
    )
    group.add_argument(
        "--switch-flags",
        type=shlex.split,
        default=[],
        metavar="FLAGS",
        help="further flags of `atp switch`, in one argument: --switch-flags='--threads 2' [none]",
    )
    group.add_argument(
        "--rank-flags",
        type=shlex.split,
        default=[],
        metavar="FLAGS",
        help="further flags of `atp bench`, in one argument: --rank-flags='--multicast on' [none]",
    )
    group.add_argument(
        "--gloo-algorithm",
        choices=("best", *systems.Gloo.algorithms),
        default="best",
        help="algorithm of Gloo; best: try each once and use the fastest [best]",
    )
    group.add_argument(
        "--python",
        default=_default_python(),
        metavar="PROGRAM",
        help="Python with torch [build/venv/bin/python, or the Python that runs this program]",
    )
    group.add_argument("--bin", metavar="FOLDER", help="use the programs in this folder instead of a build")


def _topology(text):
    try:
        return topologies.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _topology_of(kind):
    return lambda text: _topology(f"{kind}:{text}")


def _fault(text):
    try:
        return faults.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _systems(text):
    names = text.split(",")
    if len(set(names)) != len(names) or not set(names) <= set(systems.OF_ALL_REDUCE):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not accepted: name each of {', '.join(systems.OF_ALL_REDUCE)} at most once"
        )
    return names


def _default_python():
    """The Python of the build: that of tools/setup.sh if it exists, otherwise the Python that runs this program."""
    of_setup = os.path.join(ROOT, "build", "venv", "bin", "python")
    return of_setup if os.path.exists(of_setup) else sys.executable


def _beside_atp(text):
    return _systems(f"atp,{text}")
