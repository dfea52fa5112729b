# SPDX-License-Identifier: Apache-2.0
"""Parses and checks the command line: a run accepts everything that parse() returns."""

import argparse
import os
import re
import shlex
import sys

import systems
import topology as topologies
from workloads import tables

SIZE_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
RATE_UNITS = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}

DEFAULT_BYTES = 25_000_000
DEFAULT_WARMUP = 1
DEFAULT_WARMUP_STEPS = 2  # DistributedDataParallel reorders its buckets after the first step

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

DESCRIPTION = """\
Measures all-reduce, or the training of a model, over links of limited rates, ATP and Gloo in the same run. Every host
is a network namespace of its own, every switch a namespace with a bridge; the links between them are veth pairs whose
rates a token bucket holds each way. The systems take turns round by round, so that what else the machine does meets all
of them alike."""

EPILOG = """\
topologies
  star:4       four hosts on one switch
  racks:2x4    two racks of four hosts, each rack with a switch of its own under one in the core. With an --uplink of
               the hosts' rate, four hosts share what one could use alone.
  local:4      four processes of this machine over its loopback, without a limit: --rate, --uplink and --queue say
               nothing. It needs no privilege.
systems
  atp, gloo, openmpi
               by programs of their own: `atp bench`, bench_gloo, and bench_mpi with mpirun
  atp-xdp      as atp, with `atp switch --xdp` on the switch's ports: it adds inside the kernel, and the daemon of the
               same box holds the servers. Not in racks. --switch xdp takes it for atp, and --switch both has them take
               turns
  switchml     by `atp switch` and `atp bench` with --protocol switchml; not in racks, since it knows one switch. Slots
               and timer are those that are fastest when each pair is tried once, or what --rank-flags says
  torch-atp, torch-gloo
               through torch.distributed, with the backend `atp` and with PyTorch's own Gloo. Beside `atp` or `gloo`,
               the report says how much longer they take.
  With a --workload, atp and gloo are backends of torch.distributed.
workloads
  vgg, resnet, gpt
               VGG16, ResNet50 and GPT-2 small, trained by PyTorch's DistributedDataParallel: its buckets, its hooks and
               its overlap of sums with the backward pass. The model has --scale times the parameters.
               --compute recorded takes the time of each layer from `atp-lab models` and waits that long, as one does for a
               GPU: it is in proportion to what the gradients take on a link, as on the testbed where the times are
               from. --compute real trains a narrower model on the processors.
placements of the ranks in racks
  packed       one rack after the other: a ring of ranks crosses each uplink once
  dealt        over the racks in turns, as a scheduler may leave them: a ring of ranks crosses the uplinks at every step

examples
  bench/cluster/run --workers 4 --rate 500mbit --bytes 25MB --rounds 5 --peer gloo --json
  bench/cluster/run --topology racks:2x4 --rate 500mbit --uplink 500mbit --placement dealt
  bench/cluster/run --topology star:8 --rate 200mbit --systems gloo --json
  bench/cluster/run --topology local:4 --bytes 25MB --rounds 15 --operations 10 --systems atp,torch-atp
  bench/cluster/run --topology star:4 --rate 200mbit --workload vgg --operations 5

It needs root, `ip` and `tc` but for local:N, and PyTorch where it is asked for. It builds the programs in the release
preset first, unless --bin says where they are. It removes what it has set up whatever happens, and first what an
earlier run had to leave behind.
exit status: 0 measured and every sum right, 1 something failed, 2 bad usage, 77 this machine or user cannot run it."""


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
    parser.add_argument("--json", action="store_true", help="print an object in place of the table")
    parser.add_argument("--show", action="store_true", help="say on standard error what is started where")
    options = parser.parse_args(arguments)
    if options.uplink is None:
        options.uplink = options.rate
    _settle_server(parser, options)
    _settle_work(parser, options)
    return options


