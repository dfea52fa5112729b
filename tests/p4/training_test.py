# SPDX-License-Identifier: Apache-2.0
"""PyTorch trains the CNN of the examples through BMv2 with the same weights, to the last bit, as through `atp switch`.

usage: training_test.py ATP PACKAGES_OF_PYTHON
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import bmv2
import cluster_test
import networks

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_cnn.py"
STEPS = 20
# 660 parameters: BMv2 handles some 1,000 packets a second.
NARROW = ("--width", "8", "--channels", "2")
PATIENCE_S = 600
# The agent reads the counters of the pipeline once a second.
SETTLING_S = 3


class TrainingTest(cluster_test.ClusterTest):
    bridges = {"bridge": ["w0", "w1", "server"]}

    def train(self, nodes, switch):
        """Trains with a rank on each node. Returns the results of rank 0."""
        address = "127.0.0.1" if len(set(nodes)) == 1 else self.network.address(nodes[0])
        device = "lo" if len(set(nodes)) == 1 else "eth0"
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder, "results.json")
            command = [sys.executable, str(EXAMPLE), "--steps", str(STEPS), *NARROW, "--json", str(results)]
            common = [f"PYTHONPATH={sys.argv[2]}", f"WORLD_SIZE={len(nodes)}", f"MASTER_ADDR={address}",
                      "MASTER_PORT=29500", f"ATP_SWITCH={switch}", "ATP_TIMEOUT=120", "ATP_HOST_LEVEL=off",
                      f"GLOO_SOCKET_IFNAME={device}", "OMP_NUM_THREADS=1"]  # fmt: skip
            ranks = [self.start(node, "env", *common, f"RANK={rank}", *command) for rank, node in enumerate(nodes)]
            for rank in ranks:
                output, errors = rank.communicate(timeout=PATIENCE_S)
                self.assertEqual(rank.returncode, 0, output + errors)
            return json.loads(results.read_text())

    def completed_at_rest(self):
        counts = [self.completed()]

        def rests():
            time.sleep(SETTLING_S)
            counts.append(self.completed())
            return counts[-1] == counts[-2]

        networks.wait_until(rests, "the counters of the pipeline rest")
        return counts[-1]

    def test_weights_are_those_of_the_switch_in_user_space(self):
        self.start_switch()
        through_p4 = self.train(self.workers, self.network.endpoint("server"))
        networks.wait_until(lambda: self.completed() > 500, "the pipeline aggregated most fragments")
        # The same training at one node, over its loopback: no packet passes the pipeline.
        before = self.completed_at_rest()
        through_atp = self.train(["server", "server"], self.network.endpoint("server"))
        self.assertEqual(self.completed_at_rest(), before)
        self.assertEqual(len(through_p4["losses"]), STEPS)
        self.assertTrue(through_p4["identical"])
        self.assertEqual(through_p4["weights"], through_atp["weights"])
        self.assertEqual(through_p4["losses"], through_atp["losses"])


if __name__ == "__main__":
    needed = [sys.executable, "-c", "import sklearn, torch, atp"]
    tried = subprocess.run(needed, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": sys.argv[2]})
    if tried.returncode != 0:
        bmv2.skip(f"the example needs PyTorch, scikit-learn and the backend: {tried.stderr.strip()}")
    cluster_test.require_tools()
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]], defaultTest="TrainingTest")
