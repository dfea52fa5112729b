# SPDX-License-Identifier: Apache-2.0
"""What a process group is told: by `Options`, or by the environment, or by nobody."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

_SERVERS = "'switch', 'colocated' or 'dedicated:host:port[,host:port...]'"
_MOST_CHANNELS = 64


@dataclass(frozen=True)
class Options:
    """How a process group reaches its switch. What is None comes from the environment, and then from a default.

    Attributes:
        switch: ATP_SWITCH, "host:port" of this rank's switch. Default: rank 0 starts one in its own process.
        server: ATP_SERVER, where the parameter server stands: "switch" (the default), "colocated" beside the workers,
            or "dedicated:host:port[,host:port...]".
        channels: ATP_CHANNELS, how many streams a rank has, each with a thread; 1 to 64. Default: 1.
        timeout: ATP_TIMEOUT, in seconds: of operations, of forming the group. Default: that of init_process_group.
    """

    switch: str | None = None
    server: str | None = None
    channels: int | None = None
    timeout: timedelta | float | None = None


@dataclass(frozen=True)
class Settings:
    """Options when everything has been looked up and judged."""

    switch: str | None
    server: str
    dedicated_servers: tuple[str, ...]
    channels: int
    timeout_s: float


def settle(options: Options, default_timeout: timedelta, environment: Mapping[str, str] = os.environ) -> Settings:
    """Looks up what options leave open.

    Raises:
        ValueError: it names the variable or the option, what it was and what is accepted.
    """

    def look(option: object, variable: str) -> tuple[object, str]:
        if option is not None:
            return option, f"atp.Options({variable.removeprefix('ATP_').lower()}={option!r})"
        text = environment.get(variable, "").strip()
        return text or None, f"{variable}={text!r}"

    switch = _address_or_none(*look(options.switch, "ATP_SWITCH"))
    server, servers = _server(*look(options.server, "ATP_SERVER"))
    channels = _channels(*look(options.channels, "ATP_CHANNELS"))
    timeout_s = _seconds(*look(options.timeout, "ATP_TIMEOUT"))
    return Settings(switch, server, servers, channels, timeout_s or default_timeout.total_seconds())


def _is_address(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        return False
    return ":" not in host or (host.startswith("[") and host.endswith("]"))


def _address_or_none(value: object, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _is_address(value):
        raise ValueError(f"{name}: accepted is the address of a switch, 'host:port' or '[host]:port'")
    return value


def _server(value: object, name: str) -> tuple[str, tuple[str, ...]]:
    if value is None:
        return "switch", ()
    if value in ("switch", "colocated"):
        return str(value), ()
    place, _, servers = str(value).partition(":")
    addresses = tuple(servers.split(","))
    if place != "dedicated" or not all(_is_address(address) for address in addresses):
        raise ValueError(f"{name}: accepted is {_SERVERS}")
    return "dedicated", addresses


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
