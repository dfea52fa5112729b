# SPDX-License-Identifier: Apache-2.0
"""What the package uses of PyTorch's process groups. It has two forms: with the library for this release of PyTorch
(_native.py), or without one (_fallback.py)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, Protocol, cast

import torch
import torch.distributed as dist

from . import _library
from .errors import Failure

RELEASE = ".".join(torch.__version__.split(".")[:2])
LIBRARY = _library.FOLDER / f"libatp_torch_{RELEASE}.so"
# "off": do without the library, to see how that is.
VARIABLE = "ATP_TORCH_LIBRARY"

Report = Callable[[str, str], None]


class Group(Protocol):
    """A group of this process."""

    @property
    def active(self) -> bool:
        """False after abort(), or after shutdown() has returned. Until then the group needs its store."""

    @property
    def backend(self) -> Any:
        """What PyTorch gets: a backend, or a process group in place of its own."""

    def shutdown(self) -> None:
        """Says goodbye to the other ranks, and ends the group."""

    def abort(self) -> None:
        """Ends the group and its operations in flight at once."""


class Backends(Protocol):
    """The functions of a group take None for the group of init_process_group(), and raise ValueError for a group of
    another backend."""

    def make_group(
        self,
        given: Any,
        gloo: Any,
        store: _library.Store,
        communicator: int,
        timeout_s: float,
        hosts_switch: bool,
        report: Report,
        /,
    ) -> Group:
        """Makes the group that PyTorch asks for with `given`.

        Args:
            gloo: a Gloo backend of the same ranks.
            communicator: its handle, which the group takes.
            timeout_s: of its operations.
            report: called with operation and reason, once for each pair that Gloo executes.
        """

    def counters(self, group: dist.ProcessGroup | None) -> tuple[dict[str, int], dict[str, int]]:
        """Returns the counters by name, and calls of Gloo by operation."""

    def failure(self, group: dist.ProcessGroup) -> Failure | None:
        """Returns the group's first failure."""

    def push(self, group: dist.ProcessGroup | None, key: int, tensor: torch.Tensor) -> None: ...

    def pull(self, group: dist.ProcessGroup | None, key: int, tensor: torch.Tensor) -> None: ...

    def scales_of(self, work: dist.Work) -> torch.Tensor | None:
        """Returns the scale of each cell of a work's elements; None: they were not sent at scales of their own."""

    def cell_of(self, work: dist.Work) -> int | None:
        """Returns the number of elements with one scale; None: they were not sent at scales of their own."""

    def dump_flight_records(self, stacks: bool, only_active: bool) -> bytes:
        """Raises RuntimeError if there is no recorder."""


def _choose() -> tuple[Backends, str | None]:
    """Returns also why the library is not in use; empty: there is none; None: it is. One that does not load was built
    for the release, but not for this build of PyTorch."""
    reason = ""
    if os.environ.get(VARIABLE) == "off":
        reason = f"{VARIABLE}=off"
    elif LIBRARY.exists():
        try:
            return cast(Backends, importlib.import_module("._native", __package__)), None
        except OSError as error:
            reason = f"it does not load: {error.__cause__ or error}"  # torch does not repeat what the loader said
    return cast(Backends, importlib.import_module("._fallback", __package__)), reason


backends, reason_without_library = _choose()


def has_library() -> bool:
    return reason_without_library is None
