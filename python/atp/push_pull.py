# SPDX-License-Identifier: Apache-2.0
"""Sums by key, with the interface of a parameter server.

A program pushes a gradient when it is ready, and pulls its sum when it needs the sum. In between it can compute. Every
rank pushes the same keys in the same order.
"""

from __future__ import annotations

import hashlib
import operator
from typing import SupportsIndex

import torch
import torch.distributed as dist

from ._backends import backends


def push(key: SupportsIndex | str, tensor: torch.Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Adds this rank's values to the key's sum of this round. Each push of a key begins its next round.

    Returns when the values are copied; the network sums them while the program continues. If the previous round of the
    key is still in flight, the call waits for it, because a key has one sum at a time.

    Args:
        key: an integer from 0 to `2**64 - 1`, or a name.
        tensor: a tensor in CPU memory, with floats of 16 to 64 bits or integers of 32 or 64 bits. A key keeps the
            size and type of its first push.
        group: a group with the backend "atp". Default: the group of init_process_group().

    Raises:
        TypeError: keys do not support this kind of tensor, or the key is neither a number nor a name.
        ValueError: the group has another backend.
        torch.distributed.DistBackendError: size or type differs from the key's, or the previous round failed.
    """
    backends.push(group, _number_of(key), tensor)


def pull(key: SupportsIndex | str, tensor: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """Waits for the sum of the last push of this key over all ranks, and copies it into `tensor`, which it returns.

    Args:
        key: an integer from 0 to `2**64 - 1`, or a name.
        tensor: a tensor in CPU memory, of the size and type that were pushed.
        group: a group with the backend "atp". Default: the group of init_process_group().

    Raises:
        TypeError: keys do not support this kind of tensor, or the key is neither a number nor a name.
        ValueError: the group has another backend.
        torch.distributed.DistBackendError: this rank never pushed the key, or pushed another size or type; or the
            sum failed, because a rank did not push the key within the group's timeout, or its push differed.
    """
    backends.pull(group, _number_of(key), tensor)
    return tensor


def _number_of(key: SupportsIndex | str) -> int:
    if isinstance(key, str):
        return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")
    number = operator.index(key)
    if not 0 <= number < 2**64:
        raise TypeError(f"the key {number} is not from 0 to 2**64 - 1")
    return number
