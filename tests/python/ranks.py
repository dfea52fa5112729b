# SPDX-License-Identifier: Apache-2.0
"""Runs a function on several ranks. Each rank is a process. Returns the value or the exception of each rank."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

_DEADLINE_S = 120.0

# A server process forks the ranks. It has already imported these modules, and has no other thread.
_PRELOADED = ["numpy", "torch", "torch._dynamo", "torch.distributed.fsdp", "atp"]
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
multiprocessing.set_forkserver_preload(_PRELOADED)


@dataclass
class Outcome:
    """Result of a rank: a value, or the type name and text of an exception. A killed rank has neither."""

    value: Any = None
    error: str | None = None
    text: str = ""
    exit_code: int | None = None
    elapsed_s: float = 0.0


def init_group(rank: int, size: int, store_file: str, **options: Any) -> None:
    """Calls init_process_group() with `backend`, `timeout_s` and `pg_options` from `options`, or their defaults."""
    import torch.distributed as dist

    dist.init_process_group(
        options.get("backend", "atp"),
        store=dist.FileStore(store_file, size),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=options.get("timeout_s", 60)),
        pg_options=options.get("pg_options"),
    )


def _rank_main(
    body: Callable, rank: int, size: int, store_file: str, environment: dict, options: dict, parent: Connection
) -> None:
    import torch.distributed as dist

    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs that ignore it
    begin = time.monotonic()
    try:
        if options.get("in_group", True):
            init_group(rank, size, store_file, **options)
            value = body(rank, size)
            dist.destroy_process_group()
        else:
            value = body(rank, size, store_file)
        outcome = Outcome(value=value)
    except (Exception, KeyboardInterrupt) as error:
        # Without the library for PyTorch, the exception is of a subclass.
        name = "DistBackendError" if isinstance(error, dist.DistBackendError) else type(error).__name__
        outcome = Outcome(error=name, text=f"{error}\n{traceback.format_exc()}")
    outcome.elapsed_s = time.monotonic() - begin
    parent.send(outcome)


def run_ranks(
    body: Callable[..., Any],
    size: int,
    environment: dict[str, str] | Callable[[int], dict[str, str]] | None = None,
    **options: Any,
) -> list[Outcome]:
    """Runs `body` on each rank and returns the outcomes by rank.

    `body` is a function of a module. Its value must be picklable, with tensors as lists or numpy arrays. `environment`
    has the variables of all ranks, or is a function that returns the variables of a rank. With `in_group=False`,
    body(rank, size, store_file) forms the groups itself. Otherwise init_group() forms the group with `options` before
    body(rank, size) runs.
    """
    context = multiprocessing.get_context("forkserver")
    deadline = time.monotonic() + _DEADLINE_S
    with tempfile.TemporaryDirectory() as folder:
        processes, connections = [], []
        for rank in range(size):
            own_environment = environment(rank) if callable(environment) else environment or {}
            ours, theirs = context.Pipe(duplex=False)
            arguments = (body, rank, size, os.path.join(folder, "store"), own_environment, options, theirs)
            process = context.Process(target=_rank_main, args=arguments, daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            connections.append(ours)
        try:
            return [_outcome_of(*each, deadline) for each in zip(processes, connections)]
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()


def _outcome_of(process: multiprocessing.Process, connection: Connection, deadline: float) -> Outcome:
    try:
        assert connection.poll(max(deadline - time.monotonic(), 0)), f"{process.name} is still running"
        outcome = connection.recv()
    except EOFError:
        outcome = Outcome()
    process.join(max(deadline - time.monotonic(), 1))
    outcome.exit_code = process.exitcode
    return outcome


def values_of(outcomes: list[Outcome]) -> list[Any]:
    """Returns the values of all ranks. Fails the test if a rank raised an exception or was killed."""
    for rank, outcome in enumerate(outcomes):
        assert outcome.error is None, f"rank {rank}: {outcome.error}: {outcome.text}"
        assert outcome.exit_code == 0, f"rank {rank} ended with {outcome.exit_code}"
    return [outcome.value for outcome in outcomes]
