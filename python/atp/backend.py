# SPDX-License-Identifier: Apache-2.0
"""Makes process groups: reads the configuration, finds or starts the switch, and holds what must outlive a group."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from . import _C
from .options import Options, Settings, settle

logger = logging.getLogger("atp")

# A switch that is there answers at once; one that is just being started may take this long.
_REACH_S = 30.0
_ADDRESS_KEY = "switch-address"
_PROBLEM = "!"  # before what went wrong, in place of an address


class _Process:
    """What the groups of this process share."""

    switch: _C.SwitchNode | None = None
    address: str | None = None
    options: Options = Options()
    backends: list[Any] = []


def create_backend(given: Any, options: Options | None) -> Any:
    """Called by init_process_group() and new_group(), on every rank of the group.

    Raises:
        ValueError: a setting is wrong.
        torch.distributed.DistBackendError: the switch or a rank is missing.
    """
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"pg_options of the backend 'atp' are atp.Options, not {type(options).__name__}")
    if options is not None and not _active_backends():
        _Process.options = options  # new_group() passes none on: what the first group was told holds for those, too
    settings = settle(options or _Process.options, given.timeout)
    timeout = timedelta(seconds=settings.timeout_s)
    rank, size = given.group_rank, given.group_size
    try:
        store = _fresh_store(given.store, rank)
        address, hosts = _find_switch(settings, store, rank, timeout)
        fallback = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, size, timeout=timeout)
        wishes = _wishes(settings, address, hosts)
        backend = _C.create_backend(dist.PrefixStore("atp", store), rank, size, fallback, wishes, _report(rank))
    except dist.DistBackendError:
        raise
    except RuntimeError as error:
        raise dist.DistBackendError(str(error)) from None
    _Process.backends = [*_active_backends(), backend]
    return backend


def _fresh_store(store: Any, rank: int) -> Any:
    """A part of the store that no former group of this name has written to: torchrun's outlives groups."""
    generation = store.add(f"atp-generation-{rank}", 1)
    return dist.PrefixStore(f"atp-{generation}", store)


def _wishes(settings: Settings, address: str, hosts: bool) -> _C.Wishes:
    wishes = _C.Wishes()
    wishes.switch_address = address
    wishes.server = settings.server
    wishes.dedicated_servers = list(settings.dedicated_servers)
    wishes.channels = settings.channels
    wishes.timeout_s = settings.timeout_s
    wishes.hosts_switch = hosts
    return wishes


def _report(rank: int) -> Any:
    def fell_back(what: str) -> None:
        if rank == 0:
            logger.warning("%s: not done in the network but by Gloo (said once)", what)

    return fell_back


def _find_switch(settings: Settings, store: Any, rank: int, timeout: timedelta) -> tuple[str, bool]:
    """The switch's address, and whether this process has it."""
    address = settings.switch
    if rank == 0:
        try:
            address = address or _own_switch()
        except RuntimeError as error:
            store.set(_ADDRESS_KEY, f"{_PROBLEM}rank 0 could not start a switch: {error}")
            raise
        store.set(_ADDRESS_KEY, address)
    elif address is None:
        store.wait([_ADDRESS_KEY], timeout)
        address = store.get(_ADDRESS_KEY).decode()
        if address.startswith(_PROBLEM):
            raise dist.DistBackendError(address.removeprefix(_PROBLEM))
    try:
        _C.reach_switch(address, min(timeout.total_seconds(), _REACH_S))
    except RuntimeError as error:
        raise dist.DistBackendError(
            f"{error}. No switch answers at {address}: start one there with `atp switch`, or name another one with "
            f"ATP_SWITCH; `atp doctor --switch {address}` may find out what is in the way"
        ) from None
    _Process.address = address
    return address, _Process.switch is not None and address == _Process.switch.address


def _own_switch() -> str:
    """Where no switch was named: the one that this process knows, or a new one in this process."""
    if _Process.address is not None:
        return _Process.address
    _Process.switch = _C.SwitchNode.start(_listen_address())
    logger.warning(
        "no ATP_SWITCH: rank 0 has started a switch at %s, in its own process. To sum inside the network, "
        "run `atp switch` in it and set ATP_SWITCH=host:port",
        _Process.switch.address,
    )
    return _Process.switch.address


def _listen_address() -> str:
    """Loopback where all ranks are known to be on this host, otherwise the address that MASTER_ADDR is reached from."""
    master = os.environ.get("MASTER_ADDR")
    here = os.environ.get("LOCAL_WORLD_SIZE")
    if not master or (here is not None and here == os.environ.get("WORLD_SIZE")):
        return "127.0.0.1:0"
    host = f"[{master}]" if ":" in master else master
    local = _C.address_towards(f"{host}:1")
    return local.rpartition(":")[0] + ":0"


def _active_backends() -> list[Any]:
    return [backend for backend in _Process.backends if _C.is_active(backend)]


@atexit.register
def _leave() -> None:
    # A script that ends with an exception is not expected any more: it waits for nobody.
    failed = getattr(sys, "last_value", None) is not None
    for backend in reversed(_active_backends()):
        (_C.abort if failed else _C.shutdown)(backend)
    _Process.backends = []
    if _Process.switch is not None:
        _Process.switch.stop()
