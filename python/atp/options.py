# SPDX-License-Identifier: Apache-2.0
"""What a process group is told: by `Options`, or by the environment, or by nobody."""

from __future__ import annotations

import ipaddress
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta

from .topology import Place, Topology, is_address

_SERVERS = "'switch', 'colocated' or 'dedicated:host:port[,host:port...]'"
_MOST_CHANNELS = 64
_SCALINGS = ("fixed", "dynamic")
_LANES = ("int32", "int16")


@dataclass(frozen=True)
class Options:
    """How a process group reaches its switch. What is None comes from the environment, and then from a default.

    Attributes:
        switch: ATP_SWITCH, "host:port" of this rank's switch. Default: rank 0 starts one in its own process.
        topology: ATP_TOPOLOGY, in place of `switch`: a file that says which ranks send to which switch, as
            `atp.topology` describes it.
        server: ATP_SERVER, where the parameter server stands: "switch" (the default), "colocated" beside the workers,
            or "dedicated:host:port[,host:port...]".
        scaling: ATP_SCALING, at what scale gradients become integers: "fixed" (the default), or "dynamic", which fits
            each packet to the last sum at the same place.
        rack: ATP_RACK, the rack of this rank, by any name, where switches in the path aggregate that nobody addresses.
            Default: none.
        multicast: ATP_MULTICAST, whether results are sent once, to a group: "off" (the default), "on", or the groups to
            take, "239.192.0.0/16". Where some rank hears no group, each rank gets a copy as without it.
        lanes: ATP_LANES, what carries a number in a packet: "int32" (the default), or "int16", half the bytes.
        channels: ATP_CHANNELS, how many streams a rank has, each with a thread; 1 to 64. Default: 1.
        timeout: ATP_TIMEOUT, in seconds: of operations, of forming the group. Default: that of init_process_group.
    """

    switch: str | None = None
    topology: str | os.PathLike[str] | None = None
    server: str | None = None
    scaling: str | None = None
    lanes: str | None = None
    rack: str | None = None
    multicast: str | None = None
    channels: int | None = None
    timeout: timedelta | float | None = None


@dataclass(frozen=True)
class Settings:
    """Options when everything has been looked up and judged."""

    switch: str | None
    server: str
    dedicated_servers: tuple[str, ...]
    scaling: str
    lanes: str
    rack: str
    multicast: str
    channels: int
    timeout_s: float


def settle(
    options: Options, default_timeout: timedelta, place: Place, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Looks up what options leave open.

    Raises:
        ValueError: it names the variable or the option, what it was and what is accepted.
    """
    names = [field.name for field in fields(Options)]
    if options.switch is not None or options.topology is not None:
        # A program that says in either way where the switch is means it, whatever the environment says.
        environment = {key: value for key, value in environment.items() if key not in ("ATP_SWITCH", "ATP_TOPOLOGY")}
    found = {name: _look_up(getattr(options, name), name, environment) for name in names}
    server, servers = _server(*found["server"])
    timeout_s = _seconds(*found["timeout"])
    return Settings(
        switch=_switch(found["switch"], found["topology"], place),
        server=server,
        dedicated_servers=servers,
        scaling=_one_of(_SCALINGS, *found["scaling"]),
        lanes=_one_of(_LANES, *found["lanes"]),
        rack=str(found["rack"][0] or ""),
        multicast=_multicast(*found["multicast"]),
        channels=_channels(*found["channels"]),
        timeout_s=timeout_s or default_timeout.total_seconds(),
    )


_Found = tuple[object, str]  # a value or None, and what to call it in an exception


def _look_up(option: object, name: str, environment: Mapping[str, str]) -> _Found:
    if option is not None:
        return option, f"atp.Options({name}={option!r})"
    variable = f"ATP_{name.upper()}"
    text = environment.get(variable, "").strip()
    return text or None, f"{variable}={text!r}"


def _switch(switch: _Found, topology: _Found, place: Place) -> str | None:
    address, name = switch
    path, file_name = topology
    if address is not None and path is not None:
        raise ValueError(f"{name} and {file_name}: accepted is one of both")
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(f"{file_name}: accepted is the path of a TOML file")
        try:
            return Topology.read(os.fspath(path)).switch_of(place)
        except ValueError as error:
            raise ValueError(f"{file_name}: {error}") from None
    if address is None or is_address(address):
        return address
    raise ValueError(f"{name}: accepted is the address of a switch, 'host:port' or '[host]:port'")


def _server(value: object, name: str) -> tuple[str, tuple[str, ...]]:
    if value is None:
        return "switch", ()
    if value in ("switch", "colocated"):
        return str(value), ()
    place, _, servers = str(value).partition(":")
    addresses = tuple(servers.split(","))
    if place != "dedicated" or not all(is_address(address) for address in addresses):
        raise ValueError(f"{name}: accepted is {_SERVERS}")
    return "dedicated", addresses


def _one_of(accepted: tuple[str, ...], value: object, name: str) -> str:
    """The first is the default."""
    if value is None:
        return accepted[0]
    if value not in accepted:
        raise ValueError(f"{name}: accepted is {' or '.join(map(repr, accepted))}")
    return str(value)


def _multicast(value: object, name: str) -> str:
    if value is None:
        return "off"
    if value not in ("off", "on"):
        try:
            groups = ipaddress.IPv4Network(str(value)).is_multicast
        except ValueError:
            groups = False
        if not groups:
            raise ValueError(f"{name}: accepted is 'off', 'on' or groups of IPv4 as '239.192.0.0/16'")
    return str(value)


def _channels(value: object, name: str) -> int:
    if value is None:
        return 1
    try:
        channels = int(str(value))
    except ValueError:
        channels = 0
    if not 1 <= channels <= _MOST_CHANNELS:
        raise ValueError(f"{name}: accepted is a whole number from 1 to {_MOST_CHANNELS}")
    return channels


def _seconds(value: object, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, timedelta):
        value = value.total_seconds()
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and 0.001 <= seconds <= 86400 * 365):
        raise ValueError(f"{name}: accepted is a number of seconds above zero")
    return seconds
