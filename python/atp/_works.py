# SPDX-License-Identifier: Apache-2.0
"""Works of a group without the library for PyTorch: python/csrc/{work,completions,staging}.cc in Python."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from . import _calls

# Python runs signal handlers between calls of C.
_SIGNAL_INTERVAL_S = 0.1
# Longer than a callback that only computes usually takes, so that such callbacks keep the order of operations.
_LONGEST_TURN_S = 0.005
_LONGEST_WAIT_S = 3600.0  # threads wait again after it
_NO_TIMEOUT = timedelta(0)
_callbacks = threading.local()  # `depth`: calls of _complete() on this thread


@dataclass
class Staged:
    """One tensor of the caller, with the copies of it that the network reads and writes."""

    tensor: torch.Tensor
    memory: torch.Tensor  # its elements in logical order, on its device
    host: torch.Tensor  # memory that the network reads and writes: `memory` itself, or page-locked memory
    divisor: int = 1  # the sum is divided by it, rounding toward zero


def buffers_of(staged: Sequence[Staged]) -> list[int]:
    """For _calls.begin()."""
    buffers: list[int] = []
    for each in staged:
        address = each.host.data_ptr()
        buffers += (address, address, each.host.numel())
    return buffers


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def stage(tensor: torch.Tensor, dtype: torch.dtype) -> Staged:
    """A tensor that the network reads and writes as elements of `dtype`."""
    memory = tensor
    if tensor.dtype != dtype or not _is_plain(tensor):
        if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)):
            raise RuntimeError("atp: elements of this tensor share memory, as after expand(): pass tensor.clone()")
        with torch.no_grad():
            memory = torch.empty(tensor.shape, dtype=dtype, device=tensor.device).copy_(tensor)
    return Staged(tensor, memory, memory if memory.is_cpu else _on_host(memory))


def _on_host(memory: torch.Tensor) -> torch.Tensor:
    """The memory itself on the CPU, otherwise a copy. Waits for the current stream."""
    if memory.is_cpu:
        return memory
    with torch.no_grad():
        return torch.empty(memory.shape, dtype=memory.dtype, pin_memory=True).copy_(memory)


def input_on_host(tensor: torch.Tensor) -> torch.Tensor:
    return _on_host(tensor if _is_plain(tensor) else tensor.detach().resolve_neg().resolve_conj().contiguous())


def chained(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The elements of contiguous tensors one behind the other; of one tensor, its own memory."""
    return tensors[0] if len(tensors) == 1 else torch.cat([tensor.view(-1) for tensor in tensors])


def stage_outputs(outputs: Sequence[torch.Tensor]) -> list[Staged]:
    """Tensors that the network only writes, one behind the other; a single one in its own memory, if possible."""
    first = outputs[0]
    if len(outputs) == 1 and first.is_cpu and _is_plain(first):
        return [Staged(first, first, first)]
    lengths = [tensor.numel() * tensor.element_size() for tensor in outputs]
    whole = torch.empty(sum(lengths), dtype=torch.uint8, pin_memory=not first.is_cpu)
    staged = []
    for tensor, part in zip(outputs, whole.split(lengths)):
        memory = part.view(tensor.dtype).view(tensor.shape)
        staged.append(Staged(tensor, memory, memory))
    return staged


def _deliver(staged: Sequence[Staged]) -> None:
    """Returns when the callers' tensors hold the results."""
    changed = [each for each in staged if each.host is not each.tensor or each.divisor != 1]
    if not changed:
        return
    # No gradients, and tensors made by inference_mode() are writable.
    with torch.inference_mode(), _stream_of(changed) as stream:
        for each in changed:
            if each.divisor != 1:
                each.host.div_(each.divisor, rounding_mode="trunc")
                each.divisor = 1  # after Ctrl-C in this function, another thread calls it again
            if each.memory is not each.host:
                each.memory.copy_(each.host, non_blocking=True)
            if each.tensor is not each.memory:
                each.tensor.copy_(each.memory)
        if stream is not None:
            stream.synchronize()


