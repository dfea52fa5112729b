# SPDX-License-Identifier: Apache-2.0
"""libatp, through ctypes: all that is not an operation. include/atp/atp.h and src/drivers/capi/bridge.h declare it."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import torch

# Wheels of torch before 2.7 may have the string type of gcc 4, and each type needs libraries of its own.
_FOLDER = Path(__file__).parent / "lib"
FOLDER = _FOLDER / ("" if torch.compiled_with_cxx11_abi() else "old_strings")

_CLOSED, _TIMED_OUT, _TOO_LARGE, _FAILED = 14, 10, 7, 15  # enum atp_reason


class Text(Structure):
    _fields_ = [("text", c_char * 8192)]

    def __str__(self) -> str:
        return str(self.text.decode(errors="replace"))


class _Network(Structure):
    _fields_ = [
        ("switch_address", c_char * 256),
        ("listen", c_char * 256),
        ("hosts_switch", c_int32),
        ("refusal", c_char * 2048),
    ]


class _Failure(Structure):
    _fields_ = [
        ("reason", c_char * 32),
        ("operation", c_char * 32),
        ("address", c_char * 256),
        ("rank_count", c_uint32),
        ("ranks", c_uint32 * 1024),
    ]


_Set = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_size_t)
_Get = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_int64, c_void_p, c_size_t, POINTER(c_size_t))
_Add = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_int64, POINTER(c_int64))
_Find = ctypes.CFUNCTYPE(c_int32, c_char_p, POINTER(_Network))
_Delegated = ctypes.CFUNCTYPE(None, c_char_p, c_char_p)


class _StoreCallbacks(Structure):
    _fields_ = [("struct_size", c_size_t), ("context", c_void_p), ("set", _Set), ("get", _Get), ("add", _Add)]


def file() -> Path:
    """Returns libatp with the string type of torch. Without one, the other type does, because the C interface and the
    functions below have no strings of C++. Raises ImportError."""
    found = sorted(FOLDER.glob("libatp.so*")) or sorted(_FOLDER.rglob("libatp.so*"))
    if not found:
        raise ImportError(f"{_FOLDER / 'libatp.so'} is missing: install the package again")
    return found[0]


@functools.cache
def load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(file()))
    except OSError as error:
        raise ImportError(f"{file()} does not load: {error}") from None
    text = POINTER(Text)
    signatures: dict[str, tuple[Any, ...]] = {
        "atp_store_from_callbacks": (POINTER(_StoreCallbacks), POINTER(c_void_p), c_void_p),
        "atp_store_destroy": (c_void_p,),
        "atp_communicator_destroy": (c_void_p,),
        "atp_bridge_form": (
            *(c_void_p, c_uint32, c_uint32, POINTER(c_char_p), c_size_t, c_int32, _Find, c_double),
            *(POINTER(c_void_p), text),
        ),
        "atp_bridge_switch_start": (c_char_p, c_char_p, POINTER(c_void_p), text),
        "atp_bridge_switch_stop": (c_void_p,),
        "atp_bridge_address_towards": (c_char_p, text),
        "atp_bridge_take_log_line": (text,),
        "atp_bridge_close_log_lines": (),
        "atp_bridge_metrics": (ctypes.c_int32, c_char_p, ctypes.c_size_t),
        "atp_bridge_failure_of": (c_char_p, POINTER(_Failure)),
        "atp_bridge_elements_of_cell": (),
    }
    for name, types in signatures.items():
        getattr(library, name).argtypes = types
    library.atp_bridge_elements_of_cell.restype = ctypes.c_uint64
    library.atp_bridge_metrics.restype = ctypes.c_size_t
    return library


_lib = load()
ELEMENTS_OF_CELL: int = _lib.atp_bridge_elements_of_cell()


class _Calls:
    """The callbacks of a store. Not methods of `Store`, whose callbacks would then keep it: it would outlive its last
    user, until a collection of cycles ends it in whatever thread runs one."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.raised: BaseException | None = None

    def _guarded(self, body: Callable[[], int]) -> int:
        try:
            return body()
        except BaseException as error:
            self.raised = self.raised or error
            return _FAILED if isinstance(error, Exception) else _CLOSED

    def set(self, _: object, key: bytes, value: int, size: int) -> int:
        def body() -> int:
            self.store.set(key.decode(), ctypes.string_at(value, size))
            return 0

        return self._guarded(body)

    def add(self, _: object, key: bytes, delta: int, total: Any) -> int:
        def body() -> int:
            total[0] = self.store.add(key.decode(), delta)
            return 0

        return self._guarded(body)

    def get(self, _: object, key: bytes, timeout_ms: int, value: int, capacity: int, size: Any) -> int:
        def body() -> int:
            if not _wait(self.store, key.decode(), timeout_ms / 1000):
                return _TIMED_OUT
            found = self.store.get(key.decode())
            size[0] = len(found)
            if len(found) > capacity:
                return _TOO_LARGE
            ctypes.memmove(value, found, len(found))
            return 0

        return self._guarded(body)


