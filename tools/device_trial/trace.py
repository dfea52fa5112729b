# SPDX-License-Identifier: Apache-2.0
"""Reads what a device did from a trace of torch.profiler."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Observed:
    """What a device did: names of its kernels, and bytes copied from and to the host. `why_not` is empty, or says why
    nothing could be observed."""

    kernels: list[str] = field(default_factory=list)
    to_host: int = 0
    to_device: int = 0
    why_not: str = ""


def observed_in(trace: dict[str, Any]) -> Observed:
    """Reads a trace of torch.profiler in Chrome's format."""
    kernels: Counter[str] = Counter()
    copied: Counter[str] = Counter()
    for event in trace.get("traceEvents", []):
        name = event.get("name", "")
        if event.get("cat") == "kernel":
            kernels[re.sub(r"^void |\(.*$|<.*$", "", name.replace("(anonymous namespace)::", ""))] += 1
        elif event.get("cat") == "gpu_memcpy":
            direction = next((key for key in ("DtoH", "HtoD") if key in name), "other")
            copied[direction] += int(event.get("args", {}).get("bytes", 0))
    names = [f"{count} {name}" for name, count in sorted(kernels.items())]
    return Observed(names, copied["DtoH"], copied["HtoD"], "" if kernels else "the profiler saw no kernel")
