# SPDX-License-Identifier: Apache-2.0
"""Parses and checks the command line. Options that parse() returns are valid together."""

import argparse
import dataclasses
import os
import re
import shlex
import sys

import faults
import systems
import topology as topologies
from workloads import tables

SIZE_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
RATE_UNITS = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}

COLLECTIVES = ("all_reduce", "broadcast", "barrier", "reduce_scatter", "all_gather", "both")
LANE_TYPES = ("int32", "int16", "int8")
TYPES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}  # with their sizes
DEFAULT_BYTES = 25_000_000
DEFAULT_BYTES_OF_P4 = 20_000  # 625 packets of a rank: the reference model handles some 1,000 packets a second
DEFAULT_MEMORY = "64MB"
DEFAULT_MEMORY_OF_P4 = "200KB"  # packets name no aggregator that the pipeline does not have
DEFAULT_WARMUP = 1
DEFAULT_WARMUP_STEPS = 2  # DistributedDataParallel reorders its buckets after the first step

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

DESCRIPTION = """\
Measure all-reduce, or the training of a model, over links of limited rates. One run compares ATP with Gloo. Every host
is a network namespace, and every switch is a namespace with a bridge. Links are veth pairs; a token bucket limits each
direction. The systems take turns in every round, so that other load of this machine affects all of them equally."""

