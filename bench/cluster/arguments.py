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
import lab_models
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
    _settle_models(parser, options)
    _settle_operation(parser, options)
    _settle_server(parser, options)
    _settle_pipeline(parser, options)
    _settle_work(parser, options)
    _settle_hosts(parser, options)
    _settle_faults(parser, options)
    return options


def _settle_models(parser, options):
    """Each job trains the model that its own flags name, or else the model of all jobs."""
    of_job = argparse.ArgumentParser(prog=parser.prog, add_help=False, allow_abbrev=False)
    _add_model(of_job)
    none = of_job.parse_args([])
    of_job.set_defaults(**{name: getattr(options, name) for name in vars(none)})
    own = [of_job.parse_known_args(flags) for flags in options.job_flags]
    options.job_flags = [rest for _, rest in own]
    others = max(0, options.jobs - len(own))
    options.models = [*(chosen for chosen, _ in own), *[of_job.parse_args([])] * others][: options.jobs]
    if any(each.model is None and each != none for each in options.models):
        parser.error("argument --model: required by --batch, --model-scale and --slowness")
    trained = [each for each in options.models if each.model is not None]
    if trained and len(trained) != options.jobs:
        parser.error("argument --model: not every job has one")
    if trained and (options.workload or options.bytes or options.warmup == 0):
        parser.error("argument --model: excludes --workload, --bytes and --warmup 0; the first step never counts")
    options.models = trained


def _settle_hosts(parser, options):
    if not options.job_hosts:
        return
    if options.ranks_per_host > 1 or options.workload or len(options.job_hosts) > options.jobs:
        parser.error("argument --job-hosts: excludes --ranks-per-host and --workload, and more lists than --jobs")
    known = len(options.topology.hosts)
    if max(number for numbers in options.job_hosts for number in numbers) >= known:
        parser.error(f"argument --job-hosts: the hosts are 0 to {known - 1}")


def _settle_server(parser, options):
    if options.server == "switch":
        if options.server_rate:
            parser.error("argument --server-rate: requires --server host")
        known = systems.OF_ALL_REDUCE
        needing = [name for name in options.systems if name in known and known[name].needs_server_host]
        if needing:
            parser.error(f"argument --systems: {', '.join(needing)} requires --server host")
        return
    excluded = options.topology.is_local or options.workload or options.leaves or "switchml" in options.systems
    if excluded or options.topology.has_racks and options.topology.text != topologies.FIGURE_9:
        parser.error(
            f"argument --server: host requires star:N or {topologies.FIGURE_9}, and all-reduces of atp without --leaves; "
            "use --server switch"
        )
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
    unable = [name for name in options.systems if options.models and not known[name].trains_models]
    if unable:
        able = [name for name in systems.OF_ALL_REDUCE if known[name].trains_models]
        parser.error(f"argument --systems: {', '.join(unable)} cannot train --model; use {', '.join(able)}")
    confined = [name for name in options.systems if not known[name].spans_racks]
    if confined and options.topology.has_racks:
        parser.error(f"argument --systems: {', '.join(confined)} cannot span racks; use a star topology")
    alone = [name for name in options.systems if not known[name].shares_hosts]
    if options.ranks_per_host > 1 and (alone or options.topology.is_local):
        parser.error(f"argument --ranks-per-host: use a topology with links, and without {', '.join(alone) or 'local'}")
    torch = [name for name in options.systems if issubclass(known[name], systems.TorchAtp)]
    if torch and atp_systems.assignment_of(options.switch_flags):
        parser.error(f"argument --switch-flags: ranks of {', '.join(torch)} know neither --linear nor --partition")
    if options.sample and options.topology.is_local:
        parser.error("argument --sample: a local topology has no links; use star:N, racks:RxN or fig9")
    if options.loss and any(issubclass(known[name], atp_systems.InKernel) for name in options.systems):
        parser.error("argument --loss: the switch inside the kernel injects no loss; use --switch user")
    if options.warmup is None:
        options.warmup = DEFAULT_WARMUP_STEPS if options.workload else DEFAULT_WARMUP


def _settle_operation(parser, options):
    options.operation = measured.Operation(options.collective, options.type, options.magnitude)
    is_usual = options.operation == measured.Operation()
    if (options.workload or options.models) and not is_usual:
        flag = "--workload" if options.workload else "--model"
        parser.error(f"argument {flag}: excludes --collective, --type and --magnitude")
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
        models = lab_models.of_jobs(options.models, programs)
        return measured.Work(
            models[0].bytes if models else options.bytes,
            options.operations,
            options.warmup,
            options.jobs,
            operation=options.operation,
            models=models,
            job_hosts=tuple(
                tuple(options.topology.hosts[number] for number in numbers) for numbers in options.job_hosts
            ),
        )
    link_bps = None if options.topology.is_local else options.rate
    name, parallel = tables.parts_of(options.workload)
    table = tables.load(name, programs).scaled(options.share, link_bps, options.compute)
    workload = measured.Workload(name, options.share, options.compute, link_bps, table, parallel)
    return measured.Work(
        table.gradient_bytes, options.operations, options.warmup, options.jobs, workload, options.operation
    )


