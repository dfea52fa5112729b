# SPDX-License-Identifier: Apache-2.0
"""Runs a function on several ranks, each a process, and brings back what each of them returned or raised."""

from __future__ import annotations

import multiprocessing
import os
import queue
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

_DEADLINE_S = 120.0


@dataclass
class Outcome:
    """What became of a rank: a value, or an exception's type name and text, or neither where it was killed."""

    value: Any = None
    error: str | None = None
    text: str = ""
    exit_code: int | None = None


def _rank_main(body, rank, size, store_file, environment, options, outcomes):
    os.environ.update(environment, OMP_NUM_THREADS="1")
    import torch
    import torch.distributed as dist

    import atp  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    try:
        dist.init_process_group(
            options.get("backend", "atp"),
            store=dist.FileStore(store_file, size),
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=options.get("timeout_s", 60)),
            pg_options=options.get("pg_options"),
        )
        value = body(rank, size)
        dist.destroy_process_group()
        outcomes.put((rank, Outcome(value=value)))
    except Exception as error:
        outcomes.put((rank, Outcome(error=type(error).__name__, text=f"{error}\n{traceback.format_exc()}")))
    outcomes.close()
    outcomes.join_thread()


def run_ranks(
    body: Callable[[int, int], Any], size: int, environment: dict[str, str] | None = None, **options: Any
) -> list[Outcome]:
    """By rank. `body` is a function of a module; its value must be picklable, tensors as lists or numpy arrays."""
    context = multiprocessing.get_context("spawn")
    outcomes = context.Queue()
    results = [Outcome() for _ in range(size)]
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(
                target=_rank_main,
                args=(body, rank, size, os.path.join(folder, "store"), environment or {}, options, outcomes),
                daemon=True,
            )
            for rank in range(size)
        ]
        for process in processes:
            process.start()
        waiting = set(range(size))
        deadline = time.monotonic() + _DEADLINE_S
        try:
            while waiting and time.monotonic() < deadline:
                try:
                    rank, outcome = outcomes.get(timeout=0.2)
                    results[rank] = outcome
                    waiting.discard(rank)
                except queue.Empty:
                    waiting -= {rank for rank in waiting if processes[rank].exitcode not in (None, 0)}
            for rank, process in enumerate(processes):
                process.join(max(deadline - time.monotonic(), 1))
                results[rank].exit_code = process.exitcode
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
    return results


def values_of(outcomes: list[Outcome]) -> list[Any]:
    """What all ranks returned; fails the test where one did not."""
    for rank, outcome in enumerate(outcomes):
        assert outcome.error is None, f"rank {rank}: {outcome.error}: {outcome.text}"
        assert outcome.exit_code == 0, f"rank {rank} ended with {outcome.exit_code}"
    return [outcome.value for outcome in outcomes]
