# SPDX-License-Identifier: Apache-2.0
"""The operators of the library for this release of torch (python/csrc/operators.cc)."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
import torch.distributed as dist

from . import _library
from ._backends import LIBRARY, Report
from .errors import Failure, failure_in

torch.ops.load_library(str(LIBRARY))
_operators = torch.ops.atp
_CPU = torch.device("cpu")


class _Group:
    """A group of one backend of this package, and what must live until the backend is shut down."""

    def __init__(
        self,
        given: Any,
        gloo: Any,
        store: _library.Store,
        communicator: int,
        _timeout_s: float,
        hosts_switch: bool,
        report: Report,
    ) -> None:
        self._kept = (store, _library.delegation_receiver(report))
        place = (given.group_rank, given.group_size)
        own, other = dist.ProcessGroup(*place), dist.ProcessGroup(*place)  # type: ignore[arg-type,call-arg]
        other._register_backend(_CPU, dist.ProcessGroup.BackendType.GLOO, gloo)
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
        return bool(_operators.is_active(self._boxed))

    def shutdown(self) -> None:
        _operators.shutdown(self._boxed)

    def abort(self) -> None:
        _operators.abort(self._boxed)


make_group = _Group


def _boxed(group: dist.ProcessGroup | None) -> Any:
    return (group or dist.distributed_c10d._get_default_group()).boxed()


def counters(group: dist.ProcessGroup | None) -> tuple[dict[str, int], dict[str, int]]:
    boxed = _boxed(group)
    return dict(_operators.counters(boxed)), dict(_operators.delegations(boxed))


def failure(group: dist.ProcessGroup) -> Failure | None:
    return failure_in(_operators.failure(_boxed(group)))


def push(group: dist.ProcessGroup | None, key: int, tensor: torch.Tensor) -> None:
    _operators.push(_boxed(group), _signed(key), tensor)


def pull(group: dist.ProcessGroup | None, key: int, tensor: torch.Tensor) -> None:
    _operators.pull(_boxed(group), _signed(key), tensor)


def _signed(key: int) -> int:
    return key - 2**64 if key >= 2**63 else key


def scales_of(work: dist.Work) -> torch.Tensor | None:
    scales: torch.Tensor | None = _operators.scales_of(work.boxed())
    return scales


def cell_of(work: dist.Work) -> int | None:
    cell: int | None = _operators.cell_of(work.boxed())
    return cell


def has_flight_recorder() -> bool:
    return bool(_operators.has_flight_recorder())


def dump_flight_records(stacks: bool, only_active: bool) -> bytes:
    if not has_flight_recorder():
        raise RuntimeError("this build of atp has no Flight Recorder, because torch lacked its headers")
    records = _operators.dump_flight_records(stacks, only_active)
    return ctypes.string_at(records.data_ptr(), records.numel())
