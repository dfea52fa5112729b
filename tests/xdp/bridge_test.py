#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Linux bridge that aggregates: workers and a server in network namespaces around it, and `atp switch --xdp` on it.

usage: bridge_test.py ATP. Exit status 77: this machine allows no such network.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ATP = sys.argv[1] if len(sys.argv) > 1 else "atp"
PREFIX = f"atp-xdp-{os.getpid()}-"
WORKERS = ["w0", "w1", "w2"]
HOSTS = [*WORKERS, "server"]
BRIDGE = "bridge"
ADDRESS = {name: f"10.77.0.{number}" for number, name in enumerate([BRIDGE, *HOSTS], start=1)}
PATIENCE_S = 90


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def at(node, *words):
    """The command that runs another one at a node, with the mounts of this process."""
    return ["nsenter", f"--net=/run/netns/{PREFIX}{node}", *words]


def port_of(host):
    return f"to-{host}"


def build():
    for node in [BRIDGE, *HOSTS]:
        call("ip", "netns", "add", PREFIX + node)
        call("ip", "-n", PREFIX + node, "link", "set", "lo", "up")
    call("ip", "-n", PREFIX + BRIDGE, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
    call("ip", "-n", PREFIX + BRIDGE, "addr", "add", ADDRESS[BRIDGE] + "/24", "dev", "br0")
    for host in HOSTS:
        call("ip", "-n", PREFIX + host, "link", "add", "eth0", "type", "veth",
             "peer", "name", port_of(host), "netns", PREFIX + BRIDGE)  # fmt: skip
        call("ip", "-n", PREFIX + host, "addr", "add", ADDRESS[host] + "/24", "dev", "eth0")
        call("ip", "-n", PREFIX + host, "link", "set", "eth0", "up")
        call("ip", "-n", PREFIX + BRIDGE, "link", "set", port_of(host), "master", "br0", "up")
    call("ip", "-n", PREFIX + BRIDGE, "link", "set", "br0", "up")


def remove():
    for node in [BRIDGE, *HOSTS]:
        subprocess.run(["ip", "netns", "del", PREFIX + node], capture_output=True)


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


class Bridge(unittest.TestCase):
    def setUp(self):
        self.processes = []
        self.pins = tempfile.mkdtemp(prefix=PREFIX)
        build()
        self.addCleanup(self.clean_up)
        self.server = self.start("server", "switch", "--listen", "0.0.0.0:4790", "--lanes", "352", "--quiet")
        wait_until(lambda: self.answers("server"), "the server answers")

    def clean_up(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        remove()
        subprocess.run(["umount", self.pins], capture_output=True)
        os.rmdir(self.pins)

    def start(self, node, *words):
        process = subprocess.Popen(at(node, ATP, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def start_switch(self):
        ports = ",".join(port_of(host) for host in HOSTS)
        switch = self.start(BRIDGE, "switch", "--listen", "0.0.0.0:4790", "--xdp", ports, "--xdp-pins", self.pins,
                            "--memory", "64MB", "--lanes", "352", "--quiet")  # fmt: skip
        wait_until(lambda: switch.poll() is not None or self.answers(BRIDGE), "the switch answers")
        if switch.poll() is not None:
            self.fail(switch.stderr.read())
        return switch

    def answers(self, node):
        return self.ask(node) is not None

    def ask(self, node):
        words = at(node, ATP, "stats", ADDRESS[node] + ":4790", "--json", "--timeout", "5s")
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def kernel(self):
        """What the switch inside the kernel says of itself."""
        return next(shard for shard in self.ask(BRIDGE)["shards"] if "kernel" in shard)

    def attached(self):
        links = json.loads(call("ip", "-n", PREFIX + BRIDGE, "-j", "link", "show"))
        return [link["ifname"] for link in links if "xdp" in link]

    def start_workers(self, size):
        common = ["--world", str(len(WORKERS)), "--rendezvous", ADDRESS["w0"] + ":29500",
                  "--switch", ADDRESS["server"] + ":4790", "--bytes", size, "--rounds", "2", "--warmup", "1"]  # fmt: skip
        return [self.start(name, "bench", "--rank", str(rank), *common) for rank, name in enumerate(WORKERS)]

    def finish(self, workers):
        for worker in workers:
            out, error = worker.communicate(timeout=PATIENCE_S)
            self.assertEqual(worker.returncode, 0, out + error)

    def test_sums_of_workers_that_know_nothing_of_it_are_made_inside_the_kernel(self):
        switch = self.start_switch()
        self.assertEqual(sorted(self.attached()), sorted(port_of(host) for host in HOSTS))
        self.finish(self.start_workers("4MB"))
        report = self.kernel()
        self.assertEqual(set(report["kernel"]["interfaces"].values()), {"native"})
        self.assertEqual(report["kernel"]["damaged"], 0)
        packets = report["packets"]
        self.assertGreater(packets["completed"], 1000)
        self.assertGreater(packets["completed"], 0.9 * packets["claimed"])
        self.assertLess(packets["bypassed"] + packets["collisions"], 0.1 * packets["completed"])
        switch.send_signal(signal.SIGINT)
        self.assertEqual(switch.wait(PATIENCE_S), 0)
        self.assertEqual(self.attached(), [])
        pinned = [name for name in os.listdir(self.pins) if not name.endswith(".debug")]  # of the file system itself
        self.assertEqual(pinned, [], "a clean stop leaves nothing pinned")

    def test_a_restart_goes_on_with_what_the_kernel_kept(self):
        first = self.start_switch()
        workers = self.start_workers("4MB")
        wait_until(lambda: self.kernel()["packets"]["completed"] > 100, "the kernel aggregates")
        first.kill()
        first.wait(PATIENCE_S)
        self.assertEqual(len(self.attached()), len(HOSTS), "the program works on without user space")
        second = self.start_switch()
        self.assertGreater(self.kernel()["packets"]["completed"], 100)
        self.finish(workers)
        second.send_signal(signal.SIGINT)
        self.assertEqual(second.wait(PATIENCE_S), 0)
        self.assertEqual(self.attached(), [])

    def test_ordinary_tcp_passes_unharmed(self):
        self.start_switch()
        code = ("import socket,sys,hashlib;s=socket.create_server(('0.0.0.0',9000));c=s.accept()[0];h=hashlib.sha256();"
                "[h.update(b) for b in iter(lambda:c.recv(65536),b'')];print(h.hexdigest())")  # fmt: skip
        receiver = subprocess.Popen(at("server", sys.executable, "-c", code), stdout=subprocess.PIPE, text=True)
        self.processes.append(receiver)
        data = os.urandom(1 << 20) * 16
        send = (
            f"import socket,sys;socket.create_connection(('{ADDRESS['server']}',9000)).sendall(sys.stdin.buffer.read())"
        )

        def sent():
            done = subprocess.run(
                at("w0", sys.executable, "-c", send), input=data, capture_output=True, timeout=PATIENCE_S
            )
            return done.returncode == 0

        wait_until(sent, "the receiver listens")
        out, _ = receiver.communicate(timeout=PATIENCE_S)
        self.assertEqual(out.strip(), hashlib.sha256(data).hexdigest())


def require_network():
    try:
        build()
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"skipped: no such network on this machine: {error}")
        sys.exit(77)
    finally:
        remove()


if __name__ == "__main__":
    require_network()
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
