# SPDX-License-Identifier: Apache-2.0
"""What bench/time_to_accuracy measures: points, which are trainings or sums by one variant over one network."""

import contextlib
import os
import sys
import time
from dataclasses import dataclass

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [os.path.join(BENCH, "cluster"), os.path.join(BENCH, "..", "tools")]

import arguments  # noqa: E402  in bench/cluster/
import command  # noqa: E402
import faults  # noqa: E402
import keep  # noqa: E402
import measure  # noqa: E402
import measured  # noqa: E402
import network  # noqa: E402
import systems  # noqa: E402
from switch_report import share_in_network  # noqa: E402  in tools/

RANK = os.path.join(BENCH, "clock", "rank.py")
LIMIT_SECONDS = 900  # only a point that hangs takes longer
SUMS_OF_A_POINT = 9
STEPS_OF_COMPUTING = 20


@dataclass(frozen=True)
class Variant:
    """How gradients are summed. `hook` names DistributedDataParallel's, a key of HOOKS in rank.py. `sent` is the type
    of the elements that reach the backend. `flags` are further arguments of bench/cluster/run."""

    text: str
    system: str
    hook: str = "plain"
    sent: str = "float32"
    lane_type: str = None
    flags: tuple = ()


VARIANTS = {
    "atp-int32": Variant("ATP int32", "torch-atp", lane_type="int32"),
    "atp-int16": Variant("ATP int16", "torch-atp", lane_type="int16"),
    "gloo-float32": Variant("Gloo float32", "torch-gloo"),
    "gloo-float16": Variant("Gloo float16", "torch-gloo", "float16", "float16"),
    # Its server is a host behind a link, as without ATP. On the node of the switch, it would have no link to fill.
    "no-aggregation": Variant(
        "ATP, no aggregation", "torch-atp", lane_type="int32", flags=("--memory", "0", "--server", "host")
    ),
}


@dataclass(frozen=True)
class Point:
    """One turn. `task`: `train` measures a training, `compute` a training whose ranks keep their own gradients, and `sum`
    all-reduces of all gradients of the model."""

    model: str
    ranks: int
    rate: str
    variant: str
    seed: int = 1
    steps: int = STEPS_OF_COMPUTING
    task: str = "train"
    jobs: int = 1
    fault: str = ""

    @property
    def name(self):
        """Of its file. Equal names, equal measurements."""
        parts = (self.model, self.ranks, self.rate, self.task, self.variant, f"seed{self.seed}", f"{self.steps}steps")
        further = [f"{self.jobs}jobs"] if self.jobs > 1 else []
        further += [self.fault] if self.fault else []
        return "-".join(map(str, (*parts, *further)))

    @property
    def weight(self):
        """An estimate of its time in an arbitrary unit: ranks share the processors, and jobs the links."""
        return (SUMS_OF_A_POINT if self.task == "sum" else self.steps) * self.ranks * self.jobs

    def options(self):
        """As bench/cluster/run has them."""
        variant = VARIANTS[self.variant]
        words = ["--topology", f"star:{self.ranks}", "--rate", self.rate, "--systems", variant.system, *variant.flags]
        words += ["--lane-type", variant.lane_type] if variant.lane_type else []
        words += ["--fault", self.fault] if self.fault else []
        return arguments.parse(words)

    def work(self, gradient_bytes):
        variant = VARIANTS[self.variant]
        if self.task != "sum":
            operation = measured.Operation(lane_type=variant.lane_type)
            return measured.Work(gradient_bytes, self.steps, 0, self.jobs, operation=operation)
        operation = measured.Operation(type=variant.sent, lane_type=variant.lane_type)
        size = gradient_bytes // arguments.TYPES["float32"] * arguments.TYPES[variant.sent]
        return measured.Work(size, SUMS_OF_A_POINT, 2, self.jobs, operation=operation)


class TrainingRanks(systems.TorchRanks):
    """Ranks that train as the point says."""

    def __init__(self, backend, programs, options, point):
        super().__init__(backend, programs, options)
        self._point = point

    def task(self, _work):
        point = self._point
        hook = "none" if point.task == "compute" else VARIANTS[point.variant].hook
        sizes = ["--seed", str(point.seed), "--steps", str(point.steps)]
        return [RANK, "--model", point.model, *sizes, "--sums", hook]


def system_of(point, folder, options):
    system = systems.OF_ALL_REDUCE[VARIANTS[point.variant].system](point.variant, folder, options)
    if point.task != "sum":
        system.ranks = TrainingRanks(system.ranks.backend, folder, options, point)
    return system


class Progress:
    """Tells which of the points is measured and, after the first one, the time left."""

    def __init__(self, points, show, clock=time.monotonic):
        self._left = set(points)
        self._show = show
        self._clock = clock
        self._seconds, self._weight = 0.0, 0

    def seconds_left(self):
        """None: unknown."""
        if not self._weight:
            return None
        return sum(point.weight for point in self._left) * self._seconds / self._weight

    @contextlib.contextmanager
    def measuring(self, point):
        left = self.seconds_left()
        minutes = "" if left is None else f", {left / 60:.0f} min"
        self._show(f"{point.name}: {len(self._left)} points left{minutes}")
        begin = self._clock()
        yield
        self._seconds += self._clock() - begin
        self._weight += point.weight

    def finish(self, point):
        """Also of a point that another run kept, which takes no time."""
        self._left.discard(point)


class Measurer:
    """Measures points one after the other. Between points with the same network, it stays. Use it in a `with` block, which
    ends all processes and the network."""

    def __init__(self, programs, keep_folder, progress):
        self._given_programs = programs  # None: to be built
        self._programs = None
        self._keep_folder = keep_folder
        self._progress = progress
        self._results = {}
        self._stack = contextlib.ExitStack()
        self._shape = self._network = self._faults = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()
        self._shape = None

    def measure(self, point):
        """The outputs of the point's jobs, and the share that the switch added."""
        if point not in self._results:
            self._results[point] = keep.kept(self._keep_folder, point.name, lambda: self._turn(point))
            self._progress.finish(point)
        return self._results[point]

    def _turn(self, point):
        size = self._gradient_bytes(point) if point.task == "sum" else 0
        with self._progress.measuring(point):
            options = point.options()
            self._build(options)
            system = system_of(point, self._programs, options)
            hosts = options.topology.hosts
            bench = measure.Bench(self._network, hosts, point.work(size), LIMIT_SECONDS, False, self._faults)
            turn = bench.turn(system, system.variants[0])
        return {"jobs": turn.jobs, "share_in_network": share_in_network(turn.counters)}

    def _gradient_bytes(self, point):
        computed = self.measure(computing(point))
        return computed["jobs"][0]["gradient_bytes"]

    def _build(self, options):
        links = network.Links(options.rate, options.uplink, options.queue, not options.faults, bool(options.faults))
        shape = (options.topology, links, options.faults)
        if shape == self._shape:
            return
        self._stack.close()
        self._shape = None
        others = (faults.PROGRAM,) if options.faults else ()
        kinds = (systems.TorchAtp, systems.TorchGloo)
        self._programs = command.find_programs(kinds, options.python, self._given_programs, others)
        self._network = self._stack.enter_context(network.build(options.topology, links))
        self._faults = None
        if options.faults:
            self._faults = faults.LinkFaults(self._network, os.path.join(self._programs, faults.PROGRAM))
            self._faults.set(options.ends_with_faults, options.fault_seed)
        self._shape = shape


def computing(point):
    """The point that measures how long ranks compute where this point is measured."""
    return Point(point.model, point.ranks, point.rate, "gloo-float32", task="compute")
