#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Congestion marks of `atp switch --xdp`: packets of every sender that leave a port get CE above 0.98 of its rate.

usage: marks_test.py ATP
"""

import json
import signal
import socket
import statistics
import sys
import unittest

import networks
from networks import PATIENCE_S, wait_until

MBIT = 1_000_000
LINK = 5 * MBIT  # slow, so that a pause of a sender's process is short beside the time in which the queue fills
CE, ECT, NOT_ECT = 3, 2, 0
SECONDS = 3

# Sends datagrams of 1,400 bytes at a steady rate in bit/s on the wire, and never catches up after a pause.
SEND = """
import socket, sys, time
address, port, rate, ecn, seconds = sys.argv[1], *map(int, sys.argv[2:6])
sender = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
if ":" in address:
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, ecn)
else:
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
gap = (1400 + 42) * 8 / rate
next = time.monotonic()
end = next + seconds
while next < end:
    sender.sendto(bytes(1400), (address, port))
    next += gap
    time.sleep(max(0, next - time.monotonic()))
    next = max(next, time.monotonic() - gap)
"""

# Prints how many datagrams arrived, and how many of them with CE, once none has come for a while.
RECEIVE = """
import json, socket, sys
version, port = map(int, sys.argv[1:3])
receiver = socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET, socket.SOCK_DGRAM)
if version == 6:
    receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
else:
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
receiver.bind(("", port))
print("ready", flush=True)
arrived = marked = 0
receiver.settimeout(20)
try:
    while True:
        _, ancillary, _, _ = receiver.recvmsg(2048, 256)
        arrived += 1
        marked += any(value[0] & 3 == 3 for _, _, value in ancillary)
        receiver.settimeout(2)
except TimeoutError:
    print(json.dumps({"arrived": arrived, "marked": marked}))
"""

RECEIVE_STREAM = (
    "import socket; s = socket.create_server(('0.0.0.0', 9000)); print('ready', flush=True); c = s.accept()[0];"
    "print(sum(map(len, iter(lambda: c.recv(65536), b''))))"
)
SEND_STREAM = "import socket, sys; socket.create_connection((sys.argv[1], 9000)).sendall(bytes(int(sys.argv[2])))"


class Marks(networks.NetworkTest):
    def shape(self, *neighbours, rate=LINK):
        """Limits the rate of the bridge's ports to some neighbours, with a queue that drops nothing."""
        for neighbour in neighbours:
            words = ["root", "tbf", "rate", f"{rate}bit", "burst", "15kb", "limit", "4mb"]
            networks.call("tc", "-n", self.network.prefix + "bridge", "qdisc", "add", "dev", f"to-{neighbour}", *words)

    def receive(self, host, port):
        receiver = self.start(host, sys.executable, "-c", RECEIVE, str(self.ip), str(port))
        self.assertEqual(receiver.stdout.readline(), "ready\n")
        return receiver

    def send(self, host, to, port, rate, ecn=ECT):
        address = to if "." in to else self.network.address(to)
        words = map(str, (address, port, int(rate), ecn, SECONDS))
        return self.start(host, sys.executable, "-c", SEND, *words)

    def received(self, receiver):
        out, error = receiver.communicate(timeout=PATIENCE_S)
        self.assertEqual(receiver.returncode, 0, error)
        return json.loads(out)

    def shares(self, *flows):
        """Sends datagrams to the server, each flow (host, rate, ecn). Returns the share of each that was marked."""
        receivers = [self.receive("server", 9000 + i) for i in range(len(flows))]
        senders = [self.send(host, "server", 9000 + i, rate, ecn) for i, (host, rate, ecn) in enumerate(flows)]
        for sender in senders:
            self.assertEqual(sender.wait(PATIENCE_S), 0)
        counts = [self.received(receiver) for receiver in receivers]
        for count in counts:
            self.assertGreater(count["arrived"], 100)
        return [count["marked"] / count["arrived"] for count in counts]

    def marked(self):
        """Returns the frames that the switch has marked, by port."""
        return {port["interface"]: port["marked"] for port in self.kernel()["kernel"]["marks"]}

    def queued(self, neighbour):
        """Returns the bytes that wait at the bridge's port to a neighbour."""
        words = ("-s", "-j", "-n", self.network.prefix + "bridge", "qdisc", "show", "dev", f"to-{neighbour}", "root")
        return json.loads(networks.call("tc", *words))[0]["backlog"]

    def netstat(self, host, name):
        """Returns a counter of the kernel's IP or TCP."""
        lines = networks.call(*self.network.at(host, "cat", "/proc/net/netstat")).splitlines()
        for names, values in zip(lines[::2], lines[1::2]):
            counters = dict(zip(names.split(), values.split()))
            if name in counters:
                return int(counters[name])
        raise KeyError(name)