def _wait(store: Any, key: str, timeout_s: float) -> bool:
    """Polls, with pauses that grow with the time waited: a store's own wait cannot be interrupted, and prints to stderr
    when it times out."""
    begin = time.monotonic()
    while not store.check([key]):
        waited = time.monotonic() - begin
        if waited >= timeout_s:
            return False
        time.sleep(min(max(waited / 8, 0.001), 0.5, timeout_s - waited))
    return True


class Store:
    """A store of torch.distributed, as one of the C interface."""

    def __init__(self, store: Any) -> None:
        self._calls = _Calls(store)
        callbacks = (_Set(self._calls.set), _Get(self._calls.get), _Add(self._calls.add))
        self._callbacks = _StoreCallbacks(ctypes.sizeof(_StoreCallbacks), None, *callbacks)
        handle = c_void_p()
        _lib.atp_store_from_callbacks(byref(self._callbacks), byref(handle), None)
        self.handle: int = handle.value or 0

    def __del__(self) -> None:
        _lib.atp_store_destroy(self.handle)

    @property
    def raised(self) -> BaseException | None:
        """The first exception of a callback, which cannot raise it, such as KeyboardInterrupt during a wait."""
        return self._calls.raised

    def set(self, key: str, value: bytes) -> None:
        self._calls.store.set(key, value)

    def wait(self, keys: list[str], timeout_s: float) -> None:
        """Returns when the store has the keys, or after the timeout."""
        end = time.monotonic() + timeout_s
        for key in keys:
            _wait(self._calls.store, key, end - time.monotonic())


FindNetwork = Callable[[str], "tuple[str, str, bool]"]


def form(
    store: Store,
    rank: int,
    size: int,
    options: dict[str, str],
    starts_switch: bool,
    find_network: FindNetwork,
    timeout_s: float,
) -> int:
    """Waits for all ranks of a group, and returns the handle of its communicator. `find_network` is called if the ranks
    need the network, with the switch that rank 0 names. It returns the switch of this rank, the address at which it may
    serve sums, and whether its process runs that switch.

    Raises:
        RuntimeError: the group did not form. Or what a function of Python has raised."""
    raised: list[BaseException] = []

    def find(offered: bytes, network: Any) -> int:
        try:
            switch, listen, hosts_switch = find_network(offered.decode())
            network[0].switch_address, network[0].listen = switch.encode(), listen.encode()
            network[0].hosts_switch = hosts_switch
        except BaseException as error:
            raised.append(error)  # raised again when the other ranks know of it
            network[0].refusal = str(error).encode()[:2047]
            return 1
        return 0

    texts = [text.encode() for pair in options.items() for text in pair]
    communicator, text = c_void_p(), Text()
    failed = _lib.atp_bridge_form(
        *(store.handle, rank, size, (c_char_p * len(texts))(*texts), len(texts), starts_switch, _Find(find)),
        *(timeout_s, byref(communicator), byref(text)),
    )
    if store.raised is not None and not isinstance(store.raised, Exception):
        raise store.raised
    if raised:
        raise raised[0]
    if failed:
        raise RuntimeError(str(text)) from store.raised
    return communicator.value or 0


def destroy(communicator: int) -> None:
    """Frees the handle. The communicator lives on if a backend shares it."""
    _lib.atp_communicator_destroy(communicator)


class Switch:
    """A software switch inside this process."""

    def __init__(self, listen: str, key_file: str = "") -> None:
        """Raises RuntimeError if it cannot listen there, or read the key that it asks members for."""
        self._node, text = c_void_p(), Text()
        if _lib.atp_bridge_switch_start(listen.encode(), key_file.encode(), byref(self._node), byref(text)):
            raise RuntimeError(str(text))
        self.address = str(text)

    def stop(self) -> None:
        _lib.atp_bridge_switch_stop(self._node)


def address_towards(address: str) -> str:
    """Returns the local address, without a port, from which this host reaches `address`. Raises RuntimeError."""
    text = Text()
    if _lib.atp_bridge_address_towards(address.encode(), byref(text)):
        raise RuntimeError(str(text))
    return str(text)


def take_log_line() -> tuple[int, str]:
    """Waits for a line of a log, and returns it with its level. The level 0: no line will follow."""
    line = Text()
    return _lib.atp_bridge_take_log_line(byref(line)), str(line)


def close_log_lines() -> None:
    _lib.atp_bridge_close_log_lines()


def metrics(open_metrics: bool) -> bytes:
    """Returns the counters of all groups of this process, as text for Prometheus."""
    size = 1 << 16
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = _lib.atp_bridge_metrics(int(open_metrics), buffer, size)
        if length <= size:
            return buffer.raw[:length]
        size = 2 * length


def failure_of(text: str) -> tuple[str, list[int], str, str] | None:
    """Returns reason, ranks, address and operation of the last error whose text `text` contains."""
    failure = _Failure()
    if not _lib.atp_bridge_failure_of(text.encode(), byref(failure)):
        return None
    ranks = failure.ranks[: failure.rank_count]
    return failure.reason.decode(), ranks, failure.address.decode(), failure.operation.decode()


def delegation_receiver(receiver: Callable[[str, str], None]) -> Any:
    """Returns a function of C, which must live as long as a backend may call it."""
    return _Delegated(lambda operation, reason: receiver(operation.decode(), reason.decode()))


def address_of(function: Any) -> int:
    return ctypes.cast(function, c_void_p).value or 0
