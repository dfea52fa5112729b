# SPDX-License-Identifier: Apache-2.0
"""Networks that bench/agreement builds from namespaces and simulates: the words of both programs, and random draws."""

import math
import os
import random
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import page

LABORATORY = os.path.join(page.ROOT, "build/release/bin/atp-lab")
SWITCH = os.path.join(page.ROOT, "build/release/bin/atp")
OPERATIONS = 5  # at least
SECONDS_OF_JOBS = 4  # several jobs run at least as long, since they begin some tenths of a second apart
HEADERS = 42  # bytes of a frame outside of the packet: 14 Ethernet, 20 IPv4, 8 UDP
QUEUE_BYTES = 1 << 20
BURST_BYTES = 72 * 1024  # BURST_BYTES of bench/cluster/network.py
MESSAGE_BYTES = 65_536 - 128  # UdpSender::most_message_bytes: packets that a rank hands to the kernel at once
SLOTS_OF_A_PACKET = 4  # slots_per_packet in src/machines/protocol
# Processes of a host with few processors wait for each other. Where memory is scarce, one such pause decides whether a
# job keeps its packets in the switches: after 6 ms or more of the first switch they collide until the end.
PAUSE = "s0@20ms+10ms"  # within the warm-up
SAMPLE = "2ms"
DEFAULTS = page.provenance.defaults_of(Path(page.ROOT))
LANES = page.provenance.lanes_of_frame(DEFAULTS["header_bytes"])  # as jobs choose
PACKET_BYTES = DEFAULTS["header_bytes"] + LANES * page.provenance.LANE

MOST_MBPS = 800  # of all hosts together: beyond, two processors decide instead of the links
SHAPES_OF_RACKS = ((2, 2), (2, 3), (2, 4), (3, 2), (4, 2))


