# SPDX-License-Identifier: Apache-2.0
"""Sums by keys, as programs for parameter servers have them.

A program pushes a gradient when it is there, and pulls its sum when that is needed; in between it computes what it
likes. Every rank pushes the same keys in the same order.
"""

from __future__ import annotations

import hashlib
import operator
from typing import SupportsIndex

import torch
import torch.distributed as dist

from . import _C


def push(key: SupportsIndex | str, tensor: torch.Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Adds this rank's values to the key's sum of this round.

    Returns when the values have been copied; the network sums them while the program goes on. Where the round before is
    still under way, waits for it: a key has one sum at a time.

    Args:
        key: an integer from 0 to 2**64 - 1, or a name.
        tensor: of the CPU; floats of 16 to 64 bits or integers of 32 or 64. A key keeps the size and type of its first
            push.
        group: made with the backend "atp". Default: the group of init_process_group().

    Raises:
        TypeError: the tensor is of a kind that keys cannot hold, or the key is neither a number nor a name.
        ValueError: the group is of another backend.
        torch.distributed.DistBackendError: size or type is not that of the key, or the round before has failed.
    """
    _C.push(_backend_of(group), _number_of(key), tensor)


def pull(key: SupportsIndex | str, tensor: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """Waits for the sum of the last push of this key over all ranks, and copies it into `tensor`, which it returns.

    Args:
        key: as in push().
        tensor: of the size and type that were pushed.
        group: as in push().

    Raises:
        TypeError, ValueError: as push().
        torch.distributed.DistBackendError: this rank never pushed the key, or with another size or type; or the sum
            failed, since a rank did not push it within the group's timeout or pushed something else.
    """
    _C.pull(_backend_of(group), _number_of(key), tensor)
    return tensor


def _backend_of(group: dist.ProcessGroup | None) -> object:
    backend = (group or dist.distributed_c10d._get_default_group())._get_backend(torch.device("cpu"))
    return getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL puts a wrapper around it


def _number_of(key: SupportsIndex | str) -> int:
    if isinstance(key, str):
        return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")
    return operator.index(key)
