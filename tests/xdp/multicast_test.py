#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results by IP multicast through a bridge that aggregates and snoops. The server sends one datagram to all workers.
If a worker does not receive the group, the server sends unicast copies.

usage: multicast_test.py ATP
"""

import json

import networks
from networks import wait_until

WORKERS = 4


class Multicast(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "w2", "w3", "server"]}

    def setUp(self):
        super().setUp()
        # A bridge floods multicast to all ports until its querier has run for the response interval: here 0.1 s.
        for option, value in ("query_response_interval", 10), ("snooping", 1), ("querier", 1):
            self.network.ip("bridge", "link", "set", "br0", "type", "bridge", f"mcast_{option}", str(value))

    def sent_by_server(self):
        """Returns the number of packets that have left the server on its link."""
        link = json.loads(self.network.ip("server", "-s", "-j", "link", "show", "dev", "eth0"))[0]
        return link["stats64"]["tx"]["packets"]

    def run_workers(self, flags=(), rounds=3):
        """Runs a job. Returns the report of rank 0 and the number of packets that the server sent during the run."""
        before = self.sent_by_server()
        workers = self.start_workers("4MB", flags, rounds)
        outputs = [worker.communicate(timeout=networks.PATIENCE_S) for worker in workers]
        for worker, (out, error) in zip(workers, outputs, strict=True):
            self.assertEqual(worker.returncode, 0, out + error)
        return json.loads(outputs[0][0]), self.sent_by_server() - before

    def channel(self):
        """Returns the report of the server about the only channel, or {} before the channel has joined."""
        return next(iter(self.report("server")["shards"][0]["channels"]), {})

    def listeners(self):
        return ["bridge", "-n", self.network.prefix + "bridge", "mdb"]

    def groups(self):
        """Returns the IPv4 groups to which the bridge's port of worker 1 leads. A switch reports none."""
        rows = networks.call(*self.listeners(), "show").splitlines()
        words = [row.split() for row in rows if "port to-w1 " in row]
        return sorted({row[row.index("grp") + 1] for row in words if row[row.index("grp") + 1].startswith("239.")})

    def test_link_of_the_server_carries_each_result_once(self):
        self.start_switch()
        once, sent_once = self.run_workers(("--multicast", "on"), rounds=6)
        packets = self.kernel()["packets"]
        self.assertEqual(once["results"], "multicast")
        self.assertGreater(once["multicast_results"], 5000)
        # The server sends one datagram instead of four. On a busy machine, it also sends answers to PROBEs.
        self.assertLess(sent_once / packets["completed"], 0.4 * WORKERS)
        self.assertGreater(packets["completed"], 10000)
        self.assertGreater(packets["released"], 0.9 * packets["completed"], "each result frees its aggregator")

    def test_bridge_that_drops_groups_causes_copies(self):
        for host in self.workers:
            self.network.ip("bridge", "link", "set", f"to-{host}", "type", "bridge_slave", "mcast_flood", "off")
        self.network.ip("bridge", "link", "set", "br0", "type", "bridge", "mcast_snooping", "0")
        self.start_switch()
        result, _ = self.run_workers(("--multicast", "on"))
        self.assertEqual((result["results"], result["multicast_results"]), ("unicast", 0))

    def test_worker_that_stops_receiving_the_group_causes_copies(self):
        self.start_switch()
        workers = self.start_workers("4MB", ("--multicast", "239.255.0.0/16"), rounds=100)
        wait_until(lambda: self.channel().get("results") == "multicast", "all workers receive the group")
        wait_until(lambda: self.groups(), "the bridge knows the listeners")
        self.assertTrue(all(group.startswith("239.255.") for group in self.groups()), self.groups())
        self.network.ip("bridge", "link", "set", "to-w1", "type", "bridge_slave", "mcast_flood", "off")
        self.network.ip("bridge", "link", "set", "br0", "type", "bridge", "mcast_snooping", "0")
        wait_until(lambda: self.channel().get("results") == "unicast", "one worker no longer receives the group")
        self.finish(workers)

    def test_worker_rejoins_a_group_that_the_bridge_forgot(self):
        for worker in self.workers:
            networks.call(*self.network.at(worker, "sysctl", "-qw", "net.ipv4.igmp_qrv=1"))  # one report per join
        self.start_switch()
        workers = self.start_workers("4MB", ("--multicast", "on"), rounds=200)
        wait_until(lambda: self.channel().get("results") == "multicast", "all workers receive the group")
        wait_until(lambda: self.groups(), "the bridge knows the listener")
        for group in self.groups():  # each channel has its own
            networks.call(*self.listeners(), "del", "dev", "br0", "port", "to-w1", "grp", group)
        wait_until(lambda: self.channel().get("results") == "unicast", "one worker no longer receives the group")
        wait_until(lambda: self.channel().get("results") == "multicast", "all workers receive the group again")
        self.finish(workers)


if __name__ == "__main__":
    networks.run()