def _settle_server(parser, options):
    if options.server == "switch":
        return
    if options.topology.is_local or options.topology.has_racks or options.workload or "switchml" in options.systems:
        parser.error("argument --server: a host for it is only in a star, and only for all-reduces of atp")
    options.topology = options.topology.with_server()


def _settle_work(parser, options):
    if options.workload and options.bytes:
        parser.error("argument --bytes: a --workload has its own gradients")
    options.bytes = options.bytes or DEFAULT_BYTES
    if options.bytes % 4 != 0:
        parser.error("argument --bytes: must be a multiple of 4, for float32")
    known = systems.OF_TRAINING if options.workload else systems.OF_ALL_REDUCE
    options.systems = _with_switches(parser, options.systems, options.switch)
    if not set(options.systems) <= set(known):
        parser.error(f"argument --systems: each of {', '.join(known)} at most once")
    confined = [name for name in options.systems if not known[name].spans_racks]
    if confined and options.topology.has_racks:
        parser.error(f"argument --systems: {', '.join(confined)} cannot span racks")
    if options.loss and any(issubclass(known[name], systems.InKernel) for name in options.systems):
        parser.error("argument --loss: the switch inside the kernel drops nothing on purpose")
    if options.warmup is None:
        options.warmup = DEFAULT_WARMUP_STEPS if options.workload else DEFAULT_WARMUP


def _with_switches(parser, names, switch):
    """Replaces `atp` by the systems that it stands for."""
    if switch != "user" and ("atp" not in names or "atp-xdp" in names):
        parser.error(f"argument --switch: {switch} says how to run the system atp")
    return [system for name in names for system in (systems.OF_SWITCH[switch] if name == "atp" else (name,))]


def work_of(options, programs):
    """The work that every system gets. The folder `programs` contains `atp`, which knows the models."""
    if not options.workload:
        return systems.Work(options.bytes, options.operations, options.warmup, options.jobs)
    link_bps = None if options.topology.is_local else options.rate
    table = tables.load(options.workload, programs).scaled(options.share, link_bps)
    workload = systems.Workload(options.workload, options.share, options.compute, link_bps, table)
    return systems.Work(table.gradient_bytes, options.operations, options.warmup, options.jobs, workload)


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
    group.add_argument("--rate", type=rate, default="500mbit", help="of a host's link, each way [500mbit]")
    group.add_argument("--uplink", type=rate, metavar="RATE", help="of a rack's uplink, each way [as --rate]")
    group.add_argument(
        "--queue",
        type=size,
        default="1MiB",
        metavar="SIZE",
        help="what may wait at each end of a link before packets are dropped [1MiB]",
    )
    group.add_argument(
        "--offloads",
        choices=("on", "off"),
        default="on",
        help="off: every frame is one that a wire could carry, and is merged with others on arrival, as behind a network "
        "card; on: 64 KiB may cross a link in one piece, which costs a tenth of the processor time [on]",
    )
    group.add_argument("--placement", choices=("packed", "dealt"), default="packed", help="of the ranks [packed]")


def _add_work(group):
    group.add_argument("--bytes", type=size, metavar="SIZE", help="of the tensor of float32 [25MB]")
    group.add_argument("--workload", choices=tables.NAMES, help="train a model instead")
    group.add_argument(
        "--scale",
        dest="share",
        type=_model_share,
        default="1/16",
        metavar="SHARE",
        help="of the model's parameters, as in 0.1, 5%% or 1/16 [1/16]",
    )
    group.add_argument(
        "--compute",
        choices=("recorded", "real"),
        default="recorded",
        help="how the model's layers take time [recorded]",
    )
    group.add_argument(
        "--rounds", type=count, default=5, metavar="N", help="turns of each system; the median counts [5]"
    )
    group.add_argument(
        "--operations",
        "--iters",
        type=count,
        default=3,
        metavar="N",
        help="measured all-reduces or steps in a turn [3]",
    )
    group.add_argument("--warmup", type=count_or_none, metavar="N", help="of them before those [1 all-reduce, 2 steps]")
    group.add_argument(
        "--jobs", type=count, default=1, metavar="N", help="jobs at the same time, each with a rank on every host [1]"
    )
    group.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="longest that a turn may take [a minute, and 30 times what the links alone would need]",
    )


