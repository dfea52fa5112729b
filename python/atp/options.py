# SPDX-License-Identifier: Apache-2.0
"""Settings of a process group: from `Options`, from the environment, or by default."""

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
    """How a process group reaches its switch. If an option is None, its environment variable or its default applies.

    Attributes:
        switch: ATP_SWITCH, "host:port" of this rank's switch. Default: rank 0 starts one in its own process.
        topology: ATP_TOPOLOGY, instead of `switch`: a file that assigns ranks to switches. `atp.topology` describes its
            format.
        server: ATP_SERVER, where the parameter server runs: "switch" (the default), "colocated" with the workers, or
            "dedicated:host:port[,host:port...]".
        scaling: ATP_SCALING, the scale of gradients as integers: "fixed" (the default), or "dynamic", which scales each
            packet by the last sum at the same position.
        rack: ATP_RACK, any name for the rack of this rank, if switches in the path aggregate without an address.
            Default: none.
        multicast: ATP_MULTICAST, whether the switch sends a result once, to a multicast group: "off" (the default),
            "on", or the range of groups, "239.192.0.0/16". If a rank does not receive the group, each rank gets a
            unicast copy.
        lanes: ATP_LANES, the format of a number in a packet: "int32" (the default), or "int16" with half the bytes.
        channels: ATP_CHANNELS, the number of streams of a rank, each with a thread; 1 to 64. Default: 1.
        timeout: ATP_TIMEOUT, in seconds, of operations and of forming the group. Default: that of init_process_group.
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
    """The settings after look-up and validation."""

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
    """Looks up the options that are None.

    Raises:
        ValueError: it names the option or the variable, its value and the accepted values.
    """
    names = [field.name for field in fields(Options)]
    if options.switch is not None or options.topology is not None:
        # If the program names the switch in either option, the environment must not override it.
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


_Found = tuple[object, str]  # a value or None, and its name in an exception


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
