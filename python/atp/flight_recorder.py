# SPDX-License-Identifier: Apache-2.0
"""PyTorch's Flight Recorder for the operations in the network.

libtorch does not let backends outside of it use its recorder. This package therefore has one of the same class, with
the same settings, such as TORCH_FR_BUFFER_SIZE, and the same format. Operations that Gloo executes are in PyTorch's
own.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch.distributed as dist

from ._backends import backends


def flight_records(*, stacks: bool = True, only_active: bool = False) -> dict[str, Any]:
    """The last operations of this process in the network, in PyTorch's format: "entries", "pg_config" and others.

    An entry has the state "started" or "completed". One that is "retired" and not completed has failed.

    Args:
        stacks: whether to add the stack of the caller to each operation.
        only_active: whether to leave out completed operations.

    Raises:
        RuntimeError: this build of `atp` lacks the recorder.
    """
    records: dict[str, Any] = pickle.loads(backends.dump_flight_records(stacks, only_active))  # noqa: S301: made here
    return records


def write_flight_records(prefix: str | os.PathLike[str], *, name: str = "atp", stacks: bool = True) -> Path:
    """Writes the records to a file for PyTorch's analyser `torchfrtrace`, and returns its path.

    Args:
        prefix: the path, to which the rank of this process is added.
        name: the name of the backend in the names of operations. `torchfrtrace` accepts only the names of PyTorch's own
            backends: use "gloo" for it.
        stacks: whether to add the stack of the caller to each operation.
    """
    records = flight_records(stacks=stacks)
    for entry in records["entries"]:
        entry["profiling_name"] = entry["profiling_name"].replace("atp:", name + ":", 1)
    path = Path(f"{os.fspath(prefix)}{dist.get_rank()}")
    path.write_bytes(pickle.dumps(records))
    return path
