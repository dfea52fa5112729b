# SPDX-License-Identifier: Apache-2.0
"""Common code for tests of the kernel switch: network namespaces as hosts and Linux bridges, on which `atp` runs.

A test file takes the path of `atp` as its first argument and ends with `networks.run()`. Exit status 77: this machine
cannot create network namespaces or load kernel programs.
"""

import ipaddress
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PATIENCE_S = 90
PORT = 4790
LANES = 352
SKIPPED = 77
SUBNETS = {4: ipaddress.ip_network("10.77.0.0/24"), 6: ipaddress.ip_network("fd77::/64")}


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


def with_port(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class Network:
    """A network of bridges and hosts. `bridges` has the hosts of each bridge, `above` the bridge above a bridge.

    Every node is a namespace with an address. A host's device is eth0; a bridge is br0, and its port to a neighbour is
    called to-NEIGHBOUR.
    """

    def __init__(self, bridges, above=None, ip=4):
        self.bridges = bridges
        self.subnet = SUBNETS[ip]
        self.above = above or {}
        self.prefix = f"atp-xdp-{os.getpid()}-"
        self.nodes = [*bridges, *(host for hosts in bridges.values() for host in hosts)]

    def build(self):
        for node in self.nodes:
            call("ip", "netns", "add", self.prefix + node)
            self.ip(node, "link", "set", "lo", "up")
        for bridge in self.bridges:
            self.ip(bridge, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
            self.set_up(bridge, "br0")
        for bridge, hosts in self.bridges.items():
            for host in hosts:
                self.connect(host, "eth0", bridge)
                self.set_up(host, "eth0")
        for lower, upper in self.above.items():
            self.connect(lower, f"to-{upper}", upper)
            self.ip(lower, "link", "set", f"to-{upper}", "master", "br0", "up")

    def connect(self, node, device, bridge):
        peer = f"to-{node}"
        self.ip(node, "link", "add", device, "type", "veth", "peer", "name", peer, "netns", self.prefix + bridge)
        self.ip(bridge, "link", "set", peer, "master", "br0", "up")

    def set_up(self, node, device):
        at_once = ["nodad"] if self.subnet.version == 6 else []
        self.ip(node, "addr", "add", f"{self.address(node)}/{self.subnet.prefixlen}", "dev", device, *at_once)
        self.ip(node, "link", "set", device, "up")

    def remove(self):
        for node in self.nodes:
            subprocess.run(["ip", "netns", "del", self.prefix + node], capture_output=True)

    def set_mtu(self, mtu):
        """Sets the MTU of every device."""
        for bridge, hosts in self.bridges.items():
            for host in hosts:
                self.ip(host, "link", "set", "eth0", "mtu", str(mtu))
            for port in self.ports(bridge):
                self.ip(bridge, "link", "set", port, "mtu", str(mtu))

    def limit_hosts(self, rate):
        """Limits the rate of each host, so that a tensor takes long enough on any machine. `rate` has a unit of tc."""
        bucket = ["burst", "72kb", "latency", "50ms"]  # the bucket must hold the largest packet that an offload merges
        for hosts in self.bridges.values():
            for host in hosts:
                call(
                    "tc", "-n", self.prefix + host, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, *bucket
                )

    def ip(self, node, *words):
        return call("ip", "-n", self.prefix + node, *words)

    def address(self, node):
        return str(self.subnet[1 + self.nodes.index(node)])

    def endpoint(self, node, port=PORT):
        return with_port(self.address(node), port)

    @property
    def any_endpoint(self):
        return with_port("::" if self.subnet.version == 6 else "0.0.0.0", PORT)

    def ports(self, bridge):
        lower = [other for other, upper in self.above.items() if upper == bridge]
        upper = [self.above[bridge]] if bridge in self.above else []
        return [f"to-{node}" for node in [*self.bridges[bridge], *lower, *upper]]

    def at(self, node, *words):
        """Returns the command line that runs `words` at a node. The command keeps the mounts of this process."""
        return ["nsenter", f"--net=/run/netns/{self.prefix}{node}", *words]

    def with_xdp(self, node):
        """Returns the devices of a node that have an XDP program."""
        links = json.loads(self.ip(node, "-j", "link", "show"))
        return [link["ifname"] for link in links if "xdp" in link]


class NetworkTest(unittest.TestCase):
    """A test with its own network and a user-space switch on the host `server`. clean_up() removes the network.

    Workers are the hosts whose names begin with `w`.
    """

    bridges = {"bridge": ["w0", "w1", "w2", "server"]}
    above = {}
    ip = 4
    server_memory = "64MB"
    server_lanes = LANES
    server_flags = ()
    network_kind = Network

    def setUp(self):
        self.processes = []
        self.pin_folders = []
        self.network = self.network_kind(self.bridges, self.above, self.ip)
        self.addCleanup(self.clean_up)
        self.network.build()
        self.workers = [node for node in self.network.nodes if node.startswith("w")]
        self.start_atp("server", "switch", "--listen", self.network.any_endpoint, "--memory", self.server_memory, "--lanes",
                       str(self.server_lanes), "--groups", "239.0.0.0/8", "--quiet", *self.server_flags)  # fmt: skip
        wait_until(lambda: self.report("server"), "the server answers")

    def clean_up(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.network.remove()
        for folder in self.pin_folders:
            subprocess.run(["umount", folder], capture_output=True)
            os.rmdir(folder)

    def start(self, node, *words):
        process = subprocess.Popen(self.network.at(node, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.PIPE, text=True)  # fmt: skip
        self.processes.append(process)
        return process

    def start_atp(self, node, *words):
        confined = ("--confine", "kill") if words[0] == "switch" else ()
        return self.start(node, ATP, *words, *confined)

    def start_loss(self, node, share, seed):
        """Starts to drop `share` of the ATP packets that arrive at the ports of a bridge."""
        loss = self.start(node, beside_atp("lossy_wire"), str(share), str(seed), *self.network.ports(node))
        self.assertEqual(loss.stdout.readline(), "ready\n")
        return loss

    def stop_loss(self, loss):
        """Ends start_loss(). Returns the number of lost packets, by type."""
        out, error = loss.communicate(timeout=PATIENCE_S)
        self.assertEqual(loss.returncode, 0, error)
        lines = [line.split() for line in out.splitlines()]
        return {name: int(lost) for name, _, lost in lines}

    def new_pins(self):
        self.pin_folders.append(tempfile.mkdtemp(prefix=self.network.prefix))
        return self.pin_folders[-1]

    def start_switch(self, bridge="bridge", ports=None, pins=None, memory="64MB", flags=()):
        """Starts `atp switch --xdp` on `ports`, or on all ports of the bridge."""
        ports = ports or self.network.ports(bridge)
        switch = self.start_atp(bridge, "switch", "--listen", self.network.any_endpoint, "--xdp", ",".join(ports), "--xdp-pins",
                                pins or self.new_pins(), "--memory", memory, "--lanes", str(LANES), "--quiet", *flags)  # fmt: skip
        wait_until(lambda: switch.poll() is not None or self.report(bridge), "the switch answers")
        if switch.poll() is not None:
            self.fail(switch.stderr.read())
        return switch

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def report(self, node):
        """Returns the report of `atp stats`, or None if no switch answers."""
        words = self.network.at(node, ATP, "stats", self.network.endpoint(node), "--json", "--timeout", "5s")
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def kernel(self, bridge="bridge"):
        """Returns the report of the kernel switch."""
        return next(shard for shard in self.report(bridge)["shards"] if "kernel" in shard)

    def completed(self, bridge="bridge"):
        return self.kernel(bridge)["packets"]["completed"]

    def finding(self, node="w0"):
        """Returns the finding of `atp doctor` about the kernel switch. The doctor runs at `node`."""
        words = self.network.at(node, ATP, "doctor", "--switch", self.network.endpoint("bridge"), "--json")
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        checks = json.loads(done.stdout)["checks"]
        return next(check for check in checks if check["name"].startswith("inside the kernel"))

    def start_workers(self, size, flags=(), rounds=3, asked="server", meet_at=29500, logged="warn"):
        """Starts `atp bench` with `rounds` verified sums on every worker. `asked` is the host of their switch."""
        common = ["--world", str(len(self.workers)), "--rendezvous", self.network.endpoint(self.workers[0], meet_at),
                  "--switch", self.network.endpoint(asked), "--bytes", size, "--warmup", "0", "--rounds",
                  str(rounds), "--json", *flags]  # fmt: skip
        return [
            self.start(worker, "env", f"ATP_LOG={logged}", ATP, "bench", "--network", "--rank", str(rank), *common)
            for rank, worker in enumerate(self.workers)
        ]

    def reports(self, workers):
        """Waits for the workers. Returns what rank 0 prints, one report for each size."""
        lines = []
        for worker in workers:
            out, error = worker.communicate(timeout=PATIENCE_S)
            self.assertEqual(worker.returncode, 0, out + error)
            lines += out.splitlines()
        return [json.loads(line) for line in lines]

    def finish(self, workers):
        """Waits for the workers. Returns the number of resends in the report of rank 0."""
        return sum(report["resent"] for report in self.reports(workers))


def beside_atp(tool):
    return os.path.join(os.path.dirname(ATP), tool)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def require_network():
    network = Network({"bridge": ["host"]})
    try:
        network.build()
        require_programs(network)
    except (OSError, subprocess.TimeoutExpired) as error:
        skip(f"this machine cannot create the network: {error}")
    finally:
        network.remove()


def require_programs(network):
    """Raises PermissionError if the kernel forbids programs. Other errors are left to the tests, which report them."""
    with tempfile.TemporaryDirectory() as folder:
        words = [ATP, "switch", "--listen", f"127.0.0.1:{PORT}", "--xdp", "to-host", "--xdp-pins", folder, "--json"]
        switch = subprocess.Popen(
            network.at("bridge", *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        switch.stdout.readline()  # waits for a line after the start, or for the end of the output if the start fails
        switch.send_signal(signal.SIGINT)
        _, error = switch.communicate(timeout=PATIENCE_S)
        subprocess.run(["umount", folder], capture_output=True)
    if "Operation not permitted" in error:
        raise PermissionError(error.strip())


def run():
    require_network()
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])


ATP = sys.argv[1] if len(sys.argv) > 1 else "atp"
