# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed as a class that can test any backend: see use().

PyTorch's test file skips a test unless it knows the name of the backend. This module loads the file as if Gloo were
tested, so that no decorator skips. use() then puts the tested backend in place of Gloo. torch.distributed itself is
unchanged: groups of the tests have the tested backend, and get_backend() returns its name.

The backend does not choose two names that tests compare, so this module translates them:
- The profiler names a delegated operation after Gloo, for example "gloo:send".
- The logging data of DDP names every backend outside PyTorch "custom".
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

# PyTorch's test file reads these variables and WORLD_SIZE when it is loaded. Each test sets another file: see
# TestDistributed._run().
os.environ.update(BACKEND="gloo", INIT_METHOD=f"file://{tempfile.gettempdir()}/unused")

from torch.testing._internal.distributed import distributed_test as suite  # noqa: E402


class _LikeGloo(str):
    """Name of the tested backend. It also equals "gloo", because the tests compare the name to choose a path."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) or other == "gloo"

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("gloo")


_find_events = suite.get_profiling_event
_read_logging_data = torch.nn.parallel.DistributedDataParallel._get_ddp_logging_data


def _find_events_of_either(name: str, *arguments: Any, **options: Any) -> list:
    backend = suite.BACKEND.lower()
    events = _find_events(name, *arguments, **options)
    if not events and name.startswith(f"{backend}:"):
        events = _find_events(name.replace(backend, "gloo", 1), *arguments, **options)
        for event in events:
            event.name = event.name.replace("gloo", backend, 1)
    return events


def _read_logging_data_with_name(model: torch.nn.parallel.DistributedDataParallel) -> dict:
    data = _read_logging_data(model)
    if data.get("backend_name") == "custom":
        data["backend_name"] = dist.get_backend(model.process_group)
    return data


def use(backend: str) -> None:
    """Sets the backend that all later tests of this process test. Call it once."""
    if backend == "gloo":
        return
    os.environ["BACKEND"] = backend
    suite.BACKEND = _LikeGloo(backend)
    suite.PROFILING_SUPPORTED_BACKENDS.append(backend)
    suite.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append(backend)
    suite.get_profiling_event = _find_events_of_either
    torch.nn.parallel.DistributedDataParallel._get_ddp_logging_data = _read_logging_data_with_name


class TestDistributed(suite.TestDistBackend, suite.DistributedTest._DistTestBase):  # type: ignore[misc]
    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()

    def _spawn_processes(self) -> None:
        """Forks the ranks: this process has no other thread. PyTorch would load all modules again in each rank."""
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    @classmethod
    def _run(cls, *arguments: Any, **options: Any) -> None:
        suite.INIT_METHOD = os.environ["INIT_METHOD"]
        super()._run(*arguments, **options)
