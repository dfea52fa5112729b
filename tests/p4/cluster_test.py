# SPDX-License-Identifier: Apache-2.0
"""Jobs with verified sums through BMv2, in network namespaces: `atp bench` on every worker, a server, and a simple_switch
with its agent (`atp switch --p4`) in the place of each bridge.

usage: cluster_test.py ATP
"""

import functools
import hashlib
import json
import os
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
# On a busy machine, a JOIN waits in the model behind other packets for longer than the usual hold time.
HOLD = ("--hold", "15s")
THRIFT = "127.0.0.1:9090"
GARBAGE = Path(networks.__file__).with_name("garbage.py")
FRAMES = 2_000  # of garbage
FRAMES_A_SECOND = 1_000
# Prints the number of echoes of three requests.
PING = """
import socket, struct, sys
link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
link.settimeout(5)
body = struct.pack(">BBHHH", 8, 0, 0, 7, 7)
total = sum(struct.unpack(">4H", body))
request = struct.pack(">BBHHH", 8, 0, 0xFFFF - total, 7, 7)
echoes = 0
for _ in range(3):
    link.sendto(request, (sys.argv[1], 0))
    echoes += link.recv(100)[20:] == struct.pack(">BBHHH", 0, 0, 0xFFFF - total + 0x800, 7, 7)
print(echoes)
"""


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


class MixedNetwork(PipelineNetwork):
    """The ports of rack1 are those of a Linux bridge, on which the switch inside the kernel runs."""

    def build(self):
        super().build()
        self.ip("rack1", "link", "add", "br0", "type", "bridge")
        self.ip("rack1", "link", "set", "br0", "up")
        for port in self.ports("rack1"):
            self.ip("rack1", "link", "set", port, "master", "br0")
        # The kernel merges frames that it forwards. BMv2 needs each of them, with its checksum.
        offloads = [word for feature in ("tx", "gso", "tso") for word in (feature, "off")]
        networks.call(*self.at("rack1", "ethtool", "-K", "to-spine", *offloads))


@functools.cache
def compiled(source, options):
    """The program. All tests share its file, which ends with this process."""
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    lanes = (f"ATP_LANES={LANES}", f"ATP_AGGREGATORS={AGGREGATORS}")
    return bmv2.compiled(folder.name, *lanes, *options, program=source)


class ClusterTest(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "w2", "w3", "server"]}
    network_kind = PipelineNetwork
    # Packets name no index that the pipeline does not have.
    server_memory = "200KB"
    server_lanes = LANES
    server_flags = HOLD
    source = bmv2.PROGRAM
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.program = compiled(cls.source, cls.options)

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
                       "--level", str(level), "--quiet", *HOLD)  # fmt: skip
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

    def test_other_jobs_complete_after_a_worker_is_killed(self):
        self.start_switch()
        workers = self.start_workers("20KB", FEW, rounds=1000)
        networks.wait_until(lambda: self.completed() > 100, "the pipeline aggregates")
        workers[3].kill()
        for worker in workers[:3]:
            worker.communicate(timeout=networks.PATIENCE_S)
            self.assertGreater(worker.returncode, 0, "an error, and no hang")
        before = self.completed()
        self.finish(self.start_workers("10KB", FEW, meet_at=29501))
        networks.wait_until(lambda: self.completed() > before + 250, "the pipeline aggregates the next job")


class Shared(ClusterTest):
    server_memory = "1600B"

    def test_two_jobs_sum_with_half_of_their_aggregators(self):
        self.start_switch()
        self.assertLessEqual(self.report("server")["shards"][0]["aggregators"], int(FEW[1]))
        both = [self.start_workers("10KB", FEW, meet_at=port) for port in (29500, 29501)]
        for workers in both:
            self.finish(workers)
        networks.wait_until(lambda: self.completed() > 250, "the pipeline aggregated many fragments")


class OfPasses:
    """The program is the one with the registers and passes of a pipeline."""

    source = bmv2.PIPELINE
    options = (f"ATP_PAIRS={LANES // 2}",)


class StarOfPasses(OfPasses, Star):
    """All tests of the other program, and narrow integers, which only that one adds as they are."""

    def test_narrow_integers_travel_as_int32(self):
        self.start_switch()
        for lane_type in ("int16", "int8"):
            before = self.completed()
            workers = self.start_workers("10KB", (*FEW, "--lanes", lane_type), logged="info")
            for worker in workers:
                out, error = worker.communicate(timeout=networks.PATIENCE_S)
                self.assertEqual(worker.returncode, 0, out + error)
                self.assertEqual(error.count("int32 fallback"), 1, error)
            networks.wait_until(lambda at=before: self.completed() > at + 250, "the pipeline aggregated most fragments")


