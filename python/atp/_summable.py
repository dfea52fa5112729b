# SPDX-License-Identifier: Apache-2.0
"""Which of PyTorch's tensors the network can sum, and which the ranks can fold: the rules of python/csrc/summable.cc.

Every rank that makes the same call must get the same answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from . import _calls

# numeric::FoldType and, up to int64, numeric::ElementType.
_FOLD_TYPES = {
    dtype: number
    for number, dtype in enumerate(
        (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64)
        + (torch.int8, torch.uint8, torch.int16, torch.bool)
    )
}
ELEMENT_TYPES = {dtype: number for dtype, number in _FOLD_TYPES.items() if number < 6}
_NARROW = (torch.int8, torch.uint8, torch.int16)

SUM, AVG, SCALED, FOLDED_SUM = 0, 1, 2, 9  # comm::Reduction and numeric::FoldOperation
_NAMES = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
_SUMS = {"SUM": SUM, "AVG": AVG, "PREMUL_SUM": SCALED}
_FOLDS = {"MIN": 3, "MAX": 4, "PRODUCT": 5, "BAND": 6, "BOR": 7, "BXOR": 8, "SUM": FOLDED_SUM}
_OF_BITS = ("BAND", "BOR", "BXOR")


class Operation(NamedTuple):
    """A ReduceOp.

    Attributes:
        sum: how the network sums; None: it is no sum.
    """

    name: str
    sum: int | None = None
    factor: float = 1

    def summed_type(self, dtype: torch.dtype) -> torch.dtype:
        """The type in which the network sums."""
        return torch.int32 if self.sum == AVG and dtype in _NARROW else dtype


# By the number of the operation, which is also its hash.
_PLAIN = {
    int(getattr(dist.ReduceOp, name)): Operation(name, _SUMS.get(name))
    for name in _NAMES
    if name != "PREMUL_SUM" and hasattr(dist.ReduceOp, name)
}


def operation_of(reduce_op: Any) -> Operation:
    if plain := _PLAIN.get(hash(reduce_op)):
        return plain
    number, factor = reduce_op.__getstate__()
    if factor is None:
        return _PLAIN.get(int(number), Operation("unknown operation"))
    return Operation("PREMUL_SUM", SCALED, float(factor))


def lies_in_memory(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and (tensor.is_cpu or tensor.is_cuda)


def obstacle_of_copies(tensors: Sequence[torch.Tensor]) -> str:
    """Why the network cannot copy these tensors; empty if it can."""
    if not tensors:
        return "no tensors"
    first = tensors[0]
    for tensor in tensors:
        if not lies_in_memory(tensor):
            return "tensor not dense on CPU or CUDA"
        if tensor is first:
            continue
        if tensor.device != first.device:
            return "tensors on several devices"
        if tensor.dtype != first.dtype:
            return "tensors of several types"
    return ""


def name_of(tensor: torch.Tensor) -> str:
    """The name of the type in PyTorch's C++: "Byte"."""
    return str(tensor.type()).rpartition(".")[2].removesuffix("Tensor")


def obstacle(tensors: Sequence[torch.Tensor], operation: Operation) -> str:
    """Why the network cannot sum these tensors; empty if it can."""
    if why := obstacle_of_copies(tensors):
        return why
    dtype = tensors[0].dtype
    if operation.sum is None:
        return operation.name
    if dtype is torch.float64:
        return "float64, which the network rounds to float32"
    if operation.summed_type(dtype) not in ELEMENT_TYPES:
        return f"{name_of(tensors[0])} tensors"
    if operation.sum == SCALED and not dtype.is_floating_point:
        return f"PREMUL_SUM of {name_of(tensors[0])} tensors"
    return ""


def obstacle_of_parts(tensors: Sequence[torch.Tensor], operation: Operation) -> str:
    """Why the network cannot sum these tensors for a rank each; empty if it can."""
    if why := obstacle(tensors, operation):
        return why
    if operation.sum == AVG and not tensors[0].dtype.is_floating_point:
        return f"average of {name_of(tensors[0])} tensors"
    return ""


class Fold(NamedTuple):
    dtype: int
    operation: int
    fits: bool  # False: the tensors are too large


def fold_of(tensors: Sequence[torch.Tensor], operation: Operation) -> Fold | None:
    """How the ranks fold tensors that the network cannot sum; None: they cannot."""
    if obstacle_of_copies(tensors):
        return None
    dtype = tensors[0].dtype
    number = _FOLDS.get(operation.name)
    if operation.sum is not None and dtype is torch.float64:
        number = FOLDED_SUM  # an average and a PREMUL_SUM become sums of parts
    bits_of_floats = operation.name in _OF_BITS and dtype.is_floating_point
    if number is None or dtype not in _FOLD_TYPES or bits_of_floats:
        return None
    length = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return Fold(_FOLD_TYPES[dtype], number, length <= _calls.LONGEST_FOLD)


def reason_of(why: str, fold: Fold | None) -> str:
    """Why such tensors go to Gloo, if `why` is what keeps the network from summing them."""
    return why if fold is None else f"more than {_calls.LONGEST_FOLD >> 10} KiB: {why}"
