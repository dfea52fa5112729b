#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers and a server around a Linux bridge that aggregates with `atp switch --xdp`.

usage: bridge_test.py ATP
"""

import hashlib
import os
import subprocess
import sys
import unittest

import networks
from networks import PATIENCE_S, wait_until

# Prints the value of ETHTOOL_GGRO for an interface.
GRO_OF = """
import array, fcntl, socket, struct, sys
asked = array.array("I", [0x2B, 0])
request = struct.pack("16sP16x", sys.argv[1].encode(), asked.buffer_info()[0])
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, request)
print(asked[1])
"""


class Bridge(networks.NetworkTest):
    def test_packets_to_a_server_behind_the_bridge_are_summed_in_the_kernel(self):
        pins = self.new_pins()
        switch = self.start_switch(pins=pins)
        self.assertEqual(sorted(self.network.with_xdp("bridge")), sorted(self.network.ports("bridge")))
        self.finish(self.start_workers("4MB"))
        report = self.kernel()
        self.assertEqual(set(report["kernel"]["interfaces"].values()), {"native"})
        self.assertEqual(report["kernel"]["damaged"], 0)
        packets = report["packets"]
        self.assertGreater(packets["completed"], 1000)
        self.assertGreater(packets["completed"], 0.9 * packets["claimed"])
        self.assertEqual(packets["misfits"], 0, "the kernel table is as large as the table of the server")
        self.assertLess(packets["bypassed"] + packets["collisions"], 0.1 * packets["completed"])
        self.stop(switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])
        pinned = [name for name in os.listdir(pins) if not name.endswith(".debug")]  # added by the kernel
        self.assertEqual(pinned, [], "a clean stop removes all pinned objects")

    def test_packets_to_the_server_of_the_same_host_are_summed_in_the_kernel(self):
        self.start_switch()
        self.finish(self.start_workers("4MB", asked="bridge"))
        packets = self.kernel()["packets"]
        self.assertGreater(packets["completed"], 1000)
        self.assertLess(packets["collisions"] + packets["misfits"], 0.1 * packets["completed"])

    def test_job_is_forwarded_unaggregated_if_one_port_is_not_listed(self):
        ports = self.network.ports("bridge")
        ports.remove("to-w2")
        self.start_switch(ports=ports)
        workers = self.start_workers("4MB", rounds=10)
        fragments = 10 * 4_000_000 // (networks.LANES * 4)
        wait_until(lambda: self.kernel()["kernel"]["passing_jobs"], "the switch forwards the job unaggregated")
        packets = self.kernel()["packets"]
        self.assertLess(packets["completed"], 0.1 * packets["claimed"])
        self.finish(workers)
        self.assertLess(self.kernel()["packets"]["claimed"], 0.9 * fragments)

    def test_results_of_servers_on_the_same_host_free_the_aggregators_that_two_jobs_share(self):
        self.start_switch(memory="1MB")
        both = [self.start_workers("16MB", asked="bridge", meet_at=port) for port in (29500, 29501)]
        for workers in both:
            self.finish(workers)
        packets = self.kernel()["packets"]
        self.assertGreater(packets["completed"], 10_000)
        self.assertGreater(packets["released"], 0.9 * packets["completed"])
        self.assertLess(packets["released"], 1.1 * packets["completed"])
        self.assertLess(packets["collisions"], 0.1 * packets["completed"])

    def merges(self, port):
        """Returns true if the kernel merges frames that the bridge receives at the port."""
        out, error = self.start("bridge", sys.executable, "-c", GRO_OF, port).communicate(timeout=PATIENCE_S)
        self.assertIn(out, ("0\n", "1\n"), error)
        return out == "1\n"

    def test_gro_is_on_while_the_program_is_attached(self):
        self.assertFalse(self.merges("to-w0"))
        switch = self.start_switch()
        self.assertTrue(self.merges("to-w0"))
        self.stop(switch)
        self.assertFalse(self.merges("to-w0"))

    def test_tcp_passes_unchanged(self):
        self.start_switch()
        receive = ("import socket,sys,hashlib;s=socket.create_server(('0.0.0.0',9000));c=s.accept()[0];h=hashlib.sha256();"
                   "[h.update(b) for b in iter(lambda:c.recv(65536),b'')];print(h.hexdigest())")  # fmt: skip
        receiver = self.start("server", sys.executable, "-c", receive)
        data = os.urandom(1 << 20) * 16
        address = (self.network.address("server"), 9000)
        send = f"import socket,sys;socket.create_connection({address}).sendall(sys.stdin.buffer.read())"

        def sent():
            sender = self.network.at("w0", sys.executable, "-c", send)
            return subprocess.run(sender, input=data, capture_output=True, timeout=PATIENCE_S).returncode == 0

        wait_until(sent, "the receiver listens")
        out, _ = receiver.communicate(timeout=PATIENCE_S)
        self.assertEqual(out.strip(), hashlib.sha256(data).hexdigest())


@unittest.skipUnless(os.path.exists("/proc/net/if_inet6"), "this kernel has no IPv6")
class BridgeOverIpv6(networks.NetworkTest):
    ip = 6

    def test_packets_are_summed_in_the_kernel(self):
        switch = self.start_switch()
        self.finish(self.start_workers("4MB"))
        self.assertGreater(self.completed(), 1000)
        self.assertEqual(self.kernel()["kernel"]["damaged"], 0)
        self.stop(switch)


if __name__ == "__main__":
    networks.run()
