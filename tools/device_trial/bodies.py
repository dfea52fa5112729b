# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a trial execute. Each function runs on every rank in a group of its own, and returns plain data."""

from __future__ import annotations

import ctypes
import hashlib
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from device_trial.device import Device
from device_trial.plan import OPERATIONS

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
TYPES = (*FLOATS, *INTEGERS, torch.bool)
FACTOR = 1 / 3  # of PREMUL_SUM


@dataclass
class Here:
    rank: int
    size: int
    device: Device
    # Outlives the group: PyTorch 2.5 joins the threads of Gloo with the GIL held, for which such a thread waits if it
    # has the last reference to a tensor.
    kept: list[torch.Tensor] = field(default_factory=list)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).partition(".")[2]


def type_of(name: str) -> torch.dtype:
    return getattr(torch, name)


def values(rank: int, dtype: torch.dtype, count: int) -> torch.Tensor:
    """Numbers of both signs that differ between ranks. They depend on no random generator, which releases change."""
    numbers = torch.arange(1, count + 1, dtype=torch.int64) * (2654435761 + 40503 * rank) % 2**21 - 2**20
    if dtype == torch.bool:
        return numbers % 2 == 0
    if dtype.is_floating_point:
        return (numbers.double() / 2**20).to(dtype)
    return (numbers >> 16 if torch.iinfo(dtype).bits < 32 else numbers).to(dtype)


def operation_of(name: str) -> Any:
    if name != "PREMUL_SUM":
        return getattr(dist.ReduceOp, name)
    if not hasattr(dist, "_make_nccl_premul_sum"):
        raise ValueError("this torch has no PREMUL_SUM")
    return dist._make_nccl_premul_sum(FACTOR)


def hash_of(tensor: torch.Tensor) -> str:
    host = tensor.cpu().contiguous()
    return hashlib.sha256(ctypes.string_at(host.data_ptr(), host.nbytes)).hexdigest()


def versions(here: Here) -> dict[str, str]:
    """What this rank imports, and its device."""
    import atp

    found = {"device": "none: tensors on the CPU"}
    if here.device.on_cuda:
        card = torch.cuda.get_device_properties(0)
        parts = f"{card.total_memory / 2**30:.0f} GiB, {card.multi_processor_count} multiprocessors"
        found = {"device": f"{torch.cuda.device_count()} x {card.name}, {parts}"}
    found |= {"CUDA of torch": torch.version.cuda or "none", "torch": torch.__version__, "atp": atp.__version__}
    return {**found, "file": os.path.abspath(atp.__file__)}


def bits(here: Here, sizes: list[int]) -> dict[str, str]:
    """Hashes of all-reduces by type, operation and number of elements. What is refused has the exception's name."""
    results = {}
    for dtype in TYPES:
        for operation in OPERATIONS:
            for count in sizes:
                tensor = values(here.rank, dtype, count).to(here.device.torch)
                try:
                    dist.all_reduce(tensor, operation_of(operation))
                    found = hash_of(tensor)
                except (RuntimeError, ValueError, TypeError) as error:
                    found = f"refused: {type(error).__name__}"
                results[f"{name_of(dtype)} {operation} {count}"] = found
    return results


