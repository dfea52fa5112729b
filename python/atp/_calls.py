# SPDX-License-Identifier: Apache-2.0
"""Operations of libatp, through ctypes, for a group without the library for PyTorch. src/drivers/capi/bridge.h declares
them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import fields

from . import _library
from ._counters import RankCounters
from .errors import error_from

# enum atp_operation
ALL_REDUCE, BROADCAST, BARRIER, REDUCE_SCATTER, ALL_GATHER, REDUCE = 3, 4, 5, 8, 9, 10


class _Buffer(Structure):
    _fields_ = [("in", c_void_p), ("out", c_void_p), ("elements", c_size_t)]


class _Call(Structure):
    _fields_ = [
        ("operation", c_int32),
        ("type", c_int32),
        ("reduction", c_int32),
        ("root", c_uint32),
        ("factor", c_double),
        ("timeout_s", c_double),
        ("awaited", c_int32),
        ("buffers", c_void_p),
        ("count", c_size_t),
        ("shares", c_void_p),
    ]


class _Counters(Structure):
    _fields_ = [("struct_size", c_size_t), *((field.name, c_uint64) for field in fields(RankCounters))]


_lib = _library.load()
_lib.atp_bridge_begin.argtypes = (c_void_p, POINTER(_Call), POINTER(c_void_p), POINTER(_library.Text))
_lib.atp_bridge_wait.argtypes = (c_void_p, c_double, POINTER(_library.Text))
_lib.atp_bridge_give_up.argtypes = (c_void_p, c_int64, POINTER(_library.Text))
_lib.atp_bridge_push.argtypes = (c_void_p, c_uint64, c_void_p, c_size_t, c_int32, c_double, POINTER(_library.Text))
_lib.atp_bridge_pull.argtypes = (c_void_p, c_uint64, c_void_p, c_size_t, c_int32, POINTER(_library.Text))
_lib.atp_bridge_longest_fold.restype = c_uint64
_lib.atp_work_free.argtypes = (c_void_p,)
_lib.atp_communicator_abort.argtypes = (c_void_p,)
_lib.atp_communicator_counters.argtypes = (c_void_p, POINTER(_Counters), c_size_t)

LONGEST_FOLD: int = _lib.atp_bridge_longest_fold()
_STILL_RUNS = 2


class Handle:
    """An operation in flight. It does not keep the memory of its buffers."""

    def __init__(self, work: int | None) -> None:
        self._work = work

    def __del__(self, free=_lib.atp_work_free) -> None:  # type: ignore[no-untyped-def]  # globals may be gone
        free(self._work)

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds`, and returns whether the operation is done. Raises DistBackendError if it failed."""
        text = _library.Text()
        result = _lib.atp_bridge_wait(self._work, seconds, text)
        if result == 1:
            raise error_from(str(text))
        return bool(result != _STILL_RUNS)

    def give_up(self, timeout_ms: int) -> Exception:
        """Returns the exception of a wait that ended after its own timeout."""
        text = _library.Text()
        _lib.atp_bridge_give_up(self._work, timeout_ms, text)
        return error_from(str(text))


def begin(
    communicator: int,
    operation: int,
    buffers: Sequence[tuple[int, int, int]],
    timeout_s: float,
    awaited: bool,
    *,
    dtype: int = 0,
    reduction: int = 0,
    factor: float = 1,
    root: int = 0,
    shares: Sequence[int] | None = None,
) -> Handle:
    """Begins an operation.

    Args:
        buffers: addresses of what the operation reads and writes, and their number of elements.
        dtype, reduction: numbers of _summable.py.
        shares: for each rank, bytes of an all-gather or elements of a reduce-scatter.

    Raises:
        DistBackendError: the operation is refused, for example after a failure.
    """
    count = len(buffers)
    array = (_Buffer * count)(*buffers)  # type: ignore[misc]
    parts = None if shares is None else (c_size_t * len(shares))(*shares)
    call = _Call(
        *(operation, dtype, reduction, root, factor, timeout_s, awaited),
        *(ctypes.addressof(array), count, None if parts is None else ctypes.addressof(parts)),
    )
    work, text = c_void_p(), _library.Text()
    if _lib.atp_bridge_begin(communicator, call, ctypes.byref(work), text):
        raise error_from(str(text))
    return Handle(work.value)


def push(communicator: int, key: int, address: int, elements: int, dtype: int, timeout_s: float) -> None:
    text = _library.Text()
    if _lib.atp_bridge_push(communicator, key, address, elements, dtype, timeout_s, text):
        raise error_from(str(text))


def pull(communicator: int, key: int, address: int, elements: int, dtype: int) -> None:
    text = _library.Text()
    if _lib.atp_bridge_pull(communicator, key, address, elements, dtype, text):
        raise error_from(str(text))


def abort(communicator: int) -> None:
    _lib.atp_communicator_abort(communicator)


def counters(communicator: int) -> dict[str, int]:
    counted = _Counters()
    _lib.atp_communicator_counters(communicator, counted, ctypes.sizeof(counted))
    return {field.name: getattr(counted, field.name) for field in fields(RankCounters)}
