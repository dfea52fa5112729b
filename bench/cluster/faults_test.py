#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests --fault: what each fault does to numbered datagrams and to TCP, counted at both ends. No assertion depends on
measured time.

usage: faults_test.py FOLDER_OF_PROGRAMS. Exit status 77: this machine cannot make such networks or faults."""

import json
import os
import signal
import subprocess
import sys
import unittest

import faults
import network
import processes
import topology

FOLDER = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(FOLDER, "run")
DATAGRAMS = os.path.join(FOLDER, "datagrams.py")
STREAM = os.path.join(FOLDER, "stream.py")
PORT = 4781
IP_AND_UDP_BYTES = 28
DEADLINE_SECONDS = 60
EXIT_UNAVAILABLE = 77
programs = None


class CommandLine(unittest.TestCase):
    def test_each_form_becomes_a_setting_of_an_end(self):
        for text, setting, directions in (
            ("loss=1%@host2:up", "loss=0.010000000000", ("up",)),
            ("loss=1@hosts", "loss=1.000000000000", ("up", "down")),
            ("drop>1.5kB@uplink1:down", "longest=1500", ("down",)),
            ("duplicates=0.5@server", "duplicates=0.500000000000", ("up", "down")),
            ("mark=400mbit/64KiB@uplinks:up", "mark=400000000/65536", ("up",)),
            ("cut@host3", "cut", ("up", "down")),
        ):
            fault = faults.parse(text)
            self.assertEqual((fault.setting, fault.directions), (setting, directions), text)

    def test_faults_of_one_end_are_combined(self):
        racks = topology.parse("racks:2x2")
        ends = faults.ends_of(racks, [faults.parse(text) for text in ("cut@uplink1:up", "drop>1000@uplinks")])
        names = {(below.name, direction): settings for (below, direction), settings in ends.items()}
        self.assertEqual(names["rack1", "up"], ("cut", "longest=1000"))
        self.assertEqual(names["rack1", "down"], ("longest=1000",))
        self.assertEqual(len(names), 4)

    def test_bad_faults_are_refused_with_the_reason(self):
        for words, reason in (
            (("--fault", "loss=1%"), "FAULT@LINK"),
            (("--fault", "loss=0@host1"), "share above 0"),
            (("--fault", "loss=101%@host1"), "share above 0"),
            (("--fault", "drop>0@host1"), "from 1 to 65535"),
            (("--fault", "drop=1400@host1"), "faults are"),
            (("--fault", "mark=1gbit@host1"), "mark=RATE/SIZE"),
            (("--fault", "delay=1ms@host1"), "faults are"),
            (("--fault", "cut@host4"), "host0 to host3"),
            (("--fault", "cut@uplink0"), "links of star:4"),
            (("--racks", "2x2", "--fault", "cut@uplink2"), "uplink0 to uplink1"),
            (("--fault", "cut@host1", "--fault", "cut@hosts:up"), "second fault of its kind"),
            (("--fault", "cut@host1:left"), "FAULT@LINK:down"),
            (("--topology", "local:2", "--fault", "cut@host1"), "no links"),
            (("--offloads", "off", "--fault", "cut@host1"), "--offloads off"),
            (("--fault-seed", "-1"), "--fault-seed"),
        ):
            ran = subprocess.run([RUN, *words], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2, words)
            self.assertIn(reason, ran.stderr, words)


class LinkTest(unittest.TestCase):
    """Two hosts under a switch, without rates."""

    COUNT = 4000
    BYTES = 1000
    # At least five standard deviations of a binomial distribution over COUNT for the shares of these tests.
    TOLERANCE = 0.04

    def setUp(self):
        links = network.Links(None, None, 1 << 20, offloads=False, faulty=True)
        self.network = network.build(topology.parse("star:2"), links)
        try:
            self.network.__enter__()
        except network.Unavailable as error:
            self.skipTest(str(error))
        self.addCleanup(self.network.__exit__)
        self.faults = faults.LinkFaults(self.network, os.path.join(programs, faults.PROGRAM))
        self.left, self.right = self.network.topology.hosts
        for sender, receiver in ((self.left, self.right), (self.right, self.left)):
            self.assertEqual(len(self.datagrams(sender, receiver, 10)["arrived"]), 10, "ARP has found the hosts")

    def set(self, *texts, seed=1):
        try:
            self.faults.set(faults.ends_of(self.network.topology, [faults.parse(text) for text in texts]), seed)
        except faults.Unavailable as error:
            self.skipTest(str(error))

    def counts(self, sender, receiver):
        return self.faults.counts()[sender, receiver]

    def datagrams(self, sender, receiver, count=COUNT, size=BYTES, ecn=0, segments=1):
        """What arrives of so many datagrams."""
        receiving = processes.Process(
            "receiver",
            self.network.entry(receiver),
            [sys.executable, DATAGRAMS, "receive", str(PORT)],
            self.network.folder,
        )
        try:
            processes.wait_until_bound(receiving, PORT)
            words = (receiver.address, PORT, count, size, ecn, segments)
            processes.output_of(
                self.network.entry(sender),
                [sys.executable, DATAGRAMS, "send", *map(str, words)],
                DEADLINE_SECONDS,
            )
            receiving.signal(signal.SIGTERM)
            processes.wait_all([receiving], DEADLINE_SECONDS)
        finally:
            processes.stop([receiving])
        return json.loads(receiving.output())

    def stream(self, sender, receiver):
        """Bits per second of a TCP stream of one second."""
        receiving = processes.Process(
            "receiver",
            self.network.entry(receiver),
            [sys.executable, STREAM, "receive", str(PORT)],
            self.network.folder,
        )
        try:
            words = (STREAM, "send", receiver.address, str(PORT), "1")
            processes.output_of(self.network.entry(sender), [sys.executable, *words], DEADLINE_SECONDS)
            processes.wait_all([receiving], DEADLINE_SECONDS)
        finally:
            processes.stop([receiving])
        return float(receiving.output())


class Loss(LinkTest):
    def test_share_of_datagrams_is_lost_in_one_direction(self):
        self.set("loss=10%@host0:up")
        arrived = len(self.datagrams(self.left, self.right)["arrived"])
        counts = self.counts("h0", "sw")
        self.assertAlmostEqual(counts["lost"] / self.COUNT, 0.1, delta=self.TOLERANCE)
        # Frames beyond the datagrams belong to ARP.
        self.assertAlmostEqual(self.COUNT - arrived, counts["lost"], delta=counts["frames"] - self.COUNT)
        self.assertEqual(len(self.datagrams(self.right, self.left)["arrived"]), self.COUNT, "the other direction")

    def test_datagrams_of_one_packet_are_lost_singly(self):
        self.set("loss=10%@host0:up")
        arrived = set(self.datagrams(self.left, self.right, segments=20)["arrived"])
        counts = self.counts("h0", "sw")
        self.assertEqual(counts["merged"], 0)
        self.assertGreaterEqual(counts["frames"], self.COUNT)
        self.assertAlmostEqual(counts["lost"] / self.COUNT, 0.1, delta=self.TOLERANCE)
        broken = {number // 20 for number in range(self.COUNT) if number not in arrived}
        self.assertGreater(len(broken), 0.5 * self.COUNT / 20, "most packets lose some of their 20 datagrams")

    def test_equal_seeds_lose_the_same_datagrams(self):
        arrived = []
        for seed in (7, 7, 8):
            self.set("loss=10%@host0:up", seed=seed)
            arrived.append(self.datagrams(self.left, self.right)["arrived"])
            self.faults.clear()
        self.assertEqual(arrived[0], arrived[1])
        self.assertNotEqual(arrived[0], arrived[2])

    def test_share_of_the_frames_of_tcp_is_lost(self):
        self.set("loss=1%@host0:up")
        self.assertGreater(self.stream(self.left, self.right), 0)
        counts = self.counts("h0", "sw")
        self.assertEqual(counts["merged"], 0)
        self.assertGreater(counts["frames"], 1000)
        self.assertAlmostEqual(counts["lost"] / counts["frames"], 0.01, delta=0.01)
        self.assertGreater(counts["lost"], 0)

    def test_cleared_faults_lose_nothing(self):
        self.set("loss=50%@hosts")
        self.faults.clear()
        self.assertEqual(len(self.datagrams(self.left, self.right)["arrived"]), self.COUNT)


class OtherFaults(LinkTest):
    def test_packets_longer_than_the_limit_are_lost(self):
        limit = 1000
        self.set(f"drop>{limit}@host0:up")
        longest = limit - IP_AND_UDP_BYTES
        self.assertEqual(len(self.datagrams(self.left, self.right, 100, longest)["arrived"]), 100)
        self.assertEqual(self.counts("h0", "sw")["too_long"], 0)
        self.assertEqual(self.datagrams(self.left, self.right, 100, longest + 1)["arrived"], [])
        self.assertEqual(self.datagrams(self.left, self.right, 100, longest + 1, segments=10)["arrived"], [])
        self.assertEqual(self.counts("h0", "sw")["too_long"], 200)

    def test_cut_ends_one_direction(self):
        self.set("cut@host1:down")
        self.assertEqual(self.datagrams(self.left, self.right, 100)["arrived"], [])
        self.assertGreaterEqual(self.counts("sw", "h1")["cut"], 100)
        self.assertEqual(len(self.datagrams(self.right, self.left, 100)["arrived"]), 100)

    def test_share_of_datagrams_arrives_twice(self):
        self.set("duplicates=25%@host0:up")
        result = self.datagrams(self.left, self.right)
        counts = self.counts("h0", "sw")
        self.assertEqual(len(result["arrived"]), self.COUNT, "nothing is lost")
        self.assertAlmostEqual(result["repeated"], counts["duplicated"], delta=counts["frames"] - self.COUNT)
        self.assertAlmostEqual(counts["duplicated"] / self.COUNT, 0.25, delta=self.TOLERANCE)

    def test_share_of_datagrams_is_overtaken_by_later_ones(self):
        self.assertEqual(self.datagrams(self.left, self.right)["overtaken"], 0)
        self.set("reorder=5%@host0:up")
        result = self.datagrams(self.left, self.right, size=100)
        counts = self.counts("h0", "sw")
        self.assertEqual(len(result["arrived"]), self.COUNT, "nothing is lost")
        self.assertAlmostEqual(counts["delayed"] / self.COUNT, 0.05, delta=self.TOLERANCE)
        self.assertGreater(result["overtaken"], counts["delayed"] / 2)
        self.assertLessEqual(result["overtaken"], counts["delayed"])

    def test_ecn_capable_packets_above_the_rate_are_marked(self):
        self.set("mark=100kbit/20kB@host0:up")
        result = self.datagrams(self.left, self.right, 200, ecn=2)
        counts = self.counts("h0", "sw")
        # 20 kB are 19 packets of 1,042 bytes; the virtual queue drains one in 83 ms.
        self.assertGreater(counts["marked"], 0)
        self.assertEqual(result["marked"], counts["marked"])
        self.assertEqual(result["arrived"], list(range(200)), "marks lose nothing")

    def test_packets_without_ecn_are_never_marked(self):
        self.set("mark=100kbit/20kB@host0:up")
        self.assertEqual(self.datagrams(self.left, self.right, 200)["marked"], 0)
        self.assertEqual(self.counts("h0", "sw")["marked"], 0)

    def test_packets_below_the_rate_are_not_marked(self):
        self.set("mark=100gbit/1MB@host0:up")
        self.assertEqual(self.datagrams(self.left, self.right, ecn=2)["marked"], 0)
        self.assertEqual(self.counts("h0", "sw")["marked"], 0)

    def test_faults_of_one_end_act_together(self):
        self.set("drop>1000@host0:up", "duplicates=1@host0:up")
        self.assertEqual(self.datagrams(self.left, self.right, 100, 1000)["arrived"], [])
        self.assertEqual(self.datagrams(self.left, self.right, 100, 500)["repeated"], 100)


class Runs(unittest.TestCase):
    def test_run_reports_what_faults_did(self):
        words = ("--topology", "star:2", "--rounds", "1", "--operations", "1", "--bytes", "4MiB", "--json")
        flags = ("--systems", "gloo", "--gloo-algorithm", "ring", "--fault", "loss=1%@host1:up")
        ran = subprocess.run(
            [RUN, "--bin", programs, *words, *flags],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
        )
        if ran.returncode == EXIT_UNAVAILABLE:
            self.skipTest(ran.stderr.strip())
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(result["faults"], ["loss=1%@host1:up"])
        counts = result["systems"]["gloo"]["faults"]["h1 to sw"]
        self.assertGreater(counts["frames"], 2000)
        self.assertGreater(counts["lost"], 0)
        self.assertEqual(counts["merged"], 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = sys.argv[1]
    ran = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    sys.exit(1 if not ran.wasSuccessful() else EXIT_UNAVAILABLE if ran.skipped else 0)
