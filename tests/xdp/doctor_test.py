#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Findings of `atp doctor` about a kernel switch that receives only a part of its packets.

usage: doctor_test.py ATP
"""

import networks


class Doctor(networks.NetworkTest):
    def test_missing_port_warns_with_the_flag(self):
        switch = self.start_switch(ports=["to-w0", "to-w1", "to-server"])
        self.finish(self.start_workers("1MB"))
        self.assertLess(self.completed(), 100)
        finding = self.finding()
        self.assertEqual(finding["status"], "warn")
        self.assertIn("packets of some workers do not pass its interfaces", finding["found"])
        self.assertIn("list in --xdp every port", finding["fix"])
        self.stop(switch)

    def test_switch_that_receives_from_all_workers_is_ok_at_every_host(self):
        switch = self.start_switch()
        self.finish(self.start_workers("1MB"))
        self.assertGreater(self.completed(), 1000)
        for node in ("w0", "bridge"):
            finding = self.finding(node)
            self.assertEqual(finding["status"], "ok", finding["found"])
        self.stop(switch)

    def test_worker_on_the_switch_host_warns(self):
        self.start_switch()
        self.workers = ["w0", "w1", "bridge"]
        self.finish(self.start_workers("1MB", asked="bridge"))
        finding = self.finding()
        self.assertEqual(finding["status"], "warn")
        self.assertIn("packets of some workers do not pass its interfaces", finding["found"])
        self.assertIn("run no worker on the switch host", finding["fix"])

    def test_job_beyond_the_table_warns(self):
        switch = self.start_switch(flags=["--jobs", "1"])
        # The first job runs longer than the second job on any machine. The test kills it after the second job ends.
        first = self.start_workers("64MB", ["--timeout", "80s"], rounds=20)
        networks.wait_until(lambda: self.completed() > 100, "the first job is admitted")
        second = self.start_workers("64kB", rounds=3, meet_at=29501)
        self.finish(second)
        for worker in first:
            worker.kill()
        kernel = self.kernel()
        self.assertEqual(len(kernel["jobs"]), 1)
        self.assertGreater(kernel["kernel"]["not_admitted"], 0)
        self.assertGreater(kernel["packets"]["forged"], 0, "packets of the second job count as forged")
        finding = self.finding()
        self.assertEqual(finding["status"], "warn")
        self.assertIn("JOINs found no free job or channel", finding["found"])
        self.assertIn("--jobs", finding["fix"])
        self.stop(switch)


if __name__ == "__main__":
    networks.run()
