# SPDX-License-Identifier: Apache-2.0
"""The steps of a trial, and how far it is."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

PATHS = {
    "in memory": {"ATP_HOST_LEVEL": "on"},
    "packets": {"ATP_HOST_LEVEL": "off", "ATP_LISTEN": "127.0.0.1:0"},
}
SCALINGS = ("dynamic", "fixed")
OPERATIONS = ("SUM", "AVG", "MAX", "PREMUL_SUM")
PARTS = ("bits", "order", "conversion", "times", "tests")
STEP = 1 << 19  # elements that a device converts in one step: src/drivers/staging/elements.h
MEGABYTE = 250_000  # elements of float32


@dataclass(frozen=True)
class Size:
    """How much a trial does."""

    bits: tuple[int, ...] = (1, 1000, STEP, 2 * STEP + 17)  # elements
    order: int = 3 * STEP
    busy_ms: float = 200
    conversion: int = 25 * MEGABYTE
    times: tuple[str, ...] = ("4 KB", "1 MB", "25 MB", "100 MB")
    rounds: int = 9


FULL = Size()
SMALL = Size((1, 1000, 20_000), 5000, 20, MEGABYTE, ("4 KB", "1 MB"), 3)
ELEMENTS = {"4 KB": 1000, "1 MB": MEGABYTE, "25 MB": 25 * MEGABYTE, "100 MB": 100 * MEGABYTE}


@dataclass
class Step:
    part: str
    ranks: int
    body: str  # of bodies.BODIES
    arguments: dict[str, Any] = field(default_factory=dict)
    path: str = "in memory"
    scaling: str = "dynamic"
    device: str = "cpu"
    case: str = ""
    backend: str = "atp"
    usual_s: float = 3  # on a machine with a device
    longest_s: float = 60

    @property
    def title(self) -> str:
        words = [f"{self.ranks} ranks", self.case, self.scaling + " scaling", self.path, self.device]
        return f"{self.part}: {', '.join(word for word in words if word)}"

    def environment(self) -> dict[str, str]:
        return {**PATHS[self.path], "ATP_SCALING": self.scaling}

    def record(self) -> dict[str, Any]:
        keys = ("part", "ranks", "path", "scaling", "device", "case", "arguments")
        return {key: value for key, value in asdict(self).items() if key in keys}


# Stream of the kernel differs, stream of wait() differs, milliseconds of the kernel as a share of Size.busy_ms.
ORDERS = {
    "no kernel": (False, False, 0),
    "kernel on the current stream": (False, False, 1),
    "consumer on another stream": (False, True, 1),
    "producer on another stream": (True, False, 1),
}


def steps_of(device: str, ranks: list[int], size: Size, parts: list[str]) -> list[Step]:
    steps = [Step("start", ranks[0], "versions", device=device, usual_s=10, longest_s=90)]
    for count in ranks:
        steps += [step for part in parts if part in MAKERS for step in MAKERS[part](device, count, size)]
    return sorted(steps, key=lambda step: step.ranks)  # one crew for each number of ranks


def _bits(device: str, ranks: int, size: Size) -> list[Step]:
    arguments = {"sizes": list(size.bits)}
    return [
        Step("bits", ranks, "bits", arguments, path, scaling, on, role, longest_s=100)
        for path in PATHS
        for scaling in SCALINGS
        for role, on in (("expected", "cpu"), ("actual", device))
    ]


def _order(device: str, ranks: int, size: Size) -> list[Step]:
    return [
        Step(
            *("order", ranks, "order"),
            {"count": size.order, "busy_ms": size.busy_ms * share, "producer": producer, "consumer": consumer},
            scaling=scaling,
            device=device,
            case=case,
        )
        for scaling in SCALINGS
        for case, (producer, consumer, share) in ORDERS.items()
    ]


def _conversion(device: str, ranks: int, size: Size) -> list[Step]:
    return [
        Step(
            *("conversion", ranks, "conversion"),
            {"dtype": dtype, "count": size.conversion, "rounds": size.rounds},
            path=path,
            scaling=scaling,
            device=device,
            case=dtype,
        )
        for path in PATHS
        for scaling in SCALINGS
        for dtype in ("float32", "bfloat16")
    ]


def _times(device: str, ranks: int, size: Size) -> list[Step]:
    arguments = {"sizes": {name: ELEMENTS[name] for name in size.times}, "rounds": size.rounds, "longest_s": 30}
    return [
        Step("times", ranks, "times", arguments, path, device=device, backend="gloo", usual_s=15, longest_s=90)
        for path in PATHS
    ]


MAKERS = {"bits": _bits, "order": _order, "conversion": _conversion, "times": _times}


class Progress:
    """Prints what runs now, how long the trial has run, and how long it will run: by the usual times of the steps,
    corrected by the times of those that are done."""

    def __init__(self, usual_s: float, longest_s: float) -> None:
        self._begin = time.monotonic()
        self._usual_s, self._longest_s = usual_s, longest_s
        self._done_s = 0.0  # usual time of the steps that are done

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._begin

    @property
    def rest_s(self) -> float:
        """Time until the trial must end."""
        return self._longest_s - self.elapsed_s

    def begin(self, title: str) -> None:
        speed = self.elapsed_s / self._done_s if self._done_s > 10 else 1.0
        left = min(max(self._usual_s - self._done_s, 0) * speed, max(self.rest_s, 0))
        print(f"[{self.elapsed_s:3.0f} s, about {left:3.0f} s left] {title}", file=sys.stderr, flush=True)

    def end(self, usual_s: float) -> None:
        self._done_s += usual_s
