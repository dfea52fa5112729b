# SPDX-License-Identifier: Apache-2.0
"""Sums the gradients of several workers in one process: with the state machines of libbench_accuracy, or as float32."""

import ctypes
import dataclasses

import torch

LANES = 352  # fit a packet of 1,500 bytes
USUAL_SCALE = 1e8


@dataclasses.dataclass(frozen=True)
class Form:
    """Format of the numbers in packets."""

    protocol: str | None = None  # "atp" or "switchml"; None: gradients are added as float32, without packets
    scaling: str = "fixed"
    lanes: str = "int32"
    scale: float = USUAL_SCALE

    @property
    def name(self):
        if self.protocol is None:
            return "float32"
        how = "dynamic" if self.scaling == "dynamic" else f"{self.scale:g}"
        return f"{self.protocol} {self.lanes} {how}"


FLOAT32 = Form()
FIXED = Form("atp")
DYNAMIC = Form("atp", "dynamic")
SHORTS = Form("atp", "dynamic", "int16")


class _Config(ctypes.Structure):
    _fields_ = [
        ("workers", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("scale", ctypes.c_double),
        ("switchml", ctypes.c_int32),
        ("dynamic", ctypes.c_int32),
        ("shorts", ctypes.c_int32),
    ]


class Counters(ctypes.Structure):
    """All fragments; fragments summed as floats; fragments that overflowed in the switch; bytes sent by one worker."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("fragments", "float_fragments", "overflows", "bytes")]


def load(path):
    library = ctypes.CDLL(path)
    library.accuracy_open.restype = ctypes.c_void_p
    library.accuracy_open.argtypes = [ctypes.POINTER(_Config)]
    library.accuracy_sum.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_void_p,
        ctypes.c_uint64,
    ]
    library.accuracy_count.argtypes = [ctypes.c_void_p, ctypes.POINTER(Counters)]
    library.accuracy_close.argtypes = [ctypes.c_void_p]
    return library


class Reducer:
    """Sums gradients. Use it as a context manager, or call close() at the end."""

    def __init__(self, library, form, workers):
        self._library = library
        self._workers = workers
        self._machines = None
        if form.protocol is not None:
            config = _Config(
                workers,
                LANES,
                form.scale,
                form.protocol == "switchml",
                form.scaling == "dynamic",
                form.lanes == "int16",
            )
            self._machines = library.accuracy_open(ctypes.byref(config))
            if not self._machines:
                raise RuntimeError(f"libbench_accuracy cannot create the state machines for {form}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._machines:
            self._library.accuracy_close(self._machines)
        self._machines = None

    def sum(self, gradients):
        """The sum of the rows of a float32 matrix with one row per worker."""
        if not self._machines:
            return gradients.sum(0)
        assert gradients.is_contiguous() and gradients.dtype == torch.float32
        sums = torch.empty_like(gradients[0])
        failed = self._library.accuracy_sum(
            self._machines, gradients.data_ptr(), self._workers, sums.data_ptr(), sums.numel()
        )
        if failed:
            raise RuntimeError("the state machines did not complete the sum")
        return sums

    def counters(self):
        counters = Counters()
        if self._machines:
            self._library.accuracy_count(self._machines, ctypes.byref(counters))
        return {name: getattr(counters, name) for name, _ in Counters._fields_}
