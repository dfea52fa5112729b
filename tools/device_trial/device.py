# SPDX-License-Identifier: Apache-2.0
"""What one rank computes on: a CUDA device with its streams, or the processor, on which everything is in order."""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from device_trial.trace import Observed, observed_in


class Device:
    """The device of one rank: `cuda` or `cpu`. Ranks share a device if there are more ranks than devices."""

    def __init__(self, kind: str, rank: int) -> None:
        self.on_cuda = kind == "cuda"
        self.torch = torch.device("cpu")
        if self.on_cuda:
            self.torch = torch.device("cuda", rank % torch.cuda.device_count())
            torch.cuda.set_device(self.torch)
        self._busy_ms = 0.0  # of one step of keep_busy()

    def synchronise(self) -> None:
        if self.on_cuda:
            torch.cuda.synchronize()

    def new_stream(self) -> Any:
        return torch.cuda.Stream() if self.on_cuda else None

    def on(self, stream: Any) -> contextlib.AbstractContextManager:
        """Makes `stream` the current one; None: the current stream stays."""
        return contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)

    def let_current_wait_for(self, stream: Any) -> None:
        if stream is not None:
            torch.cuda.current_stream().wait_stream(stream)

    def mark(self) -> Any:
        """Returns a mark at the end of the current stream, for has_passed()."""
        if not self.on_cuda:
            return None
        event = torch.cuda.Event()
        event.record()
        return event

    def has_passed(self, mark: Any) -> bool:
        return mark is None or mark.query()

    def keep_busy(self, milliseconds: float) -> None:
        """Keeps the current stream busy for about so long. On the processor, returns after that time."""
        if milliseconds <= 0:
            return
        if not self._busy_ms:
            size = 4096 if self.on_cuda else 256
            self._factor, self._product = (torch.full((size, size), 0.5, device=self.torch) for _ in range(2))
            self._multiply(3)
            self._busy_ms = max(self._milliseconds_of(lambda: self._multiply(3)) / 3, 1e-3)
        self._multiply(math.ceil(milliseconds / self._busy_ms))

    def _multiply(self, times: int) -> None:
        for _ in range(times):
            torch.mm(self._factor, self._factor, out=self._product)

    def _milliseconds_of(self, work: Callable[[], None]) -> float:
        self.synchronise()
        begin = time.perf_counter()
        work()
        self.synchronise()
        return (time.perf_counter() - begin) * 1e3

    def observe(self, work: Callable[[], None]) -> Observed:
        """Runs `work` and returns what the device did, apart from the kernels of torch that `work` starts."""
        if not self.on_cuda:
            work()
            return Observed(why_not="the tensors are on the CPU")
        activities = [torch.profiler.ProfilerActivity.CUDA]
        try:
            with torch.profiler.profile(activities=activities) as profile:
                work()
                self.synchronise()
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                profile.export_chrome_trace(file.name)
                with open(file.name, encoding="utf-8") as trace:
                    return observed_in(json.load(trace))
        except (OSError, RuntimeError, ValueError) as error:  # some machines forbid profiling
            return Observed(why_not=f"the profiler failed: {error}")