def _add_systems(group):
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--systems",
        type=_systems,
        default="atp,gloo",
        metavar="LIST",
        help=f"which of {', '.join(systems.OF_ALL_REDUCE)}, and in which order [atp,gloo]",
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
        help="where ATP's switch adds: in the daemon, inside the kernel, or each in its turn [user]",
    )
    group.add_argument(
        "--server",
        choices=("switch", "host"),
        default="switch",
        help="where ATP's parameter servers stand: on the switch's box, or on a host of their own. To the switch inside "
        "the kernel, workers then address the server, whose link carries a copy of each result for each of them, or one "
        "for all with --rank-flags='--multicast on' [switch]",
    )
    group.add_argument("--memory", default="64MB", metavar="SIZE", help="of each of ATP's switches [64MB]")
    group.add_argument(
        "--loss",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="of the packets, as in 0.001 or 0.1%%, which ATP's switches drop on purpose; none of Gloo's [0]",
    )
    group.add_argument(
        "--switch-flags",
        type=shlex.split,
        default=[],
        metavar="FLAGS",
        help="more of them for `atp switch`, in one argument: --switch-flags='--threads 2'",
    )
    group.add_argument(
        "--rank-flags",
        type=shlex.split,
        default=[],
        metavar="FLAGS",
        help="more of them for `atp bench`, in one argument: --rank-flags='--multicast on'",
    )
    group.add_argument(
        "--gloo-algorithm",
        choices=("best", *systems.Gloo.algorithms),
        default="best",
        help="`best`: the one that is fastest when each is tried once [best]",
    )
    group.add_argument(
        "--python",
        default=_default_python(),
        metavar="PROGRAM",
        help="with torch [build/venv/bin/python, or the one that runs this]",
    )
    group.add_argument("--bin", metavar="FOLDER", help="use the programs there, and build nothing")


def _topology(text):
    try:
        return topologies.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _topology_of(kind):
    return lambda text: _topology(f"{kind}:{text}")


def _quantity(text, units, example):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
    if not match or match[2] not in units or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no quantity such as {example}")
    return round(float(match[1]) * units[match[2]])


def size(text):
    return _quantity(text, SIZE_UNITS, "25MB or 64KiB")


def rate(text):
    return _quantity(text, RATE_UNITS, "500mbit or 1gbit")


def count_or_none(text):
    if not text.isdecimal() or int(text) > 10_000:
        raise argparse.ArgumentTypeError(f"{text} is no number up to 10000")
    return int(text)


def count(text):
    if count_or_none(text) == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


def _number(text):
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is no number") from error


def seconds(text):
    if not 1 <= _number(text) <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 second and a day")
    return float(text)


def _share(text):
    share = _number(text[:-1]) / 100 if text.endswith("%") else _number(text)
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share from 0 to below 1")
    return share


def _model_share(text):
    fraction = re.fullmatch(r"1/(\d+)", text)
    if fraction and int(fraction[1]) > 0:
        return 1 / int(fraction[1])
    share = _number(text[:-1]) / 100 if text.endswith("%") else _number(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share above 0, up to 1")
    return share


def _systems(text):
    names = text.split(",")
    if len(set(names)) != len(names) or not set(names) <= set(systems.OF_ALL_REDUCE):
        raise argparse.ArgumentTypeError(f"{text}: each of {', '.join(systems.OF_ALL_REDUCE)} at most once")
    return names


def _default_python():
    """The Python that the build takes by default: the one of tools/setup.sh, or else any other."""
    made = os.path.join(ROOT, "build", "venv", "bin", "python")
    return made if os.path.exists(made) else sys.executable


def _beside_atp(text):
    return _systems(f"atp,{text}")
