# SPDX-License-Identifier: Apache-2.0
"""Processes that are the ranks of a trial's steps."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

LONGEST_FORMING_S = 60


class Failed(Exception):
    """A rank raised an exception, ended, or did not answer in time; the text says which."""


def prepare(package: Path) -> None:
    """Makes ranks import the package. Call it once, before the first Crew."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(package), *others])
    sys.path.insert(0, str(package))  # ranks get this path
    os.environ.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a machine without a network may not know its own name
    # A server process forks the ranks. It has imported torch, but has not touched a device.
    multiprocessing.set_forkserver_preload(["torch", "torch.distributed"])


class Crew:
    """`size` ranks, which execute one step after the other. A context manager, which ends them in any case.

    Ownership: owns the processes. Calling order: run(), until it raises; then a new crew is needed. Threads: one.
    Failure: run() raises Failed. A rank also ends by itself after `longest_s`, and if this process ends.
    """

    def __init__(self, size: int, device: str, longest_s: float) -> None:
        context = multiprocessing.get_context("forkserver")
        self.size = size
        self._processes: list[Any] = []
        self._connections: list[Connection] = []
        self._folder = tempfile.TemporaryDirectory()
        self._steps = 0
        try:
            for rank in range(size):
                ours, theirs = context.Pipe()
                arguments = (rank, size, device, max(1, int(longest_s)), theirs)
                process = context.Process(target=_serve, args=arguments, daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._connections.append(ours)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        for connection in self._connections:
            connection.close()
        self._processes, self._connections = [], []
        self._folder.cleanup()

    def run(self, order: dict[str, Any], longest_s: float) -> list[Any]:
        """Executes `order` on all ranks: `body`, `arguments`, `environment`, `backend` and `device`."""
        deadline = time.monotonic() + longest_s
        self._steps += 1
        store = os.path.join(self._folder.name, f"store-{self._steps}")
        for rank, connection in enumerate(self._connections):
            try:
                connection.send({**order, "store": store, "longest_s": longest_s})
            except OSError:
                raise Failed(f"rank {rank} ended before") from None
        values: dict[int, Any] = {}
        while len(values) < self.size:
            waiting = [self._connections[rank] for rank in range(self.size) if rank not in values]
            ready = wait(waiting, max(0.0, deadline - time.monotonic()))
            if not ready:
                slow = [str(rank) for rank in range(self.size) if rank not in values]
                raise Failed(f"rank {', '.join(slow)} did not answer within {longest_s:.0f} s")
            for connection in ready:
                rank = self._connections.index(connection)
                values[rank] = self._answer(rank, connection)
        return [values[rank] for rank in range(self.size)]

    def _answer(self, rank: int, connection: Any) -> Any:
        try:
            error, value = connection.recv()
        except (EOFError, OSError):
            self._processes[rank].join(1)
            raise Failed(f"rank {rank} ended with exit status {self._processes[rank].exitcode}") from None
        if error:
            raise Failed(f"rank {rank}: {error}")
        return value


def _serve(rank: int, size: int, device: str, longest_s: int, parent: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent ends all ranks
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.alarm(longest_s)
    while True:
        try:
            order = parent.recv()
        except EOFError:
            return
        try:
            answer = ("", _execute(rank, size, order))
        except Exception as error:
            answer = (f"{type(error).__name__}: {error}\n{traceback.format_exc()}", None)
        parent.send(answer)


def _execute(rank: int, size: int, order: dict[str, Any]) -> Any:
    for variable in [name for name in os.environ if name.startswith("ATP_")]:
        del os.environ[variable]
    os.environ.update({"ATP_LOG": "error", **order["environment"]})
    from datetime import timedelta

    import torch
    import torch.distributed as dist
    from device_trial.bodies import BODIES, Here
    from device_trial.device import Device

    import atp  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    here = Here(rank, size, Device(order["device"], rank))
    dist.init_process_group(
        order["backend"],
        store=dist.FileStore(order["store"], size),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=min(LONGEST_FORMING_S, max(1.0, order["longest_s"]))),
    )
    value = BODIES[order["body"]](here, **order["arguments"])
    dist.destroy_process_group()
    return value