EPILOG = """\
topologies
  star:4       four hosts on one switch
  racks:2x4    two racks of four hosts; each rack has a switch under one switch in the core. If --uplink equals --rate,
               the four hosts of a rack share the rate of one host.
  local:4      four processes of this machine over its loopback, without a limit. --rate, --uplink and --queue have no
               effect. Needs no privilege.
systems
  atp, gloo, openmpi
               separate programs: `atp bench`, bench_gloo, and bench_mpi with mpirun
  atp-xdp      atp with `atp switch --xdp` on the switch's ports: the kernel adds, and the daemon on the same host runs
               the servers. Not in racks. --switch xdp replaces atp by atp-xdp; --switch both runs both in turns
  atp-p4       atp with the switch in P4: `simple_switch` of BMv2 and `atp switch --p4` replace each bridge while atp-p4 has
               its turn, and a separate host runs the servers. The model handles some 1,000 packets a second, so
               measure small tensors. Needs `p4c-bm2-ss` and `simple_switch` on PATH or in the folders of
               ATP_P4_TOOLS, and `ethtool`. --switch p4 replaces atp by atp-p4
  atp-none     atp without a switch: each host serves a part of the sums. --switch none replaces atp by atp-none
  switchml     `atp switch` and `atp bench` with --protocol switchml. Not in racks, because it supports one switch. The
               benchmark tries pairs of slots and timeout once and uses the fastest pair; --rank-flags overrides it
  torch-atp, torch-gloo
               torch.distributed with the backend `atp` or with PyTorch's own Gloo. If `atp` or `gloo` is in the same
               run, the report states how much longer the backend takes.
  torch-gloo-float8
               PyTorch's own Gloo under a communication hook for float32 that sends float8: all_to_all, sum in float32,
               all_gather. A peer of torch-atp with --lane-type int8
  With --workload, atp and gloo are backends of torch.distributed.
workloads
  vgg, resnet, gpt
               VGG16, ResNet50 and GPT-2 small, trained by PyTorch's DistributedDataParallel, with its buckets, its
               hooks, and sums that overlap the backward pass. The model has --scale times the parameters.
  vgg-fsdp2, resnet-fsdp2, gpt-fsdp2
               the same models, trained by PyTorch's fully_shard: each rank has a part of each parameter
  vgg-fsdp2-async, ...
               the same, with set_unshard_async_op(True) and prefetches: parameters are gathered while the layer before
               computes
               --compute recorded waits for the time of each layer that `atp-lab models` reports, as for a GPU. The
               ratio of this time to the transfer time of the gradients is that of the testbed.
               --compute real trains a narrower model on the processors.
faults of links
  FAULT@LINK   in both directions; FAULT@LINK:up only towards the core, FAULT@LINK:down only away from it. FAULT is
    loss=SHARE       a share of the frames is lost by chance, above 0: loss=0.001 or loss=0.1%
    drop>BYTES       IP packets longer than so many bytes, 1 to 65535, are lost: drop>1400
    duplicates=SHARE a share of the frames arrives twice
    mark=RATE/SIZE   ECN-capable packets are marked (CE) while a virtual queue, which drains at the rate, is longer than
                     the size: mark=400mbit/64KiB
    cut              nothing passes
  LINK is hostN (link of the host of number N, from 0), hosts (the links of all hosts), uplinkN (of rack N, from 0),
  uplinks, or server (with --server host). One eBPF program at tc's egress makes the faults, alike for UDP and TCP of
  every system. With --fault, packets are cut into frames of wire size before each link, which takes more processor
  time. Faults do not affect packets that a kernel switch sends back on the port by which they came. The report counts
  what faults did to frames at each end of a link.
placements of the ranks in racks
  packed       fill one rack after the other: a ring of ranks crosses each uplink once
  dealt        alternate between the racks: a ring of ranks crosses the uplinks at every step

examples
  bench/cluster/run --workers 4 --rate 500mbit --bytes 25MB --rounds 5 --peer gloo --json
  bench/cluster/run --topology racks:2x4 --rate 500mbit --uplink 500mbit --placement dealt
  bench/cluster/run --topology star:8 --rate 200mbit --systems gloo --json
  bench/cluster/run --topology star:4 --ranks-per-host 4 --rate 200mbit
  bench/cluster/run --topology racks:4x2 --leaves 0,2,4 --no-root --rate 200mbit --uplink 400mbit
  bench/cluster/run --topology local:4 --bytes 25MB --rounds 15 --operations 10 --systems atp,torch-atp
  bench/cluster/run --topology star:4 --switch p4
  bench/cluster/run --topology star:4 --type bfloat16
  bench/cluster/run --topology star:4 --collective broadcast --bytes 4096 --operations 200
  bench/cluster/run --topology star:4 --rate 200mbit --workload vgg --operations 5
  bench/cluster/run --topology star:4 --rate 200mbit --workload gpt-fsdp2-async
  bench/cluster/run --topology star:4 --fault loss=0.1%@hosts --fault 'drop>1400@host2:up'

Topologies other than local:N need root, `ip` and `tc`. Workloads and torch-* systems need PyTorch. Unless --bin names
a folder, the benchmark builds the programs with the release preset first. At its end it removes its namespaces and
files; at its start it removes those of earlier runs that were killed.
exit status: 0 measured and every sum correct, 1 a step failed, 2 bad arguments, 77 this machine or user cannot run it."""


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/cluster/run",
        description=DESCRIPTION,
        epilog=EPILOG,
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
    if options.switch != "p4" and "atp-p4" not in options.systems:
        options.memory = options.memory or DEFAULT_MEMORY
        return
    others = set(options.systems) - {"atp-p4", "gloo", "openmpi", "torch-gloo"}
    if options.switch == "p4":
        others -= {"atp"}
    if others and options.topology.has_racks:
        parser.error(
            f"argument --systems: {', '.join(sorted(others))} cannot run beside atp-p4 in racks; use a star topology"
        )
    if options.topology.is_local or options.workload or options.offloads == "off" or options.loss:
        parser.error(
            "argument --switch: p4 requires a topology with links, and excludes --workload, --offloads off and --loss; "
            "use --fault loss=1%@hosts for losses"
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
    if options.loss and any(issubclass(known[name], systems.InKernel) for name in options.systems):
        parser.error("argument --loss: the switch inside the kernel injects no loss; use --switch user")
    if options.warmup is None:
        options.warmup = DEFAULT_WARMUP_STEPS if options.workload else DEFAULT_WARMUP


def _settle_operation(parser, options):
    options.operation = systems.Operation(options.collective, options.type, options.magnitude)
    is_usual = options.operation == systems.Operation()
    if options.workload and not is_usual:
        parser.error("argument --workload: excludes --collective, --type and --magnitude")
    options.operation = dataclasses.replace(options.operation, lane_type=options.lane_type)
    options.systems = options.systems or (["atp", "gloo"] if is_usual else list(systems.OF_TORCH))
    others = [name for name in options.systems if name not in systems.OF_TORCH]
    if others and not is_usual:
        parser.error(
            "argument --systems: --collective, --type and --magnitude are measured through PyTorch, with "
            f"{' and '.join(systems.OF_TORCH)}, not with {', '.join(others)}"
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
        return systems.Work(
            options.bytes, options.operations, options.warmup, options.jobs, operation=options.operation
        )
    link_bps = None if options.topology.is_local else options.rate
    name, parallel = tables.parts_of(options.workload)
    table = tables.load(name, programs).scaled(options.share, link_bps)
    workload = systems.Workload(name, options.share, options.compute, link_bps, table, parallel)
    return systems.Work(
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
        "--rate", type=rate, default="500mbit", help="rate of a host's link in each direction, above 0 [500mbit]"
    )
    group.add_argument(
        "--uplink", type=rate, metavar="RATE", help="rate of a rack's uplink in each direction, above 0 [as --rate]"
    )
    group.add_argument(
        "--queue",
        type=size,
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
        type=_seed,
        default=1,
        metavar="N",
        help="seed of lost and duplicated frames, 0 to 4294967295; each end of a link has its own sequence [1]",
    )
    group.add_argument(
        "--ranks-per-host",
        type=_ranks_of_host,
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
        type=size,
        metavar="SIZE",
        help="size of the tensor, whole elements [25MB; with a switch in P4 20 kB, since its model is slow]",
    )
    group.add_argument(
        "--collective",
        choices=COLLECTIVES,
        default="all_reduce",
        help="operation on the tensor; both: a reduce-scatter and an all-gather at a time [all_reduce]",
    )
    group.add_argument("--type", choices=TYPES, default="float32", help="type of the elements [float32]")
    group.add_argument(
        "--magnitude",
        type=_magnitude,
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
        type=_model_share,
        default="1/16",
        metavar="SHARE",
        help="share of the model's parameters, above 0, at most 1: 0.1, 5%% or 1/16 [1/16]",
    )
    group.add_argument(
        "--compute",
        choices=("recorded", "real"),
        default="recorded",
        help="source of each layer's time [recorded]",
    )
    group.add_argument(
        "--rounds",
        type=count,
        default=5,
        metavar="N",
        help="turns of each system, 1 to 10000; the report states the median [5]",
    )
    group.add_argument(
        "--operations",
        "--iters",
        type=count,
        default=3,
        metavar="N",
        help="measured all-reduces or steps per turn, 1 to 10000 [3]",
    )
    group.add_argument(
        "--warmup",
        type=count_or_none,
        metavar="N",
        help="all-reduces or steps before the measured ones, 0 to 10000 [1 all-reduce, 2 steps]",
    )
    group.add_argument(
        "--jobs",
        type=count,
        default=1,
        metavar="N",
        help="concurrent jobs, 1 to 10000, each with ranks on every host [1]",
    )
    group.add_argument(
        "--timeout",
        type=seconds,
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
        help="where ATP's switch adds: in the daemon (user), in the kernel (xdp), or both in turns; p4: in the reference "
        "model of P4; none: the hosts serve the sums [user]",
    )
    group.add_argument(
        "--leaves",
        type=_leaves,
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
        type=_share,
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


def _magnitude(text):
    if not 0 < _number(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return float(text)


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


def _ranks_of_host(text):
    if not 1 <= count(text) <= 63:
        raise argparse.ArgumentTypeError(f"{text} is outside 1 to 63 ranks")
    return int(text)


def _leaves(text):
    counts = text.split(",")
    if len(set(counts)) != len(counts) or not all(each.isdecimal() and len(each) == 1 for each in counts):
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: write numbers from 0 to 9, each once: 0,2,4")
    return [int(each) for each in counts]


def _seed(text):
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer from 0 to 4294967295")
    return int(text)


def _quantity(text, units, example):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
    if not match or match[2] not in units or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: write a quantity above 0, such as {example}")
    return round(float(match[1]) * units[match[2]])


def size(text):
    return _quantity(text, SIZE_UNITS, "25MB or 64KiB")


def rate(text):
    return _quantity(text, RATE_UNITS, "500mbit or 1gbit")


def count_or_none(text):
    if not text.isdecimal() or int(text) > 10_000:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer from 0 to 10000")
    return int(text)


def count(text):
    if count_or_none(text) == 0:
        raise argparse.ArgumentTypeError("0 is below the minimum of 1")
    return int(text)


def _number(text):
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from error


def seconds(text):
    if not 1 <= _number(text) <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is outside 1 to 86400 seconds")
    return float(text)


def _share(text):
    share = _number(text[:-1]) / 100 if text.endswith("%") else _number(text)
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text} is outside the accepted shares, from 0 to below 1")
    return share


def _model_share(text):
    fraction = re.fullmatch(r"1/(\d+)", text)
    if fraction and int(fraction[1]) > 0:
        return 1 / int(fraction[1])
    share = _number(text[:-1]) / 100 if text.endswith("%") else _number(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is outside the accepted shares, above 0 and at most 1")
    return share


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
