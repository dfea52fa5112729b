# SPDX-License-Identifier: Apache-2.0
"""A communication hook of DistributedDataParallel that makes up for the rounding of narrow lanes.

    model = DistributedDataParallel(model)
    model.register_comm_hook(atp.ErrorFeedback(), atp.error_feedback_hook)

A rank rounds each gradient to a multiple that depends on its lanes. The hook keeps what rounding took away, and adds it
to the gradient of the next step. So no part of a gradient is lost for good, but parts arrive some steps later.
"""

# DistributedDataParallel reads the annotations of a hook as types, so they may not be texts.
from typing import Optional

import torch
import torch.distributed as dist

from . import _library
from ._backends import backends

# A larger number of units is sent as a float32 without rounding.
_INTEGERS = 2.0**31


class ErrorFeedback:
    """State of error_feedback_hook(): for each bucket of gradients, what rounding took away in the last step.

    It takes the memory of one float32 for each gradient. Each model needs a state of its own. The errors are not part
    of a checkpoint: after a restart they begin with zero.

    Args:
        group: the group that sums the gradients. Default: that of init_process_group().
    """

    def __init__(self, group: Optional[dist.ProcessGroup] = None) -> None:
        self.group = group
        self._errors: dict[int, tuple[tuple[int, ...], torch.Tensor]] = {}

    def error_of(self, bucket: dist.GradBucket) -> torch.Tensor:
        """Returns the error of the bucket, for use in place. It is zero if the bucket has other parameters than before:
        DistributedDataParallel fills its buckets again after the first step, in another order."""
        gradients = bucket.buffer()
        parameters = tuple(id(parameter) for parameter in bucket.parameters())
        known, error = self._errors.get(bucket.index(), ((), gradients))
        if known != parameters:
            error = torch.zeros_like(gradients, dtype=torch.float32)
            self._errors[bucket.index()] = (parameters, error)
        return error


def rounding_error(values: torch.Tensor, scales: torch.Tensor, cell: int = _library.ELEMENTS_OF_CELL) -> torch.Tensor:
    """Returns `values` less the multiples to which a rank rounds them.

    Numbers that do not fit 32 bits at their scale, infinities and NaN travel unrounded; their error is 0.

    Args:
        values: one dimension, float32.
        scales: for each cell of the values, from the first one on, the inverse of the multiple.
        cell: number of values that have one scale. Default: that of narrow lanes.
    """
    whole = len(values) // cell * cell
    error = torch.empty_like(values)
    scales = scales.to(values.device)
    parts = [(slice(0, whole), scales[: whole // cell, None], (-1, cell)), (slice(whole, None), scales[-1:], (-1,))]
    for part, scale, shape in parts:
        units = values[part].view(shape) * scale
        lost = (units - units.round()).masked_fill_(~(units.abs() < _INTEGERS), 0)
        error[part] = (lost / scale).view(-1)
    return error


def error_feedback_hook(state: ErrorFeedback, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients of a bucket, and makes up for rounding in the next step.

    Use it with `lanes="int8"` and dynamic scaling. All ranks register it.

    Raises:
        ValueError: the gradients are not sent at dynamic scales, because the group has another backend or the fixed
            scale, or Gloo sums this type.
    """
    gradients = bucket.buffer()
    error = state.error_of(bucket)
    corrected = error.add_(gradients)  # the same memory holds the new error later
    gradients.copy_(corrected)
    work = dist.all_reduce(gradients, op=dist.ReduceOp.AVG, group=state.group, async_op=True)
    if backends.scales_of(work) is None:
        raise ValueError(
            "error_feedback_hook: the gradients do not travel at dynamic scales: use a group of the backend 'atp', "
            "scaling='dynamic', and gradients of float32, float16 or bfloat16"
        )

    def keep_error(_: object) -> torch.Tensor:
        scales, cell = backends.scales_of(work), backends.cell_of(work)
        assert scales is not None and cell is not None
        sent = corrected.to(gradients.dtype).float()
        lost = (corrected - sent).add_(rounding_error(sent, scales, cell))
        error.copy_(lost.nan_to_num_(nan=0, posinf=0, neginf=0))
        return gradients

    return work.get_future().then(keep_error)