def aggregator_bytes():
    """Memory of one aggregator. Only the switch knows it, and says so when it is given too little."""
    command = [SWITCH, "switch", "--listen", "127.0.0.1:0", "--lanes", str(LANES), "--memory", "1"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
    found = re.search(r"use at least (\d+) bytes", refused)
    if not found:
        raise RuntimeError(f"atp switch does not name the memory of an aggregator: {refused.strip()}")
    return int(found[1])


@dataclass(frozen=True)
class TestBed:
    """One network and its work. `measured_by` and `simulated_by` give the words of bench/cluster/run and `atp-lab
    simulate` that describe it, equal in all that both know."""

    topology: str
    rate_mbps: int
    megabytes: int
    uplink_mbps: Optional[int] = None  # None: as a host's link
    jobs: int = 1
    window: int = DEFAULTS["window"]  # packets in flight of a rank
    aggregators: Optional[int] = None  # of each switch; None: as many as the default memory has
    loss: float = 0  # share of the frames, in each direction
    lossy_host: Optional[int] = None  # only its link loses frames; None: all links do
    halving: bool = True  # of windows, on loss

    @property
    def has_racks(self):
        return self.topology.startswith("racks")

    @property
    def hosts(self):
        shape = [int(number) for number in self.topology.partition(":")[2].split("x")]
        return shape[0] * (shape[1] if self.has_racks else 1)

    @property
    def operations(self):
        together = SECONDS_OF_JOBS * self.rate_mbps / (8 * self.megabytes * self.jobs)
        return max(OPERATIONS, math.ceil(together)) if self.jobs > 1 else OPERATIONS

    def at_half_rate(self):
        uplink = self.uplink_mbps and max(1, self.uplink_mbps // 2)
        return TestBed(**{**vars(self), "rate_mbps": max(1, self.rate_mbps // 2), "uplink_mbps": uplink})

    def describe(self):
        """A short label for tables and charts."""
        rates = f"{self.rate_mbps}/{self.uplink_mbps}" if self.uplink_mbps else f"{self.rate_mbps}"
        where = "" if self.lossy_host is None else f" h{self.lossy_host}"
        return ", ".join(
            [
                f"{self.topology.partition(':')[2]} {rates} Mbit",
                f"{self.jobs} x {self.megabytes} MB",
                f"W {self.window}",
                *([f"A {self.aggregators}"] if self.aggregators else []),
                *([f"loss {self.loss:.2%}{where}"] if self.loss else []),
            ]
        )

    def measured_by(self, rounds):
        """Arguments of bench/cluster/run."""
        words = f"--topology {self.topology} --rate {self.rate_mbps}mbit --queue {QUEUE_BYTES}".split()
        if self.has_racks:
            words += ["--uplink", f"{self.uplink_mbps or self.rate_mbps}mbit"]
        words += (
            f"--bytes {self.megabytes}MB --jobs {self.jobs} --rounds {rounds} --operations {self.operations}".split()
        )
        if self.aggregators:
            words += ["--memory", str(self.aggregators * aggregator_bytes())]
        words += [word for fault in self._faults() for word in ("--fault", fault)]
        halving = "" if self.halving else " --no-halving"
        return [*words, "--systems", "atp", f"--rank-flags=--window {self.window}{halving}"]

    def _faults(self):
        """With any fault, also one that no frame meets, links carry single frames as in the simulator. Otherwise they
        carry up to 64 KiB at once, and each frame of them needs an aggregator at the same time."""
        if not self.loss:
            return [f"drop>{page.provenance.MTU}@hosts"]
        places = ["hosts", "uplinks"] if self.has_racks else ["hosts"]
        if self.lossy_host is not None:
            places = [f"host{self.lossy_host}"]
        return [f"loss={self.loss:.6f}@{place}" for place in places]

    def simulated_by(self, seed):
        """Arguments of atp-lab simulate. One more iteration stands for the warm-up of bench/cluster."""
        words = f"--topology {self.topology} --rate {self.rate_mbps}Mbps --seed {seed}".split()
        if self.uplink_mbps:
            words += ["--uplink", f"{self.uplink_mbps}Mbps"]
        words += f"--overhead {HEADERS} --queue {QUEUE_BYTES} --burst {BURST_BYTES} --ecn 0 --delay 50us".split()
        words += f"--bytes {self.megabytes}MB --jobs {self.jobs} --iterations {self.operations + 1}".split()
        words += f"--pause {PAUSE} --sample {SAMPLE}".split()
        words += f"--lanes {LANES} --no-audit --largest-window {self.window}".split()
        words += f"--window {self.window * SLOTS_OF_A_PACKET} --train {MESSAGE_BYTES // PACKET_BYTES}".split()
        if self.aggregators:
            words += ["--aggregators", str(self.aggregators)]
        if self.loss:
            words += ["--loss", f"{self.loss:.6f}"]
        if self.lossy_host is not None:
            words += ["--lossy-worker", str(self.lossy_host)]
        return words if self.halving else [*words, "--no-congestion-control"]


def draw(seed, number):
    """Network `number` of a seed: links slow enough that processors do not decide."""
    chance = random.Random(f"{seed}/{number}")
    if chance.random() < 0.5:
        hosts, of_rack = chance.randint(2, 8), None
        topology = f"star:{hosts}"
    else:
        racks, of_rack = chance.choice(SHAPES_OF_RACKS)
        hosts, topology = racks * of_rack, f"racks:{racks}x{of_rack}"
    rate = chance.randint(25, min(200, MOST_MBPS // hosts))
    uplink = chance.uniform(0.5, 1) * of_rack * rate if of_rack else None
    jobs, window = chance.randint(1, 3), chance.choice((32, 64, 128))
    share_of_memory = chance.uniform(0.25, 0.5) if chance.random() < 0.5 else None
    loss = round(10 ** chance.uniform(-3, -2), 4) if chance.random() < 2 / 3 else 0
    return TestBed(
        topology,
        rate,
        chance.randint(1, 8),
        uplink and round(uplink),
        jobs,
        window,
        share_of_memory and round(share_of_memory * jobs * window),
        loss,
        chance.randrange(hosts) if loss and chance.random() < 0.5 else None,
    )
