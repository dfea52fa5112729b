# SPDX-License-Identifier: Apache-2.0
"""Sums the gradients of several workers in one process: with state machines, by Gloo, or as float32."""

import ctypes
import dataclasses

import torch
from gloo import Gloo

LANES = 352  # fit a packet of 1,500 bytes
USUAL_SCALE = 1e8
# By number, as in libbench_accuracy.
LANE_TYPES = ("int32", "int16", "auto", "int8")
ELEMENT_TYPES = {torch.float32: 0, torch.float16: 2, torch.bfloat16: 3}


@dataclasses.dataclass(frozen=True)
class Form:
    """Format of the numbers in packets."""

    protocol: str | None = None  # "atp", "switchml" or "gloo"; None: gradients are added as float32, without packets
    scaling: str = "fixed"
    lanes: str = "int32"  # with gloo: the type in which the hook sends
    scale: float = USUAL_SCALE
    feedback: bool = False  # each worker adds to its gradient what rounding took away one step before

    @property
    def name(self):
        if self.protocol is None:
            return "float32"
        if self.protocol == "gloo":
            return f"gloo {self.lanes}"
        how = "dynamic" if self.scaling == "dynamic" else f"{self.scale:g}"
        return f"{self.protocol} {self.lanes} {how}" + (", error feedback" if self.feedback else "")


FLOAT32 = Form()
FIXED = Form("atp")
DYNAMIC = Form("atp", "dynamic")
SHORTS = Form("atp", "dynamic", "int16")
BYTES = Form("atp", "dynamic", "int8")
FEEDBACK = Form("atp", "dynamic", "int8", feedback=True)
GLOO_HALF = Form("gloo", lanes="float16")
GLOO_FP8 = Form("gloo", lanes="float8")


class _Config(ctypes.Structure):
    _fields_ = [
        ("workers", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("scale", ctypes.c_double),
        ("switchml", ctypes.c_int32),
        ("dynamic", ctypes.c_int32),
        ("lane_type", ctypes.c_int32),
        ("type", ctypes.c_int32),
    ]


class Counters(ctypes.Structure):
    """All fragments; fragments summed as floats; fragments that overflowed in the switch; bytes sent by one worker."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("fragments", "float_fragments", "overflows", "bytes")]


def load(path):
    library = ctypes.CDLL(path)
    library.accuracy_open.restype = ctypes.c_void_p
    library.accuracy_open.argtypes = [ctypes.POINTER(_Config)]
    library.accuracy_sum.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
    library.accuracy_scales.restype = ctypes.c_uint64
    library.accuracy_scales.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
    library.accuracy_count.argtypes = [ctypes.c_void_p, ctypes.POINTER(Counters)]
    library.accuracy_close.argtypes = [ctypes.c_void_p]
    return library


def open_reducer(library, form, workers, type=torch.float32):
    """The reducer of a form. Each has sum(), counters() and close(), and is a context manager that closes it."""
    if form.protocol is None:
        return Floats()
    if form.protocol == "gloo":
        return GlooHook(form, workers)
    reducer = Machines(library, form, workers, type)
    return Feedback(reducer) if form.feedback else reducer


class Reducer:
    """Sums gradients."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Frees what the reducer holds."""

    def sum(self, gradients):
        """The sum of the rows of a matrix with one row per worker, as they arrive at each worker."""
        raise NotImplementedError

    def counters(self):
        return dict.fromkeys((name for name, _ in Counters._fields_), 0)


class Floats(Reducer):
    """Adds float32 in the order of the workers."""

    def sum(self, gradients):
        return gradients.sum(0)


class GlooHook(Reducer):
    """Gloo's sums in a shorter type, as hooks of DistributedDataParallel use them."""

    def __init__(self, form, workers):
        self._workers = workers
        self._group = Gloo(workers)
        self._sums = {"float16": self._half, "float8": self._group.sum_in_eights}[form.lanes]

    def _half(self, gradients):
        return self._group.sum((gradients / self._workers).half()).float() * self._workers

    def sum(self, gradients):
        return self._sums(gradients)


class Feedback(Reducer):
    """Adds the rounding error of each step to the gradients of the next one, as atp.error_feedback_hook() does."""

    def __init__(self, machines):
        self._machines = machines
        self._errors = None

    def close(self):
        self._machines.close()

    def counters(self):
        return self._machines.counters()

    def sum(self, gradients):
        from atp.error_feedback import rounding_error

        wanted = gradients if self._errors is None else gradients + self._errors
        total = self._machines.sum(wanted)
        scales = self._machines.scales()
        self._errors = torch.stack([rounding_error(own, scales) for own in wanted])
        return total


class Machines(Reducer):
    """All workers, their switch and their server: the state machines of libbench_accuracy."""

    def __init__(self, library, form, workers, type):
        self._library = library
        self._workers = workers
        self._type = type
        self._elements = 0
        lane_type = LANE_TYPES.index(form.lanes)
        config = _Config(
            workers,
            LANES,
            form.scale,
            form.protocol == "switchml",
            form.scaling == "dynamic",
            lane_type,
            ELEMENT_TYPES[type],
        )
        self._machines = library.accuracy_open(ctypes.byref(config))
        if not self._machines:
            raise RuntimeError(f"libbench_accuracy cannot create the state machines for {form}")

    def close(self):
        if self._machines:
            self._library.accuracy_close(self._machines)
        self._machines = None

    def sum(self, gradients):
        assert gradients.is_contiguous() and gradients.dtype == self._type and len(gradients) == self._workers
        sums = torch.empty_like(gradients[0])
        self._elements = sums.numel()
        if self._library.accuracy_sum(self._machines, gradients.data_ptr(), sums.data_ptr(), self._elements):
            raise RuntimeError("the state machines did not complete the sum")
        return sums

    def scales(self):
        """The scale of each cell in the last sum. The scaling is dynamic."""
        scales = torch.empty(self._elements)
        return scales[: self._library.accuracy_scales(self._machines, scales.data_ptr(), len(scales))]

    def counters(self):
        counters = Counters()
        self._library.accuracy_count(self._machines, ctypes.byref(counters))
        return {name: getattr(counters, name) for name, _ in Counters._fields_}
