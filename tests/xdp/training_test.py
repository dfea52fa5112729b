#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kernel switch on a bridge sums the gradients of a training with PyTorch. The weights equal those of Gloo.

usage: training_test.py ATP

Python must be able to import torch and the package `atp`.
"""

import importlib.util
import json
import os
import sys

import networks
from networks import PATIENCE_S

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_rank.py")


class Training(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "server"]}

    def start_rank(self, rank, worker):
        address = self.network.address(self.workers[0])
        environment = ["env", "ATP_SWITCH=" + self.network.endpoint("server"), "GLOO_SOCKET_IFNAME=eth0"]
        return self.start(worker, *environment, sys.executable, RANK, str(rank), str(len(self.workers)), address)

    def test_training_gives_the_weights_of_gloo_within_rounding(self):
        switch = self.start_switch()
        ranks = [self.start_rank(rank, worker) for rank, worker in enumerate(self.workers)]
        outcomes = []
        for rank in ranks:
            out, error = rank.communicate(timeout=PATIENCE_S)
            self.assertEqual(rank.returncode, 0, error)
            outcomes.append(json.loads(out))
        for outcome in outcomes:
            self.assertLess(outcome["apart"], 1e-5)
            self.assertLess(outcome["losses"][-1], outcome["losses"][0])
        self.assertEqual(len({outcome["digest"] for outcome in outcomes}), 1, "weights differ between ranks")
        packets = self.kernel()["packets"]
        self.assertGreater(packets["completed"], 5000)
        self.assertGreater(packets["completed"], 0.9 * packets["claimed"])
        self.stop(switch)


if __name__ == "__main__":
    for package in ["torch", "atp"]:
        if importlib.util.find_spec(package) is None:
            networks.skip(f"this Python cannot import {package}")
    networks.run()