class MarksOfFlows(Marks):
    def test_datagrams_are_marked_above_the_rate_of_the_link_and_not_below(self):
        self.shape("server")
        self.start_switch(flags=["--link-rate", f"to-server={LINK}"])
        self.assertEqual(self.shares(("w0", LINK / 4, ECT), ("w1", LINK / 4, ECT)), [0, 0], "half of the rate")
        self.assertEqual(self.marked(), {"to-server": 0})
        for share in self.shares(("w0", LINK, ECT), ("w1", LINK, ECT)):
            self.assertGreater(share, 0.5, "twice the rate")
        self.assertGreater(self.marked()["to-server"], 100)
        self.assertEqual(self.netstat("server", "InCsumErrors"), 0)

    def test_bytes_of_other_senders_count_and_only_ecn_capable_packets_are_marked(self):
        self.shape("server")
        self.start_switch(flags=["--link-rate", str(LINK)])
        ours, others = self.shares(("w0", LINK / 2, ECT), ("w1", 1.5 * LINK, NOT_ECT))
        self.assertGreater(ours, 0.5)
        self.assertEqual(others, 0)
        self.assertEqual([self.marked()[f"to-w{i}"] for i in range(3)], [0, 0, 0], "nothing left there")

    def test_nothing_is_marked_without_marks_or_without_a_rate(self):
        self.shape("server")
        switch = self.start_switch()
        self.assertEqual(self.shares(("w0", 2 * LINK, ECT)), [0])
        self.stop(switch)
        self.start_switch(flags=["--marks"])  # a veth reports a rate that it does not have
        self.assertEqual(self.shares(("w0", 2 * LINK, ECT)), [0])
        self.assertEqual(self.kernel()["kernel"]["marks"], [])

    def test_copy_of_a_broadcast_is_marked_at_the_congested_port_only(self):
        self.start_switch(flags=["--link-rate", f"to-w1={LINK},to-w2=100Gbit"])
        receivers = {host: self.receive(host, 9000) for host in ("w1", "w2", "server")}
        sender = self.send("w0", "10.77.0.255", 9000, 2 * LINK)
        self.assertEqual(sender.wait(PATIENCE_S), 0)
        counts = {host: self.received(receiver) for host, receiver in receivers.items()}
        self.assertGreater(counts["w1"]["marked"], 0.5 * counts["w1"]["arrived"])
        self.assertEqual((counts["w2"]["marked"], counts["server"]["marked"]), (0, 0))
        self.assertGreater(counts["w2"]["arrived"], 100)
        self.assertEqual(counts["w2"]["arrived"], counts["w1"]["arrived"])

    def test_tcp_with_ecn_reacts_to_marks_and_keeps_the_queue_short(self):
        rate = 50 * MBIT
        self.shape("server", rate=rate)
        for host in ("w0", "server"):
            networks.call(*self.network.at(host, "sysctl", "-qw", "net.ipv4.tcp_ecn=1"))
        self.start_switch(flags=["--link-rate", str(rate)])
        receiver = self.start("server", sys.executable, "-c", RECEIVE_STREAM)
        self.assertEqual(receiver.stdout.readline(), "ready\n")
        sender = self.start("w0", sys.executable, "-c", SEND_STREAM, self.network.address("server"), "20000000")
        queued = []
        while sender.poll() is None:
            queued.append(self.queued("server"))
        out, _ = receiver.communicate(timeout=PATIENCE_S)
        self.assertEqual(out, "20000000\n")
        self.assertLess(statistics.median(queued), 200_000, "without marks, it is a megabyte and more")
        self.assertGreater(self.netstat("server", "InCEPkts"), 0)
        self.assertGreater(self.netstat("w0", "TCPDeliveredCE"), 0)
        self.assertEqual(self.netstat("server", "InCsumErrors"), 0)


