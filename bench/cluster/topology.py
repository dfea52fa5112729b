# SPDX-License-Identifier: Apache-2.0
"""Describes a network: switches in a tree, hosts below them, and the host of each rank. It does not create the
network."""

import os
import re
from dataclasses import dataclass, replace
from typing import Optional

PREFIX_BITS = 16
UPLINK_DEVICE = "uplink"  # of a rack's switch
FIGURE_9 = "fig9"  # of the ATP paper
MOST_RACKS = 100
MOST_HOSTS_OF_A_RACK = 200
SERVER_NUMBER = 250  # last byte of the server's address; no host of a rank has this byte


@dataclass(frozen=True)
class Switch:
    name: str
    address: str
    parent: Optional["Switch"]


@dataclass(frozen=True)
class Host:
    name: str
    address: str
    switch: Switch


@dataclass(frozen=True)
class Topology:
    """`switches` lists a parent before its children; `hosts` lists the hosts of ranks, rack by rack. Parameter servers
    run on the highest switch. If `server` is set, they run on this separate host below the highest switch."""

    text: str
    switches: tuple
    hosts: tuple
    server: Optional[Host] = None

    def with_server(self):
        root = self.switches[0]
        return replace(self, server=Host("server", f"{root.address.rpartition('.')[0]}.{SERVER_NUMBER}", root))

    @property
    def ends(self):
        """All hosts, including the host of the server."""
        return self.hosts + ((self.server,) if self.server else ())

    @property
    def daemon_nodes(self):
        """The nodes that may need daemons, in the order to start them."""
        return ((self.server,) if self.server else ()) + self.switches

    @property
    def is_local(self):
        """True if all nodes are processes of this host, without links."""
        return self.text.startswith("local:")

    @property
    def has_racks(self):
        return any(switch.parent for switch in self.switches)

    def ranks(self, placement):
        """The host of each rank. `packed` fills one rack after the other; `dealt` alternates between the racks."""
        if placement == "packed":
            return list(self.hosts)
        racks = {}
        for host in self.hosts:
            racks.setdefault(host.switch, []).append(host)
        return [host for of_each_rack in zip(*racks.values()) for host in of_each_rack]

    def hosts_of(self, switch):
        return [host for host in self.ends if host.switch == switch]

    def links(self):
        """All links as (lower node, upper node): a host and its switch, or a switch and its parent."""
        return [(switch, switch.parent) for switch in self.switches if switch.parent] + [
            (host, host.switch) for host in self.ends
        ]


def port_to(below):
    """The name of the port on a switch's bridge that leads to a node."""
    return f"to-{below.name}"


def parse(text):
    """Parses `star:4`, `racks:2x4`, `fig9` or `local:4`; for other text, raises ValueError with the reason."""
    star = re.fullmatch(r"star:(\d+)", text)
    if star:
        return _star(text, int(star[1]))
    racks = re.fullmatch(r"racks:(\d+)x(\d+)", text)
    if racks:
        return _racks(text, int(racks[1]), int(racks[2]))
    if text == FIGURE_9:
        return _figure_9()
    local = re.fullmatch(r"local:(\d+)", text)
    if local:
        return _star(text, int(local[1]), _loopback_prefix())
    raise ValueError(f"'{text}' is not accepted: write star:HOSTS, racks:RACKSxHOSTS, {FIGURE_9} or local:RANKS")


def _star(text, hosts, prefix="10.77.0"):
    if not 2 <= hosts <= MOST_HOSTS_OF_A_RACK:
        raise ValueError(f"'{text}' is not accepted: write 2 to {MOST_HOSTS_OF_A_RACK} hosts")
    switch = Switch("sw", f"{prefix}.1", None)
    return Topology(text, (switch,), tuple(_hosts_of(switch, prefix, 0, hosts)))


def _loopback_prefix():
    """First three bytes of the addresses of this run. Concurrent runs use different addresses in 127.0.0.0/8."""
    return f"127.{100 + os.getpid() // 256 % 100}.{os.getpid() % 256}"


def _racks(text, racks, hosts_of_each):
    if not 2 <= racks <= MOST_RACKS or not 1 <= hosts_of_each <= MOST_HOSTS_OF_A_RACK:
        raise ValueError(
            f"'{text}' is not accepted: write 2 to {MOST_RACKS} racks of 1 to {MOST_HOSTS_OF_A_RACK} hosts"
        )
    core = Switch("core", "10.77.0.1", None)
    switches, hosts = [core], []
    for rack in range(racks):
        prefix = f"10.77.{rack + 1}"
        switch = Switch(f"rack{rack}", f"{prefix}.1", core)
        switches.append(switch)
        hosts += _hosts_of(switch, prefix, len(hosts), hosts_of_each)
    return Topology(text, tuple(switches), tuple(hosts))


def _figure_9():
    """Three racks of two hosts. The last rack's switch is the parent of both others."""
    root = Switch("rack2", "10.77.3.1", None)
    others = [Switch(f"rack{rack}", f"10.77.{rack + 1}.1", root) for rack in range(2)]
    racks = enumerate((*others, root))
    hosts = [host for rack, switch in racks for host in _hosts_of(switch, f"10.77.{rack + 1}", 2 * rack, 2)]
    return Topology(FIGURE_9, (root, *others), tuple(hosts))


def _hosts_of(switch, prefix, first, count):
    return [Host(f"h{first + index}", f"{prefix}.{index + 10}", switch) for index in range(count)]
