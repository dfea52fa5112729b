#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sum is right if the links before and after a bridge that aggregates lose packets.

usage: loss_test.py ATP
"""

import collections

import networks


class Loss(networks.NetworkTest):
    """The bridge `near` connects some workers, the bridge `far` the server. Each loses packets in both directions."""

    above = {"near": "bridge", "far": "bridge"}
    size = "1MB"
    flags = ["--audit"]

    def sum_with_loss(self, share):
        """Runs a job. Returns the packets that `near` and `far` lost, by type, and the counters of the kernel."""
        switch = self.start_switch()
        wires = [self.start_loss(node, share, seed) for seed, node in enumerate(["near", "far"], start=1)]
        self.finish(self.start_workers(self.size, self.flags))
        packets = self.kernel()["packets"]
        self.stop(switch)
        lost = collections.Counter()
        for wire in wires:
            of_wire = self.stop_loss(wire)
            self.assertGreater(of_wire["GRADIENT"], 10)
            self.assertGreater(of_wire["ACK"], 10)
            lost.update(of_wire)
        self.assertGreater(packets["completed"], 1000)
        self.assertGreater(packets["fetched"], 0, "resends fetch partial sums whose missing gradients were lost")
        return lost, packets


class LossForFourWorkers(Loss):
    bridges = {"bridge": ["w0", "w1"], "near": ["w2", "w3"], "far": ["server"]}

    def test_one_percent_loss_keeps_sums_exact(self):
        self.sum_with_loss(0.01)

    def test_five_percent_loss_keeps_sums_exact(self):
        self.sum_with_loss(0.05)


class LossForEightWorkers(Loss):
    bridges = {"bridge": ["w0", "w1", "w2", "w3"], "near": ["w4", "w5", "w6", "w7"], "far": ["server"]}

    def test_one_percent_loss_keeps_sums_exact(self):
        self.sum_with_loss(0.01)

    def test_five_percent_loss_keeps_sums_exact(self):
        self.sum_with_loss(0.05)


class LossWithCollisions(Loss):
    """More fragments in flight than aggregators: partial sums and gradients of single workers meet at the server."""

    bridges = {"bridge": ["w0", "w1"], "near": ["w2"], "far": ["server"]}
    server_memory = "100kB"
    flags = ["--audit", "--channels", "2"]

    def test_five_percent_loss_keeps_sums_exact(self):
        lost, packets = self.sum_with_loss(0.05)
        self.assertGreater(packets["collisions"], 100)
        # On veth, the frame of a FLUSH has no room for the partial sum. The next resend fetches it instead.
        self.assertGreater(packets["closed"] + packets["no_room"], 20, "FLUSHes arrive at the kernel switch")
        self.assertGreater(lost["FLUSH"], 0)


if __name__ == "__main__":
    networks.run()
