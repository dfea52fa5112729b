# SPDX-License-Identifier: Apache-2.0
"""Why an operation failed, as objects."""

from __future__ import annotations

from typing import NamedTuple

import torch.distributed as dist

from . import _library


class Failure(NamedTuple):
    """Why an operation failed, for programs.

    Attributes:
        reason: one of the [reasons](errors.md#reasons), such as "refused".
        ranks: the ranks at fault, by their numbers in the group.
        address: the switch, server or name at fault; None: there is none, or it is not known.
        operation: what failed: an operation such as "all_reduce", or "join" and "rendezvous" while a group forms.
    """

    reason: str
    ranks: list[int]
    address: str | None
    operation: str


class Error(dist.DistBackendError):
    """A group did not form, or an operation failed without the library for this PyTorch. With the library, an operation
    raises a plain `DistBackendError`, which `atp.error_of()` knows.

    Attributes:
        reason, ranks, address, operation: as in `atp.Failure`.
    """

    def __init__(self, text: str, failure: Failure) -> None:
        super().__init__(text)
        self.failure = failure
        self.reason, self.ranks, self.address, self.operation = failure


Error.__module__ = "atp"  # its name in a traceback


def failure_in(text: str) -> Failure | None:
    """Returns what the last error is about whose text `text` contains."""
    parts = _library.failure_of(text)
    if parts is None:
        return None
    reason, ranks, address, operation = parts
    return Failure(reason, ranks, address or None, operation)


def error_from(text: str) -> dist.DistBackendError:
    """Returns the exception for a text of the library."""
    failure = failure_in(text)
    return dist.DistBackendError(text) if failure is None else Error(text, failure)
