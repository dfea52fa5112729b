#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The process of a kernel switch is killed, or the kernel switch is stopped, while a tensor is in flight.

usage: restart_test.py ATP
"""

import glob
import os
import time

import networks
from networks import PATIENCE_S, wait_until

RATE = "200mbit"
TENSOR = "16MB"  # its sum takes more than 500 ms
MOST_GAP_S = 5  # a machine of tests may be busy; what is meant is 1 s
FRAGMENTS = 16_000_000 // (networks.LANES * 4)


class Restart(networks.NetworkTest):
    def setUp(self):
        super().setUp()
        self.network.limit_hosts(RATE)
        self.pins = self.new_pins()
        self.switch = self.start_switch(pins=self.pins)
        self.workers_of_job = self.start_workers(TENSOR, ["--audit"], rounds=1)
        wait_until(lambda: self.completed() > 100, "the kernel aggregates")

    def kill(self):
        self.switch.kill()
        self.switch.wait(PATIENCE_S)
        self.assertEqual(sorted(self.network.with_xdp("bridge")), sorted(self.network.ports("bridge")))

    def test_restart_continues_with_the_pinned_state(self):
        self.kill()
        switch = self.start_switch(pins=self.pins)
        self.assertEqual(len(self.kernel()["jobs"]), 1, "the job is in the pinned state, before another JOIN")
        self.finish(self.workers_of_job)
        self.assertGreater(self.completed(), 0.9 * FRAGMENTS)
        self.stop(switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def test_kernel_aggregates_while_no_process_runs(self):
        self.kill()
        self.finish(self.workers_of_job)
        switch = self.start_switch(pins=self.pins)
        self.assertGreater(self.completed(), 0.9 * FRAGMENTS)
        self.stop(switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def claimed_by_the_server(self):
        return self.report("server")["shards"][0]["packets"]["claimed"]

    def test_sums_are_exact_after_a_stop_discards_partial_sums(self):
        self.stop(self.switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])
        wait_until(lambda: self.claimed_by_the_server() > 100, "the switch on `server` adds the remaining gradients")
        self.finish(self.workers_of_job)

    def test_sums_are_exact_after_a_stop_and_a_start(self):
        self.stop(self.switch)
        switch = self.start_switch(pins=self.pins)
        self.finish(self.workers_of_job)
        self.assertLess(self.completed(), 0.9 * FRAGMENTS, "the new kernel switch started with an empty table")
        self.stop(switch)

    def test_second_start_is_refused_and_changes_nothing(self):
        ports = ",".join(self.network.ports("bridge"))
        for pins, words in [(self.pins, "another switch"), (self.new_pins(), "another XDP program")]:
            second = self.start_atp("bridge", "switch", "--listen", "0.0.0.0:4791", "--xdp", ports, "--xdp-pins", pins)
            _, error = second.communicate(timeout=PATIENCE_S)
            self.assertEqual(second.returncode, 2)
            self.assertIn(words, error)
        self.finish(self.workers_of_job)
        self.assertGreater(self.completed(), 0.9 * FRAGMENTS)

    def refused(self, ports, flags=(), status=2):
        """Starts `atp switch` with the pinned state. The start must fail. Returns the error."""
        start = self.start_atp("bridge", "switch", "--listen", self.network.any_endpoint, "--xdp", ports, "--xdp-pins",
                               self.pins, *flags)  # fmt: skip
        _, error = start.communicate(timeout=PATIENCE_S)
        self.assertEqual(start.returncode, status)
        return error

    def test_failed_start_leaves_the_kernel_aggregating(self):
        self.kill()
        ports = self.network.ports("bridge")
        self.assertIn("eth7: failed (ENODEV", self.refused(",".join([*ports, "eth7"])))
        hold_port = f"import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', {networks.PORT})); input(1)"
        holder = self.start("bridge", "python3", "-c", hold_port)
        holder.stdout.read(1)
        self.assertIn("EADDRINUSE", self.refused(",".join(ports), status=1))
        self.assertIn("EADDRINUSE", self.refused(ports[0], status=1))  # others keep the program, too
        holder.communicate("\n", timeout=PATIENCE_S)
        self.assertEqual(sorted(self.network.with_xdp("bridge")), sorted(ports))
        self.finish(self.workers_of_job)
        switch = self.start_switch(pins=self.pins)
        self.assertGreater(self.completed(), 0.9 * FRAGMENTS)
        self.stop(switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def pinned_jobs(self):
        (path,) = glob.glob(f"{self.pins}/atp_jobs_layout*")
        return path

    def kept_jobs(self):
        """Returns the pinned entries of the jobs: key, token, level and index of the counters."""
        return networks.call("bpftool", "-j", "map", "dump", "pinned", self.pinned_jobs())

    def test_state_of_another_layout_is_not_taken_over(self):
        self.kill()
        pinned = self.pinned_jobs()
        for name in ["atp_jobs_layout0", "atp_jobs"]:
            other = f"{self.pins}/{name}"
            os.rename(pinned, other)
            self.assertIn(f"{other}: mismatched", self.refused(",".join(self.network.ports("bridge"))))
            os.rename(other, pinned)
        self.finish(self.workers_of_job)
        switch = self.start_switch(pins=self.pins)
        self.assertGreater(self.completed(), 0.9 * FRAGMENTS)
        self.stop(switch)

    def test_failed_start_at_another_level_keeps_the_jobs(self):
        self.kill()
        kept = self.kept_jobs()
        self.assertIn("key", kept)
        ports = self.network.ports("bridge")
        self.assertIn("eth7: failed (ENODEV", self.refused(",".join([*ports, "eth7"]), ["--level", "1"]))
        self.assertEqual(self.kept_jobs(), kept)
        self.finish(self.workers_of_job)
        switch = self.start_switch(pins=self.pins, flags=["--level", "1"])
        wait_until(lambda: self.kept_jobs() != kept, "the successful start changes the entries of the jobs")
        self.stop(switch)

    def test_start_detaches_interfaces_that_it_no_longer_names(self):
        self.kill()
        switch = self.start_switch(ports=["to-w0"], pins=self.pins)
        wait_until(lambda: self.network.with_xdp("bridge") == ["to-w0"], "the other ports lose the program")
        self.assertEqual(self.network.with_xdp("bridge"), ["to-w0"])
        filters = networks.call("tc", "-n", self.network.prefix + "bridge", "filter", "show", "dev", "to-w1", "egress")
        self.assertEqual(filters, "")
        self.finish(self.workers_of_job)
        self.stop(switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def test_other_memory_than_pinned_is_refused(self):
        self.kill()
        second = self.start_atp("bridge", "switch", "--xdp", "to-w0", "--xdp-pins", self.pins, "--memory", "32MB")
        _, error = second.communicate(timeout=PATIENCE_S)
        self.assertEqual(second.returncode, 2)
        self.assertIn("--memory", error)
        self.finish(self.workers_of_job)


class Replacement(networks.NetworkTest):
    """An upgrade under a running job. Each rank compares every sum with the right one, bit by bit."""

    def setUp(self):
        super().setUp()
        self.network.limit_hosts(RATE)
        self.pins = self.new_pins()
        self.switch = self.start_switch(pins=self.pins)
        self.ranks = self.start_workers("1MB", ["--audit"], rounds=120)  # they last some seconds
        wait_until(lambda: self.completed() > 100, "the kernel aggregates")

    def assert_progress(self, what, begin, completed):
        """The new process is at work before the job ends, and the longest operation was not long."""
        away = time.monotonic() - begin
        wait_until(lambda: self.completed() > completed + 100, "the kernel aggregates again")
        self.assertEqual([rank.poll() for rank in self.ranks], [None] * len(self.ranks), "the job ended too early")
        [report] = self.reports(self.ranks)
        gap = max(report["seconds"])
        print(f"{what}: no process for {away:.3f} s, and no sum for {gap:.3f} s", flush=True)
        self.assertTrue(report["verified"])
        self.assertLess(gap, MOST_GAP_S)

    def test_job_goes_on_while_a_kernel_switch_is_stopped_and_another_started(self):
        begin = time.monotonic()
        self.stop(self.switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])
        self.switch = self.start_switch(pins=self.pins)
        self.assert_progress("a kernel switch, stopped and started", begin, 0)

    def test_job_goes_on_while_another_process_takes_over_the_kernel_switch(self):
        begin = time.monotonic()
        self.switch.kill()
        self.switch.wait(PATIENCE_S)
        self.switch = self.start_switch(pins=self.pins)
        self.assert_progress("a kernel switch, killed and started", begin, self.completed())


if __name__ == "__main__":
    networks.run()
