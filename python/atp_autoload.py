# SPDX-License-Identifier: Apache-2.0
"""Makes the backend "atp" known to torch.distributed, so that a script needs no `import atp`.

torch finds these functions by entry points: those of `torch.backends` run at the end of `import torch` (from 2.5 on), and
those of `torch.distributed.backends` when a program names the backend (from 2.14 on). Therefore this module lies beside
the package: it imports neither that nor a native library, which only the first group needs. For torch it also imports
nothing on its own, since torch may still be loading when it loads this.
"""

from __future__ import annotations

import logging
import os
from typing import Any


class _Process:
    """What this process has done."""

    registered = False
    replaced = False  # a name, by ATP_AS
    reported = False


def autoload() -> None:
    """Calls register() without ever raising, because `import torch` would fail."""
    try:
        register()
    except Exception:
        logging.getLogger("atp").warning("the backend 'atp' is not available", exc_info=True)


def register() -> None:
    """Registers the backend, once in a process. With ATP_AS, programs that ask for Gloo get it, too."""
    import torch.distributed as dist

    if _Process.registered or not dist.is_available():
        return
    dist.Backend.register_backend("atp", _create, extended_api=True, devices=["cpu", "cuda"])
    _Process.registered = True
    if os.environ.get("ATP_AS"):
        _replace(os.environ["ATP_AS"])


def _create(given: Any, options: Any) -> Any:
    """Makes the backend of a group. The first call imports the package, and with it the native libraries."""
    from atp import _log, backend

    created = backend.create_backend(given, options)
    if _Process.replaced and not _Process.reported and given.group_rank == 0:
        _log.logger.warning("%s name=gloo backend=atp", _log.BACKEND_REPLACED)
        _Process.reported = True
    return created


def _replace(accepted: str) -> None:
    """Makes torch read the name `gloo` as `atp`.

    Every name of a backend that a program gives, alone or as `cpu:gloo`, passes through this constructor. The class
    ProcessGroupGloo does not, so what creates one directly, as ATP does for its own use, still gets Gloo."""
    from torch.distributed.distributed_c10d import Backend, BackendConfig

    parse = Backend.__new__

    def parse_for_atp(cls: type, name: str) -> Any:
        if accepted != "gloo":
            raise ValueError(f"ATP_AS={accepted!r}: use 'gloo'")
        value = parse(cls, name)
        if value == Backend.UNDEFINED and set(BackendConfig(value).get_device_backend_map().values()) == {"atp"}:
            value = Backend.GLOO  # what torch chooses on this machine if the program gives no name
        if value != Backend.GLOO:
            return value
        _Process.replaced = True
        return "atp"

    Backend.__new__ = parse_for_atp  # type: ignore[method-assign,assignment]
