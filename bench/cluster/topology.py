# SPDX-License-Identifier: Apache-2.0
"""What network is wanted: switches in a tree, hosts under them, and who is where. Nothing here touches the machine."""
import re
from dataclasses import dataclass
from typing import Optional

PREFIX_BITS = 16
MOST_RACKS = 100
MOST_HOSTS_OF_A_RACK = 200


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
    """`switches` has a parent before its children; `hosts` stand rack by rack."""
    text: str
    switches: tuple
    hosts: tuple

    def ranks(self, placement):
        """The host of each rank: `packed` fills a rack before the next one, `dealt` deals ranks out over the racks."""
        if placement == "packed":
            return list(self.hosts)
        racks = {}
        for host in self.hosts:
            racks.setdefault(host.switch, []).append(host)
        return [host for of_each_rack in zip(*racks.values()) for host in of_each_rack]

    def links(self):
        """Every link as (below, above): a host and its switch, or a switch and its parent."""
        return ([(switch, switch.parent) for switch in self.switches if switch.parent] +
                [(host, host.switch) for host in self.hosts])


def parse(text):
    """`star:4` or `racks:2x4`; ValueError says what is wrong with anything else."""
    star = re.fullmatch(r"star:(\d+)", text)
    if star:
        return _star(text, int(star[1]))
    racks = re.fullmatch(r"racks:(\d+)x(\d+)", text)
    if racks:
        return _racks(text, int(racks[1]), int(racks[2]))
    raise ValueError(f"{text} is neither star:HOSTS nor racks:RACKSxHOSTS")


def _star(text, hosts):
    if not 2 <= hosts <= MOST_HOSTS_OF_A_RACK:
        raise ValueError(f"{text}: a star has 2 to {MOST_HOSTS_OF_A_RACK} hosts")
    switch = Switch("sw", "10.77.0.1", None)
    return Topology(text, (switch,), tuple(_hosts_of(switch, 0, 0, hosts)))


def _racks(text, racks, hosts_of_each):
    if not 2 <= racks <= MOST_RACKS or not 1 <= hosts_of_each <= MOST_HOSTS_OF_A_RACK:
        raise ValueError(f"{text}: 2 to {MOST_RACKS} racks of 1 to {MOST_HOSTS_OF_A_RACK} hosts each are possible")
    core = Switch("core", "10.77.0.1", None)
    switches, hosts = [core], []
    for rack in range(racks):
        switch = Switch(f"rack{rack}", f"10.77.{rack + 1}.1", core)
        switches.append(switch)
        hosts += _hosts_of(switch, rack + 1, len(hosts), hosts_of_each)
    return Topology(text, tuple(switches), tuple(hosts))


def _hosts_of(switch, third_octet, first, count):
    return [Host(f"h{first + index}", f"10.77.{third_octet}.{index + 10}", switch) for index in range(count)]