@contextlib.contextmanager
def _stream_of(staged: Sequence[Staged]) -> Any:
    """A stream of its own, so that a wait for it does not wait for other streams' work; None: all are on the CPU."""
    devices = _devices_of(staged)
    if not devices:
        yield None
        return
    stream = torch.cuda.Stream(devices[0])
    with torch.cuda.stream(stream):
        yield stream


def _devices_of(staged: Sequence[Staged]) -> list[Any]:
    return list({each.tensor.device: None for each in staged if each.tensor.is_cuda})


class Completions:
    """Threads that finish works in the order of their operations, and run the callbacks of futures.

    If callbacks take longer than 5 ms, another thread finishes the next work: one of them may wait for the future of a
    later work. stop() returns after every work that was posted before it; after stop(),
    post() finishes the work on the calling thread. In a callback, stop() does not wait for works, because one of them
    may wait for this callback."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._works: deque[NetworkWork] = deque()
        self._running = 0
        self._turn = 0.0  # when a thread may take the next work although another one is not finished
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def post(self, work: NetworkWork) -> None:
        with self._changed:
            if not self._stopping:
                self._works.append(work)
                if self._running == len(self._threads):
                    self._add_thread()
                self._changed.notify()
                return
        work.finish()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            threads, self._threads = self._threads, []
            self._changed.notify_all()
        for thread in threads:
            if not getattr(_callbacks, "depth", 0) and thread is not threading.current_thread():
                thread.join()

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._run, name="atp-completions", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _next(self) -> NetworkWork | None:
        """Waits for a work and its turn, under the lock."""
        while self._works or not self._stopping:
            left = self._turn - time.monotonic() if self._running else 0
            if not self._works:
                self._changed.wait()
            elif left > 0:
                self._changed.wait(min(left, _LONGEST_WAIT_S))
            else:
                return self._works.popleft()
        return None

    def _run(self) -> None:
        while True:
            with self._changed:
                work = self._next()
                if work is None:
                    return
                self._running += 1
                self._turn = math.inf  # one thread at a time waits for an operation
                # Keep one idle thread: it begins the next work if this one takes longer than its turn.
                if self._running == len(self._threads) and not self._stopping:
                    self._add_thread()
            work.wait_for_operation()
            with self._changed:
                self._turn = time.monotonic() + _LONGEST_TURN_S
                self._changed.notify_all()
            work.finish()
            work = None  # it may hold the last reference to the group
            with self._changed:
                self._running -= 1
                self._changed.notify()


class NetworkWork(dist.Work):
    """One operation in the network as a work of PyTorch, with the rules of python/csrc/work.h.

    The group keeps it until its operation is done, and with it the memory of the tensors."""

    def __init__(
        self,
        staged: list[Staged],
        inputs: Sequence[torch.Tensor],
        done: Callable[[NetworkWork, Exception | None], None],
        completions: Completions,
    ) -> None:
        """
        Args:
            inputs: memory that the network reads.
            done: called once, when the operation is done.
        """
        super().__init__()
        self._staged, self._inputs, self._done, self._completions = staged, inputs, done, completions
        self._handle: Any = None
        self._posted = False
        self._lock = threading.Lock()
        self._settled = False
        self._error: Exception | None = None
        self._begun: Any = None  # a future whose result makes `_future` complete; None: there is none, or it has one
        self._future: Any = None

    def watch(self, handle: _calls.Handle, awaited: bool) -> None:
        """Call once, when the operation has begun.

        Args:
            awaited: the caller waits for the work at once. No other thread then takes part, unless wait() ends early or
                the future is requested.
        """
        self._handle = handle
        if not awaited:
            self._need_future()

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        try:
            self._wait_up_to(timeout)
        except BaseException:
            self._need_future()
            raise
        if self._future is not None:
            self.finish()
        if self._error is not None:
            raise self._error
        return True

    def _wait_up_to(self, timeout: timedelta) -> None:
        end = time.monotonic() + timeout.total_seconds() if timeout > _NO_TIMEOUT else None
        while not self._settled and not self._is_done(_SIGNAL_INTERVAL_S):
            if end is not None and time.monotonic() >= end:
                raise self._handle.give_up(timeout // timedelta(milliseconds=1))

    def wait_for_operation(self) -> None:
        while not self._settled and not self._is_done(_LONGEST_WAIT_S):
            pass

    def _is_done(self, seconds: float) -> bool:
        """Waits up to `seconds`, and settles the work when its operation is done."""
        try:
            done = self._handle.wait(seconds)
        except dist.DistBackendError as error:
            self._settle(error)
            return True
        if done:
            self._settle(None)
        return done

    def _settle(self, error: Exception | None) -> None:
        with self._lock:
            if self._settled:
                return
            if error is None:
                try:
                    _deliver(self._staged)
                except Exception as failed:
                    error = failed
            self._error = error
            self._settled = True
        self._done(self, error)

    def finish(self) -> None:
        """Completes the future, if there is one. A second thread waits until that is so, but not for callbacks, which
        may wait for this work too."""
        self.wait_for_operation()
        with self._lock:
            begun, self._begun = self._begun, None
        if begun is not None:
            _callbacks.depth = getattr(_callbacks, "depth", 0) + 1
            try:
                with _stream_of(self._staged):  # the future takes the current stream for the one that made its value
                    begun.set_result(None)
            finally:
                _callbacks.depth -= 1
        elif self._future is not None:
            with contextlib.suppress(Exception):
                self._future.wait()

    def _value(self, _: object) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self.result()

    def _need_future(self) -> None:
        with self._lock:
            posted, self._posted = self._posted, True
        if not posted:
            self._completions.post(self)

    def get_future(self) -> Any:
        with self._lock:
            if self._future is None:
                self._begun = torch.futures.Future(devices=_devices_of(self._staged))
                # A future whose callback raises has an error for C++ too; set_exception() is only for Python.
                self._future = self._begun.then(self._value)
            settled = self._settled
        if settled:
            self.finish()
        else:
            self._need_future()
        return self._future

    def is_completed(self) -> bool:
        if self._settled:
            self.finish()
            return True
        self._need_future()
        return False

    def is_success(self) -> bool:
        return self._settled and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[torch.Tensor]:
        return [each.tensor for each in self._staged]


def hide_from_compilers(owner: type) -> None:
    """C++ calls these methods. While torch.compile runs a model, it would trace them, with their locks and calls of C.
    The public way, torch.compiler.disable(), imports the compiler."""
    with contextlib.suppress(ImportError, AttributeError, TypeError):  # of a newer PyTorch
        frames = importlib.import_module("torch._C._dynamo.eval_frame")
        for function in vars(owner).values():
            code = getattr(function, "__code__", None)
            if code is None:
                continue
            if hasattr(frames, "set_code_exec_strategy"):
                skip = frames._FrameAction.SKIP
                frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))
            else:  # until 2.6
                frames.skip_code(code)


# Works that only C++ still refers to.
_held: set[NetworkWork] = set()


def _references_to_part(work: NetworkWork) -> int:
    """How often the C++ part of a work is referred to: once by `work`, otherwise by C++. 0: it was not made, because of
    Ctrl-C.

    PyTorch does not tell. pybind11 keeps the part's address behind the header of the object, and the part has this count
    behind the pointer to its virtual methods."""
    part = ctypes.c_void_p.from_address(id(work) + object.__basicsize__).value
    return ctypes.c_uint32.from_address(part + ctypes.sizeof(ctypes.c_void_p)).value if part else 0


def _hold_for_cpp(work: NetworkWork) -> None:
    """Keeps a work that no code in Python refers to for as long as C++ does, or until the next work ends."""
    _held.difference_update([each for each in tuple(_held) if _references_to_part(each) == 1])
    if _references_to_part(work) > 1:
        _held.add(work)


# Until 2.6, a work that C++ refers to loses its object in Python when nothing in Python refers to that. getFuture() then
# fails, and wait() never returns. (Versions of PyTorch compare as versions with strings.)
if torch.__version__ < "2.7":
    NetworkWork.__del__ = _hold_for_cpp  # type: ignore[attr-defined]

hide_from_compilers(NetworkWork)
