#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kernel switch forwards packets with more lanes than its aggregators, and counts them. `atp doctor` reports this.

usage: oversized_test.py ATP
"""

import networks

MTU = 3000  # about the largest MTU of a veth with a program in its driver


class Oversized(networks.NetworkTest):
    server_lanes = 728

    def test_oversized_packets_pass_and_are_counted_and_reported(self):
        switch = self.start_switch()
        self.assertEqual(self.finding()["status"], "ok")
        self.network.set_mtu(MTU)
        self.assertIn("would forward them unaggregated", self.finding()["found"])

        # Dynamic scales would end each span of the tensor with a short packet.
        self.finish(self.start_workers("2MB", ["--scaling", "fixed"]))
        kernel = self.kernel()
        self.assertLess(kernel["packets"]["claimed"], 10, "only the last fragment of a tensor is short enough")
        oversized = kernel["kernel"]["oversized"]
        self.assertGreater(oversized, 1000)
        finding = self.finding()
        self.assertEqual(finding["status"], "warn")
        self.assertIn(f"{oversized} packets with more lanes were forwarded unaggregated", finding["found"])
        self.assertIn("--lanes 352", finding["fix"])

        self.finish(self.start_workers("2MB", ["--lanes", "352"]))
        self.assertGreater(self.completed(), 1000, "with --lanes 352, as the finding advises, the switch aggregates")
        self.stop(switch)


if __name__ == "__main__":
    networks.run()
