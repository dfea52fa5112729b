#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/cluster/run on little data. No assertion depends on measured time.

usage: cluster_test.py FOLDER_OF_PROGRAMS. Exit status 77: this machine cannot create such networks."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")
SMALL = ("--topology", "star:2", "--rounds", "1", "--operations", "1", "--systems", "gloo")
DEADLINE_SECONDS = 60
EXIT_UNAVAILABLE = 77
programs = None


class Runs(unittest.TestCase):
    """Runs on real networks. To simulate a program that fails, a test puts a script with its name into the folder."""

    def run_small(self, folder, *flags, interrupt_when=None):
        """Runs the benchmark and returns (status, output, errors). Checks that no namespace or file remains."""
        process = subprocess.Popen(
            [RUN, "--bin", folder, *SMALL, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if interrupt_when:
            deadline = time.monotonic() + DEADLINE_SECONDS
            while process.poll() is None and not os.path.exists(interrupt_when) and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        if process.returncode == EXIT_UNAVAILABLE:
            self.skipTest(errors.strip())
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        left += "\n".join(os.listdir(tempfile.gettempdir()))
        self.assertNotIn(f"atp-{process.pid}-", left)
        return process.returncode, output, errors

    def script_for_rank(self, script):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "bench_gloo")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
        return folder

    def test_gloo_is_measured(self):
        status, output, errors = self.run_small(programs, "--bytes", "256KiB", "--gloo-algorithm", "ring", "--json")
        self.assertEqual(status, 0, errors)
        result = json.loads(output)
        self.assertEqual(
            (result["topology"], result["rate_bps"], result["bytes"], result["world"]),
            ("star:2", 500_000_000, 262_144, 2),
        )
        self.assertEqual(len(result["rounds"]), 1)
        self.assertGreater(result["limit_bps"], 0)
        self.assertGreater(result["stream_bps"], 0)
        gloo = result["systems"]["gloo"]
        self.assertEqual(len(gloo["seconds"]), 1)
        self.assertEqual(gloo["ratio_to_gloo"], 1)
        for figure in ("goodput_bps", "share_of_limit", "cpu_seconds_per_gb"):
            self.assertGreater(gloo[figure], 0)
        # In the ring of two ranks, each rank sends half of its tensor and half of the sum, in packets with headers.
        self.assertGreater(gloo["traffic_of_an_operation"]["host_sent_bytes"], 262_144)

    def test_racks_choose_their_layout(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        flags = [
            "--topology",
            "racks:2x2",
            "--leaves",
            "0,2",
            "--no-root",
            "--bytes",
            "256KiB",
            "--uplink",
            "500mbit",
            "--json",
        ]
        status, output, errors = self.run_small(programs, *flags, "--systems", "atp")
        self.assertEqual(status, 0, errors)
        result = json.loads(output)["systems"]
        self.assertEqual(result["atp-leaves0-no-root"]["layout"], "racks")
        self.assertEqual(result["atp-leaves2-no-root"]["layout"], "leaves")

    def test_switchml_is_measured_beside_atp(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        status, output, errors = self.run_small(programs, "--bytes", "256KiB", "--systems", "switchml,atp", "--json")
        self.assertEqual(status, 0, errors)
        result = json.loads(output)["systems"]
        for name in ("switchml", "atp"):
            # Each rank sends its tensor once, and packets add headers.
            self.assertGreater(result[name]["traffic_of_an_operation"]["host_sent_bytes"], 262_144)

    def test_kernel_switch_adds_more_than_nine_tenths_of_the_gradients(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        flags = ("--bytes", "256KiB", "--systems", "atp", "--switch", "both", "--json")
        status, output, errors = self.run_small(programs, *flags)
        if re.search("no switch inside the kernel|not permitted", errors):
            self.skipTest(errors.strip())
        self.assertEqual(status, 0, errors)
        result = json.loads(output)
        self.assertEqual(list(result["systems"]), ["atp", "atp-xdp"])
        for system in result["systems"].values():
            self.assertGreater(system["traffic_of_an_operation"]["host_sent_bytes"], 262_144)
            self.assertGreater(system["machine_cpu_seconds_per_gb"], 0)
            self.assertGreater(system["in_network_share"], 0.9)

    def test_servers_run_on_a_host(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        flags = ("--bytes", "256KiB", "--systems", "atp", "--switch", "both", "--server", "host", "--json")
        status, output, errors = self.run_small(programs, *flags)
        if re.search("no switch inside the kernel|not permitted", errors):
            self.skipTest(errors.strip())
        self.assertEqual(status, 0, errors)
        for system in json.loads(output)["systems"].values():
            self.assertGreater(system["traffic_of_an_operation"]["uplink_received_bytes"], 262_144, "at server")

    def test_server_gets_one_gradient_for_each_switch_that_adds_alone(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        flags = ("--bytes", "256KiB", "--topology", "fig9", "--server", "host", "--sample", "10ms", "--json")
        status, output, errors = self.run_small(programs, *flags, "--systems", "atp,atp-racks,atp-nowhere")
        self.assertEqual(status, 0, errors)
        result = json.loads(output)
        for (name, system), gradients in zip(result["systems"].items(), (1, 3, 6)):
            received = system["traffic_of_an_operation"]["server_received_bytes"]
            self.assertAlmostEqual(received / 262_144, gradients, delta=0.5 * gradients, msg=name)
            sampled = result["rounds"][0][name]
            seconds, sent, got = zip(*sampled["series"])
            for values in (seconds, sent, got):
                self.assertEqual(sorted(values), list(values), name)
            self.assertGreater(sent[-1], 2 * 262_144, "a warm-up and a measured operation")

    def test_jobs_with_parts_of_their_own_never_collide(self):
        if not os.path.exists(os.path.join(programs, "atp-lab")):
            self.skipTest("there is no atp-lab")
        flags = ("--bytes", "1MiB", "--jobs", "2", "--switch-flags=--linear --partition 2", "--json")
        status, output, errors = self.run_small(programs, *flags, "--systems", "atp")
        self.assertEqual(status, 0, errors)
        self.assertEqual(json.loads(output)["systems"]["atp"]["in_network_share"], 1)

    def test_forwarded_share_reaches_the_server_from_each_worker(self):
        if not os.path.exists(os.path.join(programs, "atp-lab")):
            self.skipTest("there is no atp-lab")
        flags = ("--bytes", "1MiB", "--server", "host", "--rank-flags=--forward-share 1", "--json")
        status, output, errors = self.run_small(programs, *flags, "--systems", "atp")
        self.assertEqual(status, 0, errors)
        traffic = json.loads(output)["systems"]["atp"]["traffic_of_an_operation"]
        self.assertGreater(traffic["server_received_bytes"], 2 * 1_048_576)

    def test_frames_without_offloads_are_measured(self):
        if shutil.which("ethtool") is None:
            self.skipTest("there is no ethtool")
        flags = ("--bytes", "8MiB", "--gloo-algorithm", "ring", "--offloads", "off", "--json")
        status, output, errors = self.run_small(programs, *flags)
        self.assertEqual(status, 0, errors)
        result = json.loads(output)
        self.assertFalse(result["offloads"])
        self.assertGreater(result["systems"]["gloo"]["switch_box_cpu_seconds_per_gb"], 0, "time of the ports")

    def test_openmpi_is_measured_over_the_links(self):
        if not (shutil.which("mpirun") and os.path.exists(os.path.join(programs, "bench_mpi"))):
            self.skipTest("there is no Open MPI")
        status, output, errors = self.run_small(programs, "--bytes", "256KiB", "--systems", "openmpi", "--json")
        self.assertEqual(status, 0, errors)
        traffic = json.loads(output)["systems"]["openmpi"]["traffic_of_an_operation"]
        self.assertGreater(traffic["host_sent_bytes"], 262_144)

    def test_error_about_a_failed_rank_contains_its_name_and_output(self):
        status, _, errors = self.run_small(
            self.script_for_rank("echo no such luck >&2; exit 3"), "--gloo-algorithm", "ring"
        )
        self.assertEqual(status, 1, errors)
        self.assertRegex(errors, r"gloo-job0-rank\d \(status 3\)")
        self.assertIn("no such luck", errors)

    def test_full_disk_is_an_error(self):
        command = [RUN, "--bin", programs, "--topology", "local:2", "--rounds", "1", "--operations", "1"]
        command += ["--systems", "gloo", "--gloo-algorithm", "ring", "--bytes", "4096", "--json"]
        with open("/dev/full", "w", encoding="utf-8") as full:
            ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (1, "bench/cluster/run: [Errno 28] No space left on device\n"))

    def test_rank_that_hangs_is_ended_at_the_timeout(self):
        status, _, errors = self.run_small(self.script_for_rank("exec sleep 1000"), "--timeout", "5")
        self.assertEqual(status, 1, errors)
        self.assertIn("not done after 5 s", errors)

    def test_interrupted_run_removes_its_network(self):
        folder = self.script_for_rank('touch "$0.started"; exec sleep 1000')
        status, _, errors = self.run_small(folder, interrupt_when=os.path.join(folder, "bench_gloo.started"))
        self.assertEqual(status, 130, errors)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = sys.argv[1]
    ran = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    sys.exit(1 if not ran.wasSuccessful() else EXIT_UNAVAILABLE if ran.skipped else 0)