class SharedOfPasses(OfPasses, Shared):
    """Two jobs have two streams."""


class Strangers(ClusterTest):
    bridges = {"bridge": ["w0", "w1", "w2", "w3", "server", "stranger"]}

    def start_garbage(self):
        """Lets `stranger` send invalid frames, derived from gradients of w0."""
        ear = self.start("w0", sys.executable, str(GARBAGE), "listen", "20")
        heard, error = ear.communicate(timeout=networks.PATIENCE_S)
        self.assertEqual(ear.returncode, 0, error)
        station = json.loads(self.network.ip("server", "-j", "link", "show", "eth0"))[0]["address"]
        mouth = self.start("stranger", sys.executable, str(GARBAGE), "send", "1", str(FRAMES),
                           f"{station}/{self.network.address('server')}", self.network.address("w0"), str(FRAMES_A_SECOND))  # fmt: skip
        mouth.stdin.write(heard + "\n")
        mouth.stdin.flush()
        return mouth

    def test_garbage_changes_no_sum(self):
        self.start_switch()
        workers = self.start_workers("20KB", (*FEW, "--audit"), rounds=10)
        garbage = self.start_garbage()
        self.finish(workers)
        _, error = garbage.communicate(timeout=networks.PATIENCE_S)
        self.assertEqual(garbage.returncode, 0, error)
        self.assertLessEqual(len(self.kernel()["jobs"]), 1, "no other job was admitted")
        self.assertGreater(self.kernel()["packets"]["forged"], 0)

    def test_other_traffic_passes_beside_a_job(self):
        self.start_switch()
        workers = self.start_workers("20KB", FEW, rounds=10)
        stranger = self.network.address("stranger")
        echoes = networks.call(*self.network.at("w0", sys.executable, "-c", PING, stranger))
        self.assertEqual(echoes, "3\n")
        data = os.urandom(100_000)
        receive = ("import socket,hashlib;s=socket.create_server(('0.0.0.0',9000));print('ready',flush=True);c=s.accept()[0];"
                   "h=hashlib.sha256();[h.update(b) for b in iter(lambda:c.recv(65536),b'')];print(h.hexdigest())")  # fmt: skip
        receiver = self.start("stranger", sys.executable, "-c", receive)
        receiver.stdout.readline()
        address = (stranger, 9000)
        send = f"import socket,sys;socket.create_connection({address}).sendall(sys.stdin.buffer.read())"
        sender = self.network.at("w0", sys.executable, "-c", send)
        subprocess.run(sender, input=data, check=True, timeout=networks.PATIENCE_S)
        out, _ = receiver.communicate(timeout=networks.PATIENCE_S)
        self.assertEqual(out.strip(), hashlib.sha256(data).hexdigest())
        self.finish(workers)


class Racks(ClusterTest):
    bridges = {"rack0": ["w0", "w1"], "rack1": ["w2", "w3"], "spine": ["server"]}
    above = {"rack0": "spine", "rack1": "spine"}

    def test_two_levels_sum(self):
        for bridge, level in (("rack0", 0), ("rack1", 0), ("spine", 1)):
            self.start_switch(bridge, level)
        self.sum_and_complete()

    def sum_and_complete(self):
        racks = {worker: rack for rack, hosts in self.bridges.items() for worker in hosts}
        common = ["--world", "4", "--rendezvous", self.network.endpoint("w0", 29500), "--switch",
                  self.network.endpoint("server"), "--bytes", "2KB", "--warmup", "0", "--rounds", "3", "--json", *FEWER]  # fmt: skip
        self.finish([self.start_atp(worker, "bench", "--network", "--rank", str(rank), "--rack", racks[worker], *common)
                     for rank, worker in enumerate(self.workers)])  # fmt: skip
        for bridge in self.bridges:
            networks.wait_until(lambda at=bridge: self.completed(at) > 60, f"{bridge} aggregated most fragments")


class RacksOfPasses(OfPasses, Racks):
    """Two levels of pipelines."""


class MixedRacks(Racks):
    network_kind = MixedNetwork

    @classmethod
    def setUpClass(cls):
        network = networks.Network({"bridge": ["host"]})
        try:
            network.build()
            networks.require_programs(network)
        except PermissionError as error:
            raise unittest.SkipTest(f"this machine cannot load kernel programs: {error}") from error
        finally:
            network.remove()
        super().setUpClass()

    def test_two_levels_sum(self):
        self.start_switch("rack0", 0)
        self.start_switch("spine", 1)
        networks.NetworkTest.start_switch(self, "rack1")
        self.sum_and_complete()


def require_tools():
    """Skips the test if a tool or a right is missing."""
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


if __name__ == "__main__":
    require_tools()
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
