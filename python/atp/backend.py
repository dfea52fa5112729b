# SPDX-License-Identifier: Apache-2.0
"""Makes process groups: reads the configuration, finds or starts the switch, and keeps what must outlive a group."""

from __future__ import annotations

import atexit
import functools
import ipaddress
import logging
import os
import re
import socket
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from . import _library, _log, _metrics
from ._backends import LIBRARY, Group, backends, reason_without_library
from .errors import error_from
from .options import Options, Settings, misspelt, settle
from .topology import NO_SWITCH, Place

logger = _log.logger

# Sums of gradients and copies of parameters: users choose this backend to run these operations in the network.
_EXPECTED_IN_NETWORK = {
    "all_reduce",
    "all_reduce_coalesced",
    "broadcast",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced",
}
_LAYOUTS_ON_HOSTS = ("auto", "hosts", "leaves", "racks")


class _Process:
    """State that the groups of this process share."""

    switch: _library.Switch | None = None
    address: str | None = None
    options: Options = Options()
    groups: list[Group] = []


def create_backend(given: Any, options: Options | None) -> Any:
    """Called by init_process_group() and new_group(), on every rank of the group.

    Raises:
        TypeError: pg_options is not atp.Options.
        ValueError: a setting is wrong.
        torch.distributed.DistBackendError: the switch or a rank is missing.
    """
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"pg_options is a {type(options).__name__}: use atp.Options for the backend 'atp'")
    if not dist.is_initialized():
        _end_groups(lambda group: group.shutdown())  # before 2.8, destroy_process_group() does not notify a backend
    is_first = not _active_groups()
    if is_first:
        _Process.options = options or Options()
    # new_group() passes no options, so the options of the first group apply to the new group too.
    rank, size = given.group_rank, given.group_size
    try:
        settings = settle(options or _Process.options, given.timeout, _place(given))
        timeout = timedelta(seconds=settings.timeout_s)
        store = _fresh_store(given.store, rank)
        own_store = _library.Store(dist.PrefixStore("atp", store))
        network = _Network(settings, rank)
        native = settings.native(network.offer)
        native["trace"] = _with_rank(native["trace"], _place(given).rank)
        _log.start()
        _metrics.serve()
        for variable, meant in misspelt().items() if is_first else ():
            logger.warning("%s name=%s meant=%s", _log.VARIABLE_IGNORED, variable, meant)
        _warn_without_library()
        communicator = _library.form(
            own_store, rank, size, native, network.starts_switch, network.find, settings.timeout_s
        )
        _Process.address = network.switch or _Process.address
        gloo = _make_gloo(dist.PrefixStore("gloo", store), rank, size, timeout, network.switch or network.listen)
        group = backends.make_group(
            given, gloo, own_store, communicator, settings.timeout_s, network.hosts_switch, _report(rank)
        )
    except dist.DistBackendError:
        raise
    except RuntimeError as error:
        raise error_from(str(error)) from None
    _Process.groups = [*_active_groups(), group]
    return group.backend


@functools.cache
def _warn_without_library() -> None:
    if reason_without_library is None:
        return
    line = (
        f'{_log.LIBRARY_MISSING} name={LIBRARY.name} slower="each call, by some microseconds; sums of CUDA tensors, '
        'which the CPU converts" without="Flight Recorder, error_feedback_hook"'
    )
    logger.warning("%s", f'{line} reason="{reason_without_library}"' if reason_without_library else line)


def _place(given: Any) -> Place:
    ranks = given.global_ranks_in_group  # empty for the group of all ranks
    rank = ranks[given.group_rank] if ranks else given.group_rank
    return Place(rank, socket.gethostname(), _library.address_towards)


def _fresh_store(store: Any, rank: int) -> Any:
    """Returns a part of the store without keys of earlier groups: torchrun's store outlives groups."""
    generation = store.add(f"atp-generation-{rank}", 1)
    return dist.PrefixStore(f"atp-{generation}", store)


def _make_gloo(store: Any, rank: int, size: int, timeout: timedelta, network: str) -> Any:
    """Makes a Gloo backend, and waits until every rank has made its own: Gloo fails where it still waits for connections
    while one of them is closed already, so a rank that soon leaves would keep the others from forming the group."""
    gloo = _connect_gloo(store, rank, size, timeout, network)
    gloo.barrier().wait()
    return gloo


def _connect_gloo(store: Any, rank: int, size: int, timeout: timedelta, network: str) -> Any:
    """Uses the interface that reaches the switch, or that has the address at which this rank listens. By default, Gloo
    uses the address of the host name, which is often loopback. If `network` is empty, all ranks are on this host."""
    local = _library.address_towards(re.sub(r":[\d-]*$", ":1", network)) if network else "127.0.0.1"
    if os.environ.get("GLOO_SOCKET_IFNAME") or ipaddress.ip_address(local).is_loopback:
        return dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=local)]
    options._timeout = timeout
    return dist.ProcessGroupGloo(store, rank, size, options)


