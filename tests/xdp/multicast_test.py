#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results by IP multicast through a bridge that aggregates and snoops: one datagram for all, and copies where it does not get through.

usage: multicast_test.py ATP
"""

import json

import networks
from networks import wait_until

WORKERS = 4
# Who misses many results of the group in a row doubts it for 30 s, longer than a job here lasts, so that a busy machine
# may see one that has copies to its end.
JOBS = 4


class Multicast(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "w2", "w3", "server"]}

    def setUp(self):
        super().setUp()
        self.network.ip("bridge", "link", "set", "br0", "type", "bridge", "mcast_snooping", "1", "mcast_querier", "1")

    def sent_by_server(self):
        """Packets that have left the server by its link."""
        link = json.loads(self.network.ip("server", "-s", "-j", "link", "show", "dev", "eth0"))[0]
        return link["stats64"]["tx"]["packets"]

    def run_workers(self, flags=(), rounds=3):
        """What rank 0 says of a run, and how many packets the server sent meanwhile."""
        before = self.sent_by_server()
        workers = self.start_workers("4MB", flags, rounds)
        outputs = [worker.communicate(timeout=networks.PATIENCE_S) for worker in workers]
        for worker, (out, error) in zip(workers, outputs, strict=True):
            self.assertEqual(worker.returncode, 0, out + error)
        return json.loads(outputs[0][0]), self.sent_by_server() - before

    def channel(self):
        """What the server says of the one channel there is; nothing before it has joined."""
        return next(iter(self.report("server")["shards"][0]["channels"]), {})

    def start_job_that_hears(self):
        """A job whose workers all hear their group."""
        for _ in range(JOBS):
            workers = self.start_workers("4MB", ("--multicast", "239.255.0.0/16"), rounds=100)
            first, *_ = workers
            wait_until(lambda first=first: self.hears() or first.poll() is not None, "everybody hears the group")
            if first.poll() is None:
                return workers
            self.finish(workers)
        self.fail("nobody hears the group")

    def hears(self):
        channel = self.channel()
        return channel.get("results") == "multicast" and channel["group"].startswith("239.255.")

    def test_the_servers_link_carries_a_result_once(self):
        self.start_switch()
        copies, sent_copies = self.run_workers(rounds=6)
        for _ in range(JOBS):
            once, sent_once = self.run_workers(("--multicast", "on"), rounds=6)
            if once["results"] == "multicast" and sent_once / sent_copies < 1.6 / WORKERS:
                break
        self.assertEqual((copies["results"], copies["multicast_results"]), ("unicast", 0))
        self.assertEqual(once["results"], "multicast")
        self.assertGreater(once["multicast_results"], 5000)
        # A quarter, and what is asked for again where the machine is busy.
        self.assertLess(sent_once / sent_copies, 1.6 / WORKERS)
        packets = self.kernel()["packets"]
        self.assertGreater(packets["completed"], 10000)
        self.assertGreater(packets["released"], 0.9 * packets["completed"], "a result frees what it was made in")

    def test_a_bridge_that_drops_groups_is_told_apart_and_copies_are_sent(self):
        for host in self.workers:
            self.network.ip("bridge", "link", "set", f"to-{host}", "type", "bridge_slave", "mcast_flood", "off")
        self.network.ip("bridge", "link", "set", "br0", "type", "bridge", "mcast_snooping", "0")
        self.start_switch()
        result, _ = self.run_workers(("--multicast", "on"))
        self.assertEqual((result["results"], result["multicast_results"]), ("unicast", 0))

    def test_a_member_that_goes_deaf_is_noticed(self):
        self.start_switch()
        workers = self.start_job_that_hears()
        self.network.ip("bridge", "link", "set", "to-w1", "type", "bridge_slave", "mcast_flood", "off")
        self.network.ip("bridge", "link", "set", "br0", "type", "bridge", "mcast_snooping", "0")
        wait_until(lambda: self.channel().get("results") == "unicast", "one hears it no more")
        self.finish(workers)


if __name__ == "__main__":
    networks.run()
