#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several kernel switches: one per rack and one above the racks. Also one kernel switch with two jobs.

usage: levels_test.py ATP
"""

import networks


class Racks(networks.NetworkTest):
    bridges = {"rack0": ["w0", "w1"], "rack1": ["w2", "w3"], "spine": ["server"]}
    above = {"rack0": "spine", "rack1": "spine"}

    def start_switches(self):
        for bridge, level in (("rack0", 0), ("rack1", 0), ("spine", 1)):
            self.start_switch(bridge, flags=("--level", str(level)))

    def start_racks(self, flags=(), size="4MB"):
        """Starts `atp bench` on every worker, with the name of its rack."""
        common = ["--world", str(len(self.workers)), "--rendezvous", self.network.address("w0") + ":29500",
                  "--switch", self.network.endpoint("server"), "--bytes", size, "--warmup", "0", "--rounds", "3",
                  "--json", *flags]  # fmt: skip
        racks = {worker: rack for rack, hosts in self.bridges.items() for worker in hosts}
        return [
            self.start_atp(worker, "bench", "--network", "--rank", str(rank), "--rack", racks[worker], *common)
            for rank, worker in enumerate(self.workers)
        ]


class TwoLevels(Racks):
    def check_levels(self):
        completed = {bridge: self.completed(bridge) for bridge in self.bridges}
        self.assertGreater(min(completed.values()), 1000, completed)
        server = self.report("server")["shards"][0]["channels"]
        self.assertEqual(server, [], "the server has no channel after all members left")
        received = self.report("server")["shards"][0]["udp"]["received_packets"]
        self.assertLess(
            received, 2.5 * completed["spine"], "the server receives one packet per sum, not one per worker"
        )

    def test_racks_are_aggregated_at_both_levels(self):
        self.start_switches()
        self.finish(self.start_racks())
        self.check_levels()

    def test_multicast_result_frees_the_aggregators_of_both_levels(self):
        self.start_switches()
        self.finish(self.start_racks(("--multicast", "on")))
        self.check_levels()
        for bridge in self.bridges:
            packets = self.kernel(bridge)["packets"]
            self.assertGreater(packets["released"], 0.8 * packets["completed"], bridge)

    def test_racks_without_a_kernel_switch_sum_exactly(self):
        self.finish(self.start_racks())


class FewAggregators(Racks):
    server_memory = "300KB"  # limits the indices of packets, and so the aggregators of all switches

    def test_collisions_flush_both_levels(self):
        self.start_switches()
        self.finish(self.start_racks(("--window", "256")))
        for bridge in self.bridges:
            packets = self.kernel(bridge)["packets"]
            # The spine may have no collision: two fragments collide there only if the racks aggregated them in
            # different orders.
            self.assertGreater(packets["collisions"], -1 if bridge == "spine" else 0, bridge)
            # On veth, the frame of a FLUSH may have no room for the partial sum.
            asked = packets["flushes"] + packets["closed"] + packets["no_room"]
            self.assertGreater(asked, 0, bridge)


class ShortPackets(Racks):
    server_memory = "20KB"
    server_lanes = 8

    def test_flushed_partial_sum_reaches_the_server(self):
        # veth delivers a frame that an XDP program sends back only if the other end also has an XDP program.
        other_end = self.start("server", networks.beside_atp("lossy_wire"), "0", "1", "eth0")
        self.assertEqual(other_end.stdout.readline(), "ready\n")
        self.start_switches()
        # So few lanes that the frame of a FLUSH on veth has room for the partial sum.
        self.finish(self.start_racks(("--window", "256", "--lanes", "6"), size="400KB"))
        for bridge in self.bridges:
            packets = self.kernel(bridge)["packets"]
            self.assertGreater(packets["flushes"], 0, bridge)
            self.assertEqual(packets["no_room"], 0, bridge)
        snmp = networks.call(*self.network.at("server", "cat", "/proc/net/snmp"))
        names, numbers = (line.split() for line in snmp.splitlines() if line.startswith("Udp:"))
        udp = dict(zip(names, numbers, strict=True))
        self.assertEqual(udp["InCsumErrors"], "0")
        self.assertGreater(int(udp["InDatagrams"]), 0)


class TwoJobs(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "w2", "w3", "server"]}

    def start_job(self, workers, port):
        common = ["--world", str(len(workers)), "--rendezvous", f"{self.network.address(workers[0])}:{port}",
                  "--switch", self.network.endpoint("server"), "--bytes", "4MB", "--warmup", "0", "--rounds", "3",
                  "--network", "--json"]  # fmt: skip
        return [self.start_atp(worker, "bench", "--rank", str(rank), *common) for rank, worker in enumerate(workers)]

    def test_jobs_share_one_switch(self):
        self.start_switch()
        jobs = [self.start_job(self.workers[:3], 29500), self.start_job(self.workers[1:], 29501)]
        networks.wait_until(lambda: len(self.kernel()["jobs"]) == 2, "both jobs are admitted")
        completed = {job["job"]: job["packets"]["completed"] for job in self.kernel()["jobs"]}
        for workers in jobs:
            self.finish(workers)
        self.assertEqual(len(completed), 2)
        self.assertGreater(self.completed(), 5000)


if __name__ == "__main__":
    networks.run()
