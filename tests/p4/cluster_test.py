# SPDX-License-Identifier: Apache-2.0
"""Jobs with verified sums through BMv2, in network namespaces: `atp bench` on every worker, a server, and a simple_switch
with its agent (`atp switch --p4`) in the place of each bridge.

usage: cluster_test.py ATP
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import bmv2

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "xdp"))

import networks  # noqa: E402

LANES = 8  # a program with few lanes compiles fast
AGGREGATORS = 4096
CONTROL_PORT = 64
# Fragments in flight: with more of them, a packet waits for longer than the timers of the workers.
FEW = ("--window", "16")
FEWER = ("--window", "4")
THRIFT = "127.0.0.1:9090"


class PipelineNetwork(networks.Network):
    """The bridges only have ports, which a simple_switch takes. Hosts send whole frames with checksums."""

    def build(self):
        for node in self.nodes:
            networks.call("ip", "netns", "add", self.prefix + node)
            self.ip(node, "link", "set", "lo", "up")
        for bridge, hosts in self.bridges.items():
            self.ip(bridge, "addr", "add", f"{self.address(bridge)}/32", "dev", "lo")
            for host in hosts:
                self.connect(host, "eth0", bridge)
                self.set_up(host, "eth0")
                networks.call(*self.at(host, "ethtool", "-K", "eth0", "tx", "off"))
            self.ip(bridge, "link", "add", "control", "type", "veth", "peer", "name", "to-control")
            self.ip(bridge, "link", "set", "control", "up")
            self.ip(bridge, "link", "set", "to-control", "up")
        for lower, upper in self.above.items():
            self.connect(lower, f"to-{upper}", upper)
            self.ip(lower, "link", "set", f"to-{upper}", "up")

    def connect(self, node, device, bridge):
        peer = f"to-{node}"
        self.ip(node, "link", "add", device, "type", "veth", "peer", "name", peer, "netns", self.prefix + bridge)
        self.ip(bridge, "link", "set", peer, "up")


class ClusterTest(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "w2", "w3", "server"]}
    network_kind = PipelineNetwork
    # Packets name no index that the pipeline does not have.
    server_memory = "200KB"
    server_lanes = LANES

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program = bmv2.compiled(folder.name, f"ATP_LANES={LANES}", f"ATP_AGGREGATORS={AGGREGATORS}")

    def start_pipeline(self, bridge="bridge"):
        ports = enumerate([*self.network.ports(bridge)])
        words = [word for number, port in ports for word in ("-i", f"{number}@{port}")]
        return self.start(bridge, bmv2.tool("simple_switch"), "--thrift-port", "9090", *words, "-i",
                          f"{CONTROL_PORT}@to-control", str(self.program))  # fmt: skip

    def start_switch(self, bridge="bridge", level=0):
        """Starts a simple_switch and its agent."""
        pipeline = self.start_pipeline(bridge)
        self.wait_for_thrift(bridge)
        self.start_atp(bridge, "switch", "--listen", f"0.0.0.0:{networks.PORT}", "--p4", THRIFT, "--p4-control", "control",
                       "--level", str(level), "--quiet")  # fmt: skip
        networks.wait_until(lambda: self.report(bridge), "the agent answers")
        return pipeline

    def wait_for_thrift(self, bridge):
        """Waits until simple_switch listens."""
        words = self.network.at(bridge, "ss", "-Hltn", "sport = :9090")
        networks.wait_until(lambda: networks.call(*words), "simple_switch listens")


class Star(ClusterTest):
    def test_four_workers_sum_through_it(self):
        self.start_switch()
        self.finish(self.start_workers("20KB", FEW))
        networks.wait_until(lambda: self.completed() > 500, "the pipeline aggregated most fragments")

    def test_loss_is_recovered(self):
        self.start_switch()
        loss = self.start_loss("bridge", 0.01, 1)
        self.finish(self.start_workers("10KB", FEW))
        networks.wait_until(lambda: self.completed() > 250, "the pipeline aggregated most fragments")
        self.assertGreater(sum(self.stop_loss(loss).values()), 0)

    def test_a_restarted_pipeline_serves_again(self):
        pipeline = self.start_switch()
        workers = self.start_workers("10KB", rounds=20, flags=FEW)
        networks.wait_until(lambda: self.completed() > 100, "the pipeline aggregates")
        pipeline.kill()
        pipeline.wait()
        self.start_pipeline()
        networks.wait_until(lambda: self.kernel()["packets"]["completed"] > 100, "the pipeline aggregates again")
        self.finish(workers)


class Racks(ClusterTest):
    bridges = {"rack0": ["w0", "w1"], "rack1": ["w2", "w3"], "spine": ["server"]}
    above = {"rack0": "spine", "rack1": "spine"}

    def test_two_levels_sum(self):
        for bridge, level in (("rack0", 0), ("rack1", 0), ("spine", 1)):
            self.start_switch(bridge, level)
        racks = {worker: rack for rack, hosts in self.bridges.items() for worker in hosts}
        common = ["--world", "4", "--rendezvous", self.network.endpoint("w0", 29500), "--switch",
                  self.network.endpoint("server"), "--bytes", "2KB", "--warmup", "0", "--rounds", "3", "--json", *FEWER]  # fmt: skip
        self.finish([self.start_atp(worker, "bench", "--rank", str(rank), "--rack", racks[worker], *common)
                     for rank, worker in enumerate(self.workers)])  # fmt: skip
        for bridge in self.bridges:
            networks.wait_until(lambda at=bridge: self.completed(at) > 60, f"{bridge} aggregated most fragments")


if __name__ == "__main__":
    bmv2.tool("p4c-bm2-ss")
    bmv2.tool("simple_switch")
    if not shutil.which("ethtool"):
        bmv2.skip("ethtool is missing: hosts send frames without checksums")
    network = PipelineNetwork({"bridge": ["host"]})
    try:
        network.build()
    except (OSError, subprocess.TimeoutExpired) as error:
        bmv2.skip(f"this machine cannot create the network: {error}")
    finally:
        network.remove()
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
