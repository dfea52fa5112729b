# SPDX-License-Identifier: Apache-2.0
"""The options of a process group. tools/write_options writes this from src/drivers/comm/option_table.cc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple


@dataclass(frozen=True)
class Options:
    """Settings of a process group. If an option is None, its environment variable or its default applies.

    Attributes:
        switch: Address of the switch of this rank (host:port or [host]:port). Variable ATP_SWITCH. [the switch
            of rank 0; 'none': this rank's rack has no switch]
        listen: Address at which this rank may serve a part of the sums to the other hosts (host:port, host:0
            for any port, or host:first-last). Variable ATP_LISTEN. [the address that reaches MASTER_ADDR, and
            any port]
        topology: File that assigns ranks to switches; it replaces the address of the switch (the path of a TOML
            file). Variable ATP_TOPOLOGY. [none]
        rack: Name of the rack of this rank; needed if the racks have switches that workers do not address (any
            name). Variable ATP_RACK. [none]
        link_rate: Rate of the link of this host in each direction, to choose a layout (such as 25gbit).
            Variable ATP_LINK_RATE. [host_rate in the topology file, otherwise the slowest that a rank names]
        uplink: Name of the link above the rack of this host, which ranks with the same name share (any name).
            Variable ATP_UPLINK. [the name in the topology file or in rack, otherwise the switch]
        uplink_rate: Rate of that link in each direction, to choose a layout (such as 25gbit). Variable
            ATP_UPLINK_RATE. [uplink_rate in the topology file, otherwise the rate of the slowest host]
        channels: Independent streams of a rank, each with an I/O thread (1 to 64). Variable ATP_CHANNELS. [1]
        scaling: Scale of float values: fixed for the job, or following the magnitude of earlier sums (fixed,
            dynamic). Variable ATP_SCALING. [dynamic]
        lanes: Type of a scaled value in a packet; auto: int16 for bfloat16 and float16 if the scale is dynamic
            (int32, int16, auto, int8). Variable ATP_LANES. [auto]
        multicast: Send each result once, to a multicast group, if every rank receives the group (off, on, or
            IPv4 groups such as 239.192.0.0/16). Variable ATP_MULTICAST. [off]
        server: Layout: where the servers are, and which switches add (auto, switch, hosts, leaves, racks,
            colocated, or dedicated:host:port[,host:port...]). Variable ATP_SERVER. [auto]
        host_level: Ranks that can share memory sum there (true, on, false or off). Variable ATP_HOST_LEVEL.
            [true]
        host_name: Name of the host of this rank; ranks with different names never share memory (any word).
            Variable ATP_HOST_NAME. [none]
        timeout: Longest duration of an operation, and of forming a group (seconds above 0, or a timedelta).
            Variable ATP_TIMEOUT. [the timeout of init_process_group, 30 minutes unless given]
        job_name: Name of the job, which switches show beside its number (any name, of which the first 63 bytes
            count). Variable ATP_JOB_NAME. [torchrun's or Slurm's id of the job]
        trace: File that gets a line for each packet sent and received (a path, with %r for the rank, %p for the
            process and %h for the host). Variable ATP_TRACE. [none]
        key_file: Key of the team, which seals what ranks tell each other and proves to switches who joins (a
            path). Variable ATP_KEY_FILE. [none]
        seal: What ranks prove with their key: of each operation, that no switch changed its sums (none,
            operation). Variable ATP_SEAL. [none]
    """

    switch: str | None = None
    listen: str | None = None
    topology: str | os.PathLike[str] | None = None
    rack: str | None = None
    link_rate: str | None = None
    uplink: str | None = None
    uplink_rate: str | None = None
    channels: int | None = None
    scaling: str | None = None
    lanes: str | None = None
    multicast: str | None = None
    server: str | None = None
    host_level: str | None = None
    host_name: str | None = None
    timeout: timedelta | float | None = None
    job_name: str | None = None
    trace: str | None = None
    key_file: str | None = None
    seal: str | None = None


@dataclass(frozen=True)
class PlainSettings:
    """Options after look-up and validation, except of those that options.py treats by rules of their own."""

    listen: str
    rack: str
    link_rate: str
    uplink: str
    uplink_rate: str
    channels: int
    scaling: str
    lanes: str
    multicast: str
    host_level: str
    host_name: str
    job_name: str
    trace: str
    key_file: str
    seal: str


class Row(NamedTuple):
    variable: str  # of the environment
    native: str = ""  # name in the table; empty: options.py treats it by rules of its own
    default: str = ""
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None


ROWS = {
    "switch": Row("ATP_SWITCH"),
    "listen": Row("ATP_LISTEN", "listen", ""),
    "topology": Row("ATP_TOPOLOGY"),
    "rack": Row("ATP_RACK", "rack", ""),
    "link_rate": Row("ATP_LINK_RATE", "link_rate", "0"),
    "uplink": Row("ATP_UPLINK", "uplink", ""),
    "uplink_rate": Row("ATP_UPLINK_RATE", "uplink_rate", "0"),
    "channels": Row("ATP_CHANNELS", "channels", "1", bounds=(1, 64)),
    "scaling": Row("ATP_SCALING", "scaling", "dynamic", choices=("fixed", "dynamic")),
    "lanes": Row("ATP_LANES", "lane_type", "auto", choices=("int32", "int16", "auto", "int8")),
    "multicast": Row("ATP_MULTICAST", "multicast", "off"),
    "server": Row("ATP_SERVER"),
    "host_level": Row("ATP_HOST_LEVEL", "host_level", "true"),
    "host_name": Row("ATP_HOST_NAME", "host_name", ""),
    "timeout": Row("ATP_TIMEOUT"),
    "job_name": Row("ATP_JOB_NAME", "job_name", ""),
    "trace": Row("ATP_TRACE", "trace", ""),
    "key_file": Row("ATP_KEY_FILE", "key_file", ""),
    "seal": Row("ATP_SEAL", "seal", "none", choices=("none", "operation")),
}
