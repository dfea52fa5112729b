# SPDX-License-Identifier: Apache-2.0
"""Operations of libatp, through ctypes, for a group without the library for PyTorch. src/drivers/capi/bridge.h declares
them."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import fields

from . import _library
from ._counters import RankCounters
from .errors import error_from

# enum atp_operation
ALL_REDUCE, BROADCAST, BARRIER, REDUCE_SCATTER, ALL_GATHER, REDUCE = 3, 4, 5, 8, 9, 10


# struct atp_buffer and struct atp_bridge_call. Faster than classes of ctypes.
_BUFFER = "PPN"
_CALL = struct.Struct("@iiiIddiN")


class _Local(threading.local):
    """What a call of this thread fills."""

    def __init__(self) -> None:
        self.text = _library.Text()
        self.work = c_void_p()


class _Counters(Structure):
    _fields_ = [("struct_size", c_size_t), *((field.name, c_uint64) for field in fields(RankCounters))]


_lib = _library.load()
_lib.atp_bridge_begin.argtypes = (*(c_void_p, c_char_p, c_char_p, c_char_p, POINTER(c_void_p), POINTER(_library.Text)),)
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
_local = _Local()
_begin, _wait, _free = _lib.atp_bridge_begin, _lib.atp_bridge_wait, _lib.atp_work_free


@functools.cache
def _numbers(form: str, count: int) -> struct.Struct:
    return struct.Struct("@" + form * count)


class Communicator:
    """A communicator, which lives as long as a thread may use it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self, destroy=_library.destroy) -> None:  # type: ignore[no-untyped-def]  # globals may be gone
        destroy(self.handle)


class Handle:
    """An operation in flight. It does not keep the memory of its buffers."""

    def __init__(self, work: int | None) -> None:
        self._work = work

    def __del__(self, free=_free) -> None:  # type: ignore[no-untyped-def]  # globals may be gone
        free(self._work)

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds`, and returns whether the operation is done. Raises DistBackendError if it failed."""
        text = _local.text
        result = _wait(self._work, seconds, text)
        if result == 1:
            raise error_from(str(text))
        return bool(result != _STILL_RUNS)

    def give_up(self, timeout_ms: int) -> Exception:
        """Returns the exception of a wait that ended after its own timeout."""
        text = _library.Text()
        _lib.atp_bridge_give_up(self._work, timeout_ms, text)
        return error_from(str(text))


def begin(
    communicator: Communicator,
    operation: int,
    buffers: Sequence[int],
    timeout_s: float,
    awaited: bool,
    dtype: int = 0,
    reduction: int = 0,
    factor: float = 1,
    root: int = 0,
    shares: Sequence[int] | None = None,
) -> Handle:
    """Begins an operation.

    Args:
        buffers: for each, the addresses of what the operation reads and writes, and the number of elements.
        dtype, reduction: numbers of _summable.py.
        shares: for each rank, bytes of an all-gather or elements of a reduce-scatter.

    Raises:
        DistBackendError: the operation is refused, for example after a failure.
    """
    own = _local
    count = len(buffers) // 3
    array = _numbers(_BUFFER, count).pack(*buffers)
    parts = None if shares is None else _numbers("N", len(shares)).pack(*shares)
    call = _CALL.pack(operation, dtype, reduction, root, factor, timeout_s, awaited, count)
    if _begin(communicator.handle, call, array, parts, own.work, own.text):
        raise error_from(str(own.text))
    return Handle(own.work.value)


def push(communicator: Communicator, key: int, address: int, elements: int, dtype: int, timeout_s: float) -> None:
    text = _library.Text()
    if _lib.atp_bridge_push(communicator.handle, key, address, elements, dtype, timeout_s, text):
        raise error_from(str(text))


def pull(communicator: Communicator, key: int, address: int, elements: int, dtype: int) -> None:
    text = _library.Text()
    if _lib.atp_bridge_pull(communicator.handle, key, address, elements, dtype, text):
        raise error_from(str(text))


def abort(communicator: Communicator) -> None:
    _lib.atp_communicator_abort(communicator.handle)


def counters(communicator: Communicator) -> dict[str, int]:
    counted = _Counters()
    _lib.atp_communicator_counters(communicator.handle, counted, ctypes.sizeof(counted))
    return {field.name: getattr(counted, field.name) for field in fields(RankCounters)}