def order(here: Here, count: int, busy_ms: float, producer: bool, consumer: bool) -> dict[str, Any]:
    """Sums what the end of a long kernel writes, doubles the sum, then writes and sums the tensor again.

    `producer`: the kernel runs on a stream of its own, for which the current one waits. `consumer`: wait() is called,
    and the sum used, on another stream than that of the call."""
    device = here.device
    tensor = torch.zeros(count, device=device.torch)
    dist.all_reduce(tensor)
    device.keep_busy(1)  # measures how long a step takes
    from_stream = device.new_stream() if producer else None
    to_stream = device.new_stream() if consumer else None
    device.synchronise()
    dist.barrier()
    with device.on(from_stream):
        device.keep_busy(busy_ms)
        tensor.fill_(here.rank + 1)
        kernel = device.mark()
    device.let_current_wait_for(from_stream)
    called = time.perf_counter()
    work = dist.all_reduce(tensor, async_op=True)
    returned = time.perf_counter()
    runs_after_call = not device.has_passed(kernel)
    with device.on(to_stream):
        work.wait()
        waited = time.perf_counter()
        runs_after_wait = not device.has_passed(kernel)
        doubled = tensor * 2
        tensor.fill_(10 * (here.rank + 1))
        again = dist.all_reduce(tensor, async_op=True)
        again.wait()
    device.synchronise()
    total = here.size * (here.size + 1) // 2
    seen = [doubled.unique().tolist(), tensor.unique().tolist()]
    return {
        "right": seen == [[2.0 * total], [10.0 * total]],
        "seen": [values[:4] for values in seen],
        "call_ms": (returned - called) * 1e3,
        "wait_ms": (waited - returned) * 1e3,
        "runs_after_call": runs_after_call,
        "runs_after_wait": runs_after_wait,
    }


def conversion(here: Here, dtype: str, count: int, rounds: int) -> dict[str, Any]:
    """Time of an all-reduce, and what the device did in one."""
    device = here.device
    tensor = values(here.rank, type_of(dtype), count).to(device.torch)
    original = tensor.clone()
    times = []
    for _ in range(rounds + 2):
        tensor.copy_(original)
        device.synchronise()
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        device.synchronise()
        times.append((time.perf_counter() - begin) * 1e3)
    tensor.copy_(original)
    device.synchronise()
    observed = device.observe(lambda: [tensor.abs(), dist.all_reduce(tensor)])  # the kernel of abs() must be seen
    return {"ms": statistics.median(times[2:]), **asdict(observed)}


def times(here: Here, sizes: dict[str, int], rounds: int, longest_s: float) -> dict[str, Any]:
    """Milliseconds of all-reduces of float32, with atp and Gloo in turns; of each round, of the slowest rank. The
    group is one of Gloo."""
    import atp  # noqa: F401  registers the backend

    groups = {"atp": dist.new_group(backend="atp"), "gloo": dist.group.WORLD}
    return {name: _times_of(here, groups, count, rounds, longest_s / len(sizes)) for name, count in sizes.items()}


def _times_of(here: Here, groups: dict, count: int, rounds: int, longest_s: float) -> dict[str, Any]:
    tensor = torch.empty(count, device=here.device.torch)
    repeats = max(1, min(50, 2**21 // count))
    found: dict[str, Any] = {name: [] for name in groups}
    refused: dict[str, str] = {}
    began, elapsed, wrong = time.perf_counter(), 0.0, 0.0
    for at in range(-1, rounds):
        if at > 0 and elapsed > longest_s:
            break
        for name in sorted(groups, reverse=at % 2 == 0):
            if name in refused:
                continue
            try:
                taken = _one_round(here, tensor, groups[name], repeats)
            except (RuntimeError, ValueError) as error:
                refused[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
                continue
            is_wrong = not bool((tensor == here.size).all())
            agreed = torch.tensor([taken, time.perf_counter() - began, float(is_wrong)], dtype=torch.float64)
            here.kept[:] = [agreed]
            dist.all_reduce(agreed, op=dist.ReduceOp.MAX)
            taken, elapsed, wrong = agreed[0].item(), agreed[1].item(), max(wrong, agreed[2].item())
            if at >= 0:
                found[name].append(taken)
    return {"ms": found, "refused": refused, "right": wrong == 0}


def _one_round(here: Here, tensor: torch.Tensor, group: Any, repeats: int) -> float:
    here.device.synchronise()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(repeats):
        tensor.fill_(1)
        dist.all_reduce(tensor, group=group)
    here.device.synchronise()
    return (time.perf_counter() - begin) / repeats * 1e3


BODIES: dict[str, Callable[..., Any]] = {body.__name__: body for body in (versions, bits, order, conversion, times)}