def _report(rank: int) -> Any:
    """Logs the operations that Gloo executes: as a warning if users expect them in the network, otherwise as
    information."""

    def delegated(operation: str, reason: str) -> None:
        if rank != 0:
            return
        level = logging.WARNING if operation in _EXPECTED_IN_NETWORK else logging.INFO
        line = f'{_log.OPERATION_DELEGATED} name="{operation}" backend=gloo'
        logger.log(level, "%s", f'{line} reason="{reason}"' if reason else line)

    return delegated


class _Network:
    """Which switch this rank uses, and where it may serve sums. Both are found only if the ranks need the network."""

    def __init__(self, settings: Settings, rank: int) -> None:
        self._settings, self._rank = settings, rank
        self.switch, self.listen, self.hosts_switch = "", "", False
        self.starts_switch = rank == 0 and settings.switch is None and not _can_listen(settings)

    @property
    def offer(self) -> str:
        """The switch that rank 0 names for all ranks; empty: the ranks serve the sums."""
        return "" if self._settings.switch in (None, NO_SWITCH) else str(self._settings.switch)

    def find(self, offered: str) -> tuple[str, str, bool]:
        """Returns the address of the switch, the address to serve at, and whether this process runs that switch."""
        address = offered if self._settings.switch is None else self.offer
        if self.starts_switch:
            try:
                address = _own_switch(self._settings.key_file)
            except RuntimeError as error:
                raise RuntimeError(f"could not start a switch: {error}") from None
        self.switch = address
        self.hosts_switch = address != "" and _Process.switch is not None and address == _Process.switch.address
        self.listen = self._settings.listen or _address_to_serve(self._settings, address or None)
        return self.switch, self.listen, self.hosts_switch


def _can_listen(settings: Settings) -> bool:
    try:
        return _may_listen(settings)
    except RuntimeError:
        return False  # the switch of rank 0 needs that address too, and its error names the problem


def _may_listen(settings: Settings) -> bool:
    """Returns whether ranks on several hosts can serve the sums. Parameter servers elsewhere need a switch."""
    if settings.server not in _LAYOUTS_ON_HOSTS:
        return False
    return settings.listen != "" or not _listen_address().startswith(("127.", "[::1]"))


def _address_to_serve(settings: Settings, switch: str | None) -> str:
    """Returns where this rank may serve a part of the sums; empty: nowhere. With a switch, this is one of several
    possible layouts, and the loopback would only lead back to this host."""
    if switch is None:
        return _listen_address()
    try:
        address = _listen_address() if settings.server in _LAYOUTS_ON_HOSTS else ""
    except RuntimeError:
        return ""
    return "" if address.startswith(("127.", "[::1]")) else address


def _own_switch(key_file: str) -> str:
    """Returns the address that other groups of this process use, or that of a new switch in this process."""
    if _Process.address is not None and _active_groups():
        return _Process.address
    if _Process.switch is None:
        _Process.switch = _library.Switch(_listen_address(), key_file)
        logger.warning(
            "no ATP_SWITCH: rank 0 has started a switch at %s, in its own process. To sum inside the network, "
            "run `atp switch` in it and set ATP_SWITCH=host:port",
            _Process.switch.address,
        )
    return _Process.switch.address


def _listen_address() -> str:
    """Returns loopback if all ranks are known to be on this host, otherwise the address that reaches MASTER_ADDR."""
    master = os.environ.get("MASTER_ADDR")
    here, world = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    if not master or (here is not None and here == world):
        return "127.0.0.1:0"
    local = _library.address_towards(f"[{master}]:1" if ":" in master else f"{master}:1")
    if here is not None and ipaddress.ip_address(local).is_loopback:
        raise RuntimeError(
            f"MASTER_ADDR={master!r} resolves to the loopback, which ranks on other hosts cannot reach: set it to an "
            "address of this host that they can reach, or start a switch with `atp switch` and set ATP_SWITCH"
        )
    return f"[{local}]:0" if ":" in local else f"{local}:0"


def _with_rank(pattern: str, rank: int) -> str:
    """Replaces %r by the rank in the program. The extension would take the rank in a group."""
    return re.sub("%[%r]", lambda part: str(rank) if part[0] == "%r" else part[0], pattern)


def _active_groups() -> list[Group]:
    return [group for group in _Process.groups if group.active]


def _end_groups(end: Callable[[Group], None]) -> None:
    for group in reversed(_active_groups()):
        end(group)
    _Process.groups = _active_groups()  # of a group that another thread shuts down, that thread uses the store


@atexit.register
def _leave() -> None:
    # A script that ends with an exception aborts: the other ranks do not expect its end, and it must not wait for them.
    failed = getattr(sys, "last_value", None) is not None
    _end_groups(lambda group: group.abort() if failed else group.shutdown())
    if _Process.switch is not None:
        _Process.switch.stop()
    _log.stop()