class MarksWithoutAKernelSwitch(Marks):
    """`atp switch --link-rate` without --xdp: only the program at tc egress."""

    def start_marking(self, *flags):
        words = ["--listen", self.network.any_endpoint, "--link-rate", f"to-server={LINK}"]
        switch = self.start_atp("bridge", "switch", *words, *flags)
        wait_until(lambda: switch.poll() is not None or self.report("bridge"), "the switch answers")
        return switch

    def filters(self):
        words = ("-n", self.network.prefix + "bridge", "filter", "show", "dev", "to-server", "egress")
        return networks.call("tc", *words)

    def test_packets_are_marked_until_the_switch_stops(self):
        self.shape("server")
        killed = self.start_marking("--quiet")
        killed.kill()
        killed.wait(PATIENCE_S)
        self.assertIn("atp_egress", self.filters(), "it stays if the switch is killed")
        switch = self.start_marking()
        self.assertEqual(self.shares(("w0", LINK / 2, ECT)), [0])
        self.assertGreater(self.shares(("w0", 2 * LINK, ECT))[0], 0.5)
        switch.send_signal(signal.SIGINT)
        out, error = switch.communicate(timeout=PATIENCE_S)
        self.assertEqual(switch.returncode, 0, error)
        self.assertRegex(out, r"marks +to-server above 0.98 of 5 Mbit/s\n")
        self.assertRegex(out, r"marked \d\d+ frames that left to-server\nstopped\n")
        self.assertNotIn("atp_egress", self.filters())

    def test_kernel_switch_marks_beside_a_marker_that_was_killed(self):
        killed = self.start_marking("--quiet")
        killed.kill()
        killed.wait(PATIENCE_S)
        switch = self.start_switch(flags=["--link-rate", f"to-server={LINK}"])
        self.assertEqual(self.kernel()["kernel"]["without_release"], [])
        self.stop(switch)
        self.assertIn("atp_egress", self.filters(), "the marker's")

    def test_unknown_interface_is_named(self):
        switch = self.start_atp("bridge", "switch", "--link-rate", "gone=1Gbit")
        _, error = switch.communicate(timeout=PATIENCE_S)
        self.assertEqual(switch.returncode, 2)
        self.assertIn("gone", error)


class MarksOfSums(Marks):
    """A job over slow links. Its first window, 128 packets, is longer than the queue that a port may have."""

    rate = 20 * MBIT

    def halvings(self, *flags):
        """Sums through the switch. Returns the halvings of rank 0, and the fragments that the server returned marked."""
        self.start_switch(flags=flags)
        workers = self.start_workers("1MB")
        out, error = workers[0].communicate(timeout=PATIENCE_S)
        for worker in workers:
            worker.communicate(timeout=PATIENCE_S)
            self.assertEqual(worker.returncode, 0, error)
        server = self.report("server")["shards"][0]
        return json.loads(out)["halvings"], server["udp"]["marked"]

    def test_gradients_beyond_the_rate_of_the_servers_port_halve_windows(self):
        self.shape("server", rate=self.rate)
        halvings, marked = self.halvings("--link-rate", f"to-server={self.rate}")
        self.assertGreater(halvings, 0)
        self.assertGreater(marked, 0, "the marks are in the gradients' own IP headers")
        self.assertGreater(self.marked()["to-server"], 0)
        self.assertGreater(self.completed(), 500, "the kernel still adds")

    def test_results_beyond_the_rate_of_a_workers_port_halve_windows(self):
        self.shape("w2", rate=self.rate)
        halvings, marked = self.halvings("--link-rate", f"to-w2={self.rate}")
        self.assertGreater(halvings, 0, "rank 0 halves for the downlink of rank 2")
        self.assertEqual(marked, 0)
        self.assertGreater(self.marked()["to-w2"], 0)

    def test_without_marks_no_window_halves(self):
        self.shape("server", "w2", rate=self.rate)
        self.assertEqual(self.halvings(), (0, 0))


@unittest.skipUnless(socket.has_ipv6, "this machine has no IPv6")
class MarksOverIpv6(Marks):
    ip = 6

    def test_datagrams_are_marked_above_the_rate_of_the_link_and_not_below(self):
        self.shape("server")
        self.start_switch(flags=["--link-rate", str(LINK)])
        self.assertEqual(self.shares(("w0", LINK / 2, ECT)), [0])
        self.assertGreater(self.shares(("w0", 2 * LINK, ECT))[0], 0.5)


if __name__ == "__main__":
    networks.run()
