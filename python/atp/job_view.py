# SPDX-License-Identifier: Apache-2.0
"""What a job sees of itself: its counters, and why an operation failed."""

from __future__ import annotations

from dataclasses import dataclass

import torch.distributed as dist

from ._backends import backends
from ._counters import RankCounters
from .errors import Error, Failure, failure_in


@dataclass(frozen=True)
class Counters(RankCounters):
    """What a group has done on this rank since it formed.

    Attributes:
        gloo: for each operation that Gloo executed, how often.
    """

    gloo: dict[str, int]


def counters(group: dist.ProcessGroup | None = None) -> Counters:
    """Returns what the group has done on this rank. Counters of datagrams are at most 0.1 s old.

    Args:
        group: a group with the backend "atp". Default: the group of init_process_group().

    Raises:
        ValueError: the group has another backend.
        torch.distributed.DistBackendError: the group was shut down.
    """
    own, gloo = backends.counters(group)
    return Counters(**own, gloo=gloo)


def error_of(failed: BaseException | dist.ProcessGroup) -> Failure | None:
    """Returns why an operation of this package failed.

    An exception may also have one of ATP as its cause or context. If the exception comes from Gloo or from elsewhere,
    or if 64 more errors were raised since, the result is None.

    Args:
        failed: an exception, or a group with the backend "atp", of which the first failure counts.

    Raises:
        ValueError: the group has another backend.
    """
    if not isinstance(failed, BaseException):
        return backends.failure(failed)
    seen: set[int] = set()
    error: BaseException | None = failed
    while error is not None and id(error) not in seen:
        if found := error.failure if isinstance(error, Error) else failure_in(str(error)):
            return found
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
