# SPDX-License-Identifier: Apache-2.0
"""A file that assigns ranks to switches.

    [[switch]]
    address = "10.0.1.1:4790"
    hosts = ["node-1*", "10.0.1.0/24"]

    [[switch]]
    address = "10.0.2.1:4790"
    ranks = ["4-7", 9]

A host is an IP address, a network, or a name with wildcards as in a shell. A rank is a number or a range. Every rank
must match exactly one switch. A switch that is the 'parent' of another switch needs neither hosts nor ranks. A switch
with `aggregates = false` adds nothing and needs no address: its ranks use the next switch above that aggregates, or
none. `name`, `host_rate` and `uplink_rate` tell ranks about their rack and its links. Further keys of `atp-lab plan`
(memory and others) are accepted and ignored.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeGuard


@dataclass(frozen=True)
class Place:
    """Position of a rank. `address_towards` returns the local address from which this host reaches a switch."""

    rank: int
    host: str
    address_towards: Callable[[str], str]


NO_SWITCH = "none"

_KEYS = frozenset({"address", "hosts", "ranks"})
_KEYS_OF_PLANS = frozenset(
    {"name", "parent", "host_rate", "uplink_rate", "card_rate", "delay", "queue", "memory", "lanes", "aggregates"}
)


@dataclass(frozen=True)
class Position:
    """What is known about one rank. `switch`: its address, or NO_SWITCH if none aggregates for the rank. Rates are
    texts such as 25gbit. A text may be empty: not known."""

    switch: str = ""
    uplink: str = ""
    link_rate: str = ""
    uplink_rate: str = ""


@dataclass(frozen=True)
class _Switch:
    address: str | None
    hosts: tuple[str, ...]
    ranks: tuple[range, ...]
    name: str = ""
    parent: str | None = None
    aggregates: bool = True
    link_rate: str = ""
    uplink_rate: str = ""

    def has(self, place: Place) -> bool:
        if any(place.rank in ranks for ranks in self.ranks):
            return True
        return any(self._is_host(pattern, place) for pattern in self.hosts)

    def _is_host(self, pattern: str, place: Place) -> bool:
        network = _network_or_none(pattern)
        if network is not None:
            inside = f"[{network.network_address}]" if network.version == 6 else str(network.network_address)
            return ipaddress.ip_address(place.address_towards(self.address or f"{inside}:1")) in network
        names = (place.host.lower(), place.host.lower().partition(".")[0])
        return any(fnmatch.fnmatchcase(name, pattern.lower()) for name in names)


class Topology:
    """The switches of a file."""

    def __init__(self, path: str, switches: list[_Switch]) -> None:
        self._path = path
        self._switches = switches

    @staticmethod
    def read(path: str) -> Topology:
        """Raises ValueError, whose text names the file or its part, the error, and the accepted content."""
        try:
            content = _parse(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}; use a TOML file with [[switch]] tables") from None
        except ValueError as error:
            raise ValueError(f"{path}: invalid TOML: {error}") from None
        tables = content.get("switch")
        if set(content) != {"switch"} or not isinstance(tables, list) or not tables:
            raise ValueError(f"{path}: use [[switch]], once per switch, and no other table")
        parents = [table.get("parent") for table in tables if isinstance(table, dict)]
        switches = []
        for number, table in enumerate(tables, start=1):
            try:
                switches.append(_switch_from(table, parents))
            except ValueError as error:
                raise ValueError(f"{path}: [[switch]] number {number}: {error}") from None
        return Topology(path, switches)

    def position_of(self, place: Place) -> Position:
        """Raises ValueError if the rank matches no switch, or more than one."""
        found = [switch for switch in self._switches if switch.has(place)]
        if len(found) == 1:
            [own] = found
            adding = self._adding(own)
            address = adding.address if adding and adding.address else NO_SWITCH
            return Position(address, own.name, own.link_rate, own.uplink_rate)
        names = ", ".join(switch.address or switch.name for switch in found)
        which = "no switch has" if not found else f"the switches {names} all have"
        raise ValueError(
            f"{self._path}: {which} rank {place.rank} on host {place.host!r} in 'hosts' or 'ranks'; use exactly one"
        )

    def _parent(self, switch: _Switch) -> _Switch | None:
        return next(
            (other for other in self._switches if switch.parent is not None and other.name == switch.parent), None
        )

    def _adding(self, switch: _Switch) -> _Switch | None:
        """Returns the lowest switch from this one upwards that aggregates."""
        above: _Switch | None = switch
        for _ in self._switches:  # parents of parents may form a circle
            if above is None or above.aggregates:
                break
            above = self._parent(above)
        return above if above is not None and above.aggregates else None


def is_address(text: object) -> TypeGuard[str]:
    """True if the text has the form host:port or [host]:port."""
    host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        return False
    return ":" not in host or (host.startswith("[") and host.endswith("]"))


def _parse(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # the package requires tomli there
        import tomli as tomllib
    return tomllib.loads(text)


def _switch_from(table: Any, parents: list[Any]) -> _Switch:
    if not isinstance(table, dict) or not set(table) <= _KEYS | _KEYS_OF_PLANS:
        raise ValueError("unknown keys: use 'address', 'hosts', 'ranks' and the keys of `atp-lab plan`")
    address = table.get("address")
    aggregates = table.get("aggregates", True)
    if not is_address(address) and (aggregates is not False or address is not None):
        raise ValueError(f"address={address!r}: use 'host:port' or '[host]:port'")
    hosts, ranks = table.get("hosts", []), table.get("ranks", [])
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        raise ValueError(f"hosts={hosts!r}: use a list of names, IP addresses and networks")
    if not isinstance(ranks, list):
        raise ValueError(f'ranks={ranks!r}: use a list of numbers and ranges, such as [0, "4-7"]')
    is_parent = "name" in table and table["name"] in parents
    if not hosts and not ranks and not is_parent:
        raise ValueError("'hosts' and 'ranks' are missing: use one or both")
    return _Switch(
        address,
        tuple(hosts),
        tuple(_range_from(value) for value in ranks),
        name=str(table.get("name") or address),
        parent=table.get("parent"),
        aggregates=bool(aggregates),
        link_rate=str(table.get("host_rate", "")),
        uplink_rate=str(table.get("uplink_rate", "")),
    )


def _range_from(value: object) -> range:
    match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", str(value))
    ranks = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
    if not ranks:
        raise ValueError(f'ranks: {value!r}: use a number, or a range such as "4-7"')
    return ranks


def _network_or_none(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
