# SPDX-License-Identifier: Apache-2.0
"""Settings of a process group: from `Options`, from the environment, or by default."""

from __future__ import annotations

import difflib
import ipaddress
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ._options import ROWS, Options, PlainSettings
from .topology import NO_SWITCH, Place, Position, Topology, is_address

_SERVERS = "'auto', 'switch', 'hosts', 'leaves', 'racks', 'colocated' or 'dedicated:host:port[,host:port...]'"


@dataclass(frozen=True)
class Settings(PlainSettings):
    """The settings after look-up and validation. `switch`: None if the rank follows rank 0, NO_SWITCH if its rack has
    none."""

    switch: str | None
    server: str
    dedicated_servers: tuple[str, ...]
    timeout_s: float

    def native(self, switch_address: str) -> dict[str, str]:
        """Options of a communicator, by name, as text. Without a switch, `switch_address` is empty."""
        options = {row.native: str(getattr(self, name)) for name, row in ROWS.items() if row.native}
        servers = ",".join(self.dedicated_servers)
        return {**options, "switch_address": switch_address, "server": self.server, "dedicated_servers": servers}


def settle(
    options: Options, default_timeout: timedelta, place: Place, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Looks up the options that are None in the environment, and validates all options.

    Raises:
        ValueError: the text names the option or the variable, its value and the accepted values.
    """
    if options.switch is not None or options.topology is not None:
        # If the program names the switch in either option, the environment must not override it.
        environment = {key: value for key, value in environment.items() if key not in ("ATP_SWITCH", "ATP_TOPOLOGY")}
    found = {name: _look_up(getattr(options, name), name, environment) for name in ROWS}
    position = _position(found["switch"], found["topology"], place)
    named = {"uplink": position.uplink, "link_rate": position.link_rate, "uplink_rate": position.uplink_rate}
    for name, text in named.items():
        if found[name][0] is None and text:
            found[name] = (text, found["topology"][1])
    server, servers = _server(*found["server"])
    timeout_s = _seconds(*found["timeout"])
    return Settings(
        switch=position.switch or None,
        server=server,
        dedicated_servers=servers,
        timeout_s=timeout_s or default_timeout.total_seconds(),
        **{name: _plain(name, *found[name]) for name, row in ROWS.items() if row.native},
    )


def misspelt(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that resemble a setting and are none, with that setting."""
    meant = {row.variable: row.variable for row in ROWS.values()}
    meant.update({f"ATP_{row.native.upper()}": row.variable for row in ROWS.values() if row.native})
    known = ("ATP_AS", "ATP_LOG", "ATP_METRICS", "ATP_TORCH_LIBRARY")
    meant.update({**{name: name for name in known}, "ATP_LOG_LEVEL": "ATP_LOG"})
    found = {}
    for variable in environment:
        if variable.startswith("ATP_") and meant.get(variable) != variable:
            close = difflib.get_close_matches(variable, meant, 1, 0.8)
            if close:
                found[variable] = meant[close[0]]
    return found


_Found = tuple[object, str]  # a value or None, and its name in an exception


def _look_up(option: object, name: str, environment: Mapping[str, str]) -> _Found:
    if option is not None:
        return option, f"atp.Options({name}={option!r})"
    variable = ROWS[name].variable
    text = environment.get(variable, "").strip()
    return text or None, f"{variable}={text!r}"


def _position(switch: _Found, topology: _Found, place: Place) -> Position:
    address, name = switch
    path, file_name = topology
    if address is not None and path is not None:
        raise ValueError(f"{name} and {file_name} exclude each other: set only one of them")
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(f"{file_name}: use the path of a TOML file")
        try:
            return Topology.read(os.fspath(path)).position_of(place)
        except ValueError as error:
            raise ValueError(f"{file_name}: {error}") from None
    if address is None or address == NO_SWITCH or is_address(address):
        return Position(str(address or ""))
    raise ValueError(f"{name}: use the address of a switch, 'host:port' or '[host]:port', or '{NO_SWITCH}'")


def _server(value: object, name: str) -> tuple[str, tuple[str, ...]]:
    if value is None:
        return "auto", ()
    if value in ("auto", "switch", "hosts", "leaves", "racks", "colocated"):
        return str(value), ()
    place, _, servers = str(value).partition(":")
    addresses = tuple(servers.split(","))
    if place != "dedicated" or not all(is_address(address) for address in addresses):
        raise ValueError(f"{name}: use {_SERVERS}")
    return "dedicated", addresses


def _plain(option: str, value: object, name: str) -> Any:
    """Checks a setting that has no rules besides those of the table."""
    row = ROWS[option]
    if value is None:
        value = row.default
    if row.choices:
        return _one_of(row.choices, value, name)
    if row.bounds:
        return _whole_number(*row.bounds, value, name)
    if option in _RULES:
        return _RULES[option](value, name)
    return str(value)


def _flag(value: object, name: str) -> str:
    text = str(value).lower()
    if text not in ("true", "false", "on", "off"):
        raise ValueError(f"{name}: use 'on' or 'off'")
    return "true" if text in ("true", "on") else "false"


def _one_of(accepted: tuple[str, ...], value: object, name: str) -> str:
    if value not in accepted:
        raise ValueError(f"{name}: use {' or '.join(map(repr, accepted))}")
    return str(value)


def _multicast(value: object, name: str) -> str:
    if value not in ("off", "on"):
        try:
            groups = ipaddress.IPv4Network(str(value)).is_multicast
        except ValueError:
            groups = False
        if not groups:
            raise ValueError(f"{name}: use 'off', 'on' or groups of IPv4 as '239.192.0.0/16'")
    return str(value)


def _rate(value: object, name: str) -> str:
    """Bits per second as the library reads them. 0: not known."""
    form = re.fullmatch(r"(\d+\.?\d*|\.\d+)([kmg]?(bps|bit|bit/s))?", str(value), re.IGNORECASE)
    if str(value) != "0" and (form is None or float(form[1]) == 0):
        raise ValueError(f"{name}: use bits per second, or a number with kbit, Mbit or Gbit")
    return str(value)


def _listen(value: object, name: str) -> str:
    if value != "" and not re.fullmatch(r"(\[[^\]]+\]|[^:\[\]]+):\d{1,5}(-\d{1,5})?", str(value)):
        raise ValueError(f"{name}: use host:port, host:0 for any port, or host:first-last")
    return str(value)


def _whole_number(least: int, most: int, value: object, name: str) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise ValueError(f"{name}: use a whole number from {least} to {most}")
    return number


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
        raise ValueError(f"{name}: use a number of seconds from 0.001 to {86400 * 365}")
    return seconds


_RULES = {
    "host_level": _flag,
    "link_rate": _rate,
    "listen": _listen,
    "multicast": _multicast,
    "uplink_rate": _rate,
}