def _option(group, flag, *more, **how):
    values = {"systems": ", ".join(systems.OF_ALL_REDUCE), "memory": DEFAULT_MEMORY}
    text = help_text.OPTIONS[flag].format(**values, memory_of_p4=DEFAULT_MEMORY_OF_P4)
    group.add_argument(flag, *more, help=text, **how)


def _add_network(group):
    shape = group.add_mutually_exclusive_group()
    _option(shape, "--topology", type=_topology, default="star:4", metavar="SHAPE")
    for flag, kind, metavar in (("--workers", "star", "N"), ("--racks", "racks", "RxN")):
        how = {"dest": "topology", "type": _topology_of(kind), "default": argparse.SUPPRESS, "metavar": metavar}
        shape.add_argument(flag, help=f"short for --topology {kind}:{metavar}", **how)
    _option(group, "--rate", type=quantities.rate, default="500mbit")
    _option(group, "--uplink", type=quantities.rate, metavar="RATE")
    _option(group, "--server-rate", type=quantities.rate, metavar="RATE")
    _option(group, "--queue", type=quantities.size, default="1MiB", metavar="SIZE")
    _option(group, "--offloads", choices=("on", "off"), default="on")
    _option(group, "--fault", dest="faults", action="append", type=_fault, default=[], metavar="SPEC")
    _option(group, "--fault-seed", type=quantities.seed, default=1, metavar="N")
    _option(group, "--ranks-per-host", type=quantities.ranks_of_host, default=1, metavar="N")
    _option(group, "--placement", choices=("packed", "dealt"), default="packed")


def _add_work(group):
    _option(group, "--bytes", type=quantities.size, metavar="SIZE")
    _option(group, "--collective", choices=measured.COLLECTIVES, default="all_reduce")
    _option(group, "--type", choices=TYPES, default="float32")
    _option(group, "--magnitude", type=quantities.magnitude, metavar="X")
    _option(group, "--lane-type", choices=LANE_TYPES)
    _option(group, "--workload", choices=tables.WORKLOADS, metavar="MODEL")
    _option(group, "--scale", dest="share", type=quantities.model_share, default="1/16", metavar="SHARE")
    _option(group, "--compute", choices=tables.COMPUTE, default="recorded")
    _add_model(group)
    _option(group, "--rounds", type=quantities.count, default=5, metavar="N")
    _option(group, "--operations", "--iters", type=quantities.count, default=3, metavar="N")
    _option(group, "--warmup", type=quantities.count_or_none, metavar="N")
    _option(group, "--jobs", type=quantities.count, default=1, metavar="N")
    _option(group, "--sample", type=quantities.interval, metavar="TIME")
    _option(group, "--job-hosts", type=quantities.host_numbers, action="append", default=[], metavar="LIST")
    _option(group, "--timeout", type=quantities.seconds, metavar="SECONDS")


def _add_model(group):
    _option(group, "--model", metavar="NAME")
    _option(group, "--batch", type=quantities.count, metavar="N")
    _option(group, "--model-scale", type=quantities.scale, default=1.0, metavar="FACTOR")
    _option(group, "--slowness", type=quantities.magnitude, default=1.0, metavar="FACTOR")


def _add_systems(group):
    which = group.add_mutually_exclusive_group()
    _option(which, "--systems", type=_systems, metavar="LIST")
    _option(which, "--peer", dest="systems", type=_beside_atp, default=argparse.SUPPRESS, metavar="SYSTEM")
    _option(group, "--switch", choices=tuple(systems.OF_SWITCH), default="user")
    _option(group, "--leaves", type=quantities.leaves, metavar="LIST")
    _option(group, "--no-root", action="store_true")
    _option(group, "--server", choices=("switch", "host"), default="switch")
    _option(group, "--memory", metavar="SIZE")
    _option(group, "--loss", type=quantities.share, default=0.0, metavar="SHARE")
    _option(group, "--switch-flags", type=shlex.split, default=[], metavar="FLAGS")
    _option(group, "--rank-flags", type=shlex.split, default=[], metavar="FLAGS")
    _option(group, "--job-flags", type=shlex.split, action="append", default=[], metavar="FLAGS")
    _option(group, "--gloo-algorithm", choices=("best", *systems.Gloo.algorithms), default="best")
    _option(group, "--python", default=_default_python(), metavar="PROGRAM")
    _option(group, "--bin", metavar="FOLDER")


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
