#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sums of a job stay exact while another host on the bridge sends invalid frames.

usage: garbage_test.py ATP
"""

import json
import os
import sys

import networks
from networks import PATIENCE_S

GARBAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "garbage.py")
FRAMES = 5_000


class Garbage(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "w2", "server", "stranger"]}

    def mac(self, host):
        return json.loads(self.network.ip(host, "-j", "link", "show", "eth0"))[0]["address"]

    def start_garbage(self, seed):
        """Lets `stranger` send invalid frames to the server, with the address of w0 and derived from gradients of w0."""
        ear = self.start("w0", sys.executable, GARBAGE, "listen", "20")
        heard, error = ear.communicate(timeout=PATIENCE_S)
        self.assertEqual(ear.returncode, 0, error)
        target = f"{self.mac('server')}/{self.network.address('server')}"
        mouth = self.start("stranger", sys.executable, GARBAGE, "send", str(seed), str(FRAMES), target,
                           self.network.address("w0"))  # fmt: skip
        mouth.stdin.write(heard + "\n")
        mouth.stdin.flush()
        return mouth

    def test_garbage_changes_no_sum_and_is_counted(self):
        switch = self.start_switch()
        workers = self.start_workers("64MB", ["--audit"], rounds=1)
        garbage = self.start_garbage(1)
        self.finish(workers)
        _, error = garbage.communicate(timeout=PATIENCE_S)
        self.assertEqual(garbage.returncode, 0, error)
        kernel = self.kernel()
        self.assertLessEqual(len(kernel["jobs"]), 1, "no other job was admitted")
        self.assertGreater(kernel["packets"]["forged"], FRAMES / 20)
        self.assertGreater(sum(kernel["refused"].values()), FRAMES / 20)
        self.assertGreater(kernel["kernel"]["damaged"], FRAMES / 40)
        self.assertGreater(kernel["kernel"]["oversized"], FRAMES / 40)
        self.stop(switch)


if __name__ == "__main__":
    networks.run()
