# SPDX-License-Identifier: Apache-2.0
"""The operators of the library for this release of torch (python/csrc/operators.cc)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from . import _library

RELEASE = ".".join(torch.__version__.split(".")[:2])
LIBRARY = _library.FOLDER / f"libatp_torch_{RELEASE}.so"


def _load() -> Any:
    if not LIBRARY.exists():
        known = sorted(path.stem[len("libatp_torch_") :] for path in LIBRARY.parent.glob("libatp_torch_*.so"))
        raise ImportError(
            f"atp has no library for PyTorch {torch.__version__}, only for {', '.join(known)}: install one of these, "
            "or build atp in its sources again"
        )
    torch.ops.load_library(str(LIBRARY))
    return torch.ops.atp


_operators = _load()
_CPU = torch.device("cpu")


class Group:
    """A group of one backend of this package, and what must live until the backend is shut down.

    Args:
        given: what PyTorch passes to the function that makes a backend.
        fallback: a Gloo backend of the same ranks.
        communicator: its handle, which this class takes.
        report: called with operation and reason, once for each pair that the fallback executes.
    """

    def __init__(
        self,
        given: Any,
        fallback: Any,
        store: _library.Store,
        communicator: int,
        hosts_switch: bool,
        report: Callable[[str, str], None],
    ) -> None:
        self._kept = (store, _library.delegation_receiver(report))
        own, other = (dist.ProcessGroup(given.group_rank, given.group_size) for _ in range(2))
        other._register_backend(_CPU, dist.ProcessGroup.BackendType.GLOO, fallback)
        ranks = list(given.global_ranks_in_group) or list(range(given.group_size))
        self._boxed = own.boxed()
        _operators.attach(
            *(self._boxed, other.boxed(), communicator, store.handle, _library.address_of(self._kept[1])),
            *(hosts_switch, str(given.group_id), ranks),
        )
        _library.destroy(communicator)
        self.backend = own._get_backend(_CPU)

    @property
    def active(self) -> bool:
        """False after shutdown() or abort()."""
        return bool(_operators.is_active(self._boxed))

    def shutdown(self) -> None:
        _operators.shutdown(self._boxed)

    def abort(self) -> None:
        _operators.abort(self._boxed)


def _boxed(group: dist.ProcessGroup | None) -> Any:
    return (group or dist.distributed_c10d._get_default_group()).boxed()


def counters(group: dist.ProcessGroup | None) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the counters by name, and calls of Gloo by operation."""
    boxed = _boxed(group)
    return dict(_operators.counters(boxed)), dict(_operators.delegations(boxed))


def failure(group: dist.ProcessGroup) -> str:
    """Returns the text of the group's first failure, of which `_library.failure_of()` knows the parts, or nothing."""
    return str(_operators.failure(_boxed(group)))


def push(group: dist.ProcessGroup | None, key: int, tensor: torch.Tensor) -> None:
    _operators.push(_boxed(group), _signed(key), tensor)


def pull(group: dist.ProcessGroup | None, key: int, tensor: torch.Tensor) -> None:
    _operators.pull(_boxed(group), _signed(key), tensor)


def _signed(key: int) -> int:
    if not 0 <= key < 2**64:
        raise TypeError(f"the key {key} is not from 0 to 2**64 - 1")
    return key - 2**64 if key >= 2**63 else key


def scales_of(work: dist.Work) -> torch.Tensor | None:
    """Returns the scale of each cell of a work's elements; None: they were not sent at scales of their own."""
    scales: torch.Tensor | None = _operators.scales_of(work.boxed())
    return scales


def cell_of(work: dist.Work) -> int | None:
    """Returns the number of elements with one scale; None: they were not sent at scales of their own."""
    cell: int | None = _operators.cell_of(work.boxed())
    return cell


def has_flight_recorder() -> bool:
    return bool(_operators.has_flight_recorder())


def dump_flight_records(stacks: bool, only_active: bool) -> bytes:
    records = _operators.dump_flight_records(stacks, only_active)
    return ctypes.string_at(records.data_ptr(), records.numel())
