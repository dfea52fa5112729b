#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what networks bench/agreement draws, and that both of its sides are told the same. Measures nothing.

usage: test_bed_test.py"""

import sys
import types
import unittest
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from unittest import mock

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER / "cluster")]

import arguments  # noqa: E402  bench/cluster/arguments.py
import network  # noqa: E402  bench/cluster/network.py
import test_bed  # noqa: E402
from page import draw_results  # noqa: E402

agreement = types.ModuleType("agreement")
SourceFileLoader("agreement", str(FOLDER / "agreement")).exec_module(agreement)
DRAWN = [test_bed.draw(seed, number) for seed in range(20) for number in range(20)]
OF_AGGREGATOR = 1448


def measured_by(bed):
    with mock.patch.object(test_bed, "aggregator_bytes", return_value=OF_AGGREGATOR):
        return arguments.parse(bed.measured_by(3))


def simulated_by(bed):
    """The value of each flag; a flag without a value has None."""
    words = bed.simulated_by(9)
    pairs = zip(words, [*words[1:], "--"])
    return {flag: None if value.startswith("--") else value for flag, value in pairs if flag.startswith("--")}


class Draws(unittest.TestCase):
    def test_seed_and_number_decide(self):
        self.assertEqual(DRAWN[21], test_bed.draw(1, 1))
        self.assertEqual(len(set(DRAWN)), len(DRAWN))

    def test_links_and_not_processors_decide(self):
        for bed in DRAWN:
            self.assertTrue(2 <= bed.hosts <= 8 and 25 <= bed.rate_mbps <= 200, bed)
            self.assertLessEqual(bed.hosts * bed.rate_mbps, test_bed.MOST_MBPS)

    def test_uplinks_carry_half_to_all_of_their_rack(self):
        for bed in (bed for bed in DRAWN if bed.uplink_mbps):
            of_rack = int(bed.topology.rpartition("x")[2]) * bed.rate_mbps
            self.assertTrue(of_rack / 2 - 1 <= bed.uplink_mbps <= of_rack + 1, bed)
        self.assertTrue(all(bed.has_racks == bool(bed.uplink_mbps) for bed in DRAWN))

    def test_memory_is_scarce_or_default(self):
        for bed in (bed for bed in DRAWN if bed.aggregators):
            self.assertTrue(0.24 <= bed.aggregators / (bed.jobs * bed.window) <= 0.51, bed)

    def test_loss_is_at_all_links_at_one_host_or_none(self):
        kinds = {(bool(bed.loss), bed.lossy_host is not None) for bed in DRAWN}
        self.assertEqual(kinds, {(False, False), (True, False), (True, True)})
        self.assertTrue(all(bed.loss == 0 or 0.001 <= bed.loss <= 0.01 for bed in DRAWN))
        self.assertTrue(all(bed.lossy_host is None or bed.lossy_host < bed.hosts for bed in DRAWN))

    def test_label_fits_the_chart(self):
        longest = test_bed.TestBed("racks:4x2", 100, 8, 200, 3, 128, 192, 0.0085, 7).describe()
        self.assertLess(len(longest) * draw_results.LETTER, draw_results.LEFT - 16)
        self.assertTrue(all(len(bed.describe()) <= len(longest) for bed in DRAWN))

    def test_several_jobs_run_for_seconds(self):
        for bed in DRAWN:
            seconds = bed.operations * bed.jobs * bed.megabytes * 8 / bed.rate_mbps
            self.assertTrue(bed.jobs == 1 or seconds >= test_bed.SECONDS_OF_JOBS, bed)

    def test_half_of_the_rate_keeps_all_else(self):
        bed = next(bed for bed in DRAWN if bed.uplink_mbps)
        half = bed.at_half_rate()
        self.assertEqual((half.rate_mbps, half.uplink_mbps), (bed.rate_mbps // 2, bed.uplink_mbps // 2))
        self.assertEqual(replace(half, rate_mbps=bed.rate_mbps, uplink_mbps=bed.uplink_mbps), bed)


class Predictions(unittest.TestCase):
    def test_goodput_counts_while_all_jobs_run_after_the_warm_up(self):
        """Two jobs of six operations of 10 MB: the first operation takes 4 intervals and the others 2. Then the first
        job is done, and the second goes on."""
        first = [2.5e6] * 4 + [5e6] * 10 + [0] * 4
        second = [2.5e6] * 4 + [5e6] * 6 + [2.5e6] * 8
        result = {"series": {"interval_ms": 1000, "job_bytes": [first, second]}}
        bed = test_bed.TestBed("star:2", 100, 10)
        # 8 of the 10 seconds in which both run: 40 and 35 MB
        self.assertEqual(agreement.goodput_of_simulator(bed, result), 75e6 * 8 / 8)


class Words(unittest.TestCase):
    def test_both_sides_have_equal_networks_and_work(self):
        for bed in DRAWN:
            real, simulated = measured_by(bed), simulated_by(bed)
            self.assertEqual(real.topology.text, simulated["--topology"])
            self.assertEqual(real.rate, int(simulated["--rate"].removesuffix("Mbps")) * 10**6)
            self.assertEqual(real.uplink, int(simulated.get("--uplink", simulated["--rate"])[:-4]) * 10**6)
            self.assertEqual(real.queue, int(simulated["--queue"]))
            self.assertEqual(real.bytes, int(simulated["--bytes"].removesuffix("MB")) * 10**6)
            self.assertEqual(real.jobs, int(simulated["--jobs"]))
            self.assertEqual(real.operations + real.warmup, int(simulated["--iterations"]))
            self.assertEqual(real.rank_flags, ["--window", simulated["--largest-window"]])
            self.assertEqual(int(simulated["--window"]), 4 * int(simulated["--largest-window"]))

    def test_both_sides_have_equal_memory(self):
        for bed in (bed for bed in DRAWN if bed.aggregators):
            self.assertEqual(int(measured_by(bed).memory), int(simulated_by(bed)["--aggregators"]) * OF_AGGREGATOR)
        everything = replace(DRAWN[0], aggregators=None)
        self.assertEqual(measured_by(everything).memory, arguments.DEFAULT_MEMORY)
        self.assertNotIn("--aggregators", simulated_by(everything))

    def test_both_sides_lose_on_equal_links(self):
        racks = test_bed.TestBed("racks:2x2", 50, 1, 70, loss=0.005)
        self.assertEqual([fault.place for fault in measured_by(racks).faults], ["hosts", "uplinks"])
        self.assertNotIn("--lossy-worker", simulated_by(racks))
        one = replace(racks, lossy_host=3)
        self.assertEqual([fault.text for fault in measured_by(one).faults], ["loss=0.005000@host3"])
        self.assertEqual((simulated_by(one)["--loss"], simulated_by(one)["--lossy-worker"]), ("0.005000", "3"))

    def test_windows_keep_their_size_on_both_sides(self):
        bed = test_bed.TestBed("star:4", 100, 8, halving=False)
        self.assertIn("--no-halving", measured_by(bed).rank_flags)
        self.assertIn("--no-congestion-control", simulated_by(bed))

    def test_constants_are_those_of_the_code(self):
        self.assertEqual(test_bed.BURST_BYTES, network.BURST_BYTES)
        sender = (FOLDER.parent / "src/drivers/net/udp_sender.h").read_text(encoding="utf-8")
        self.assertIn("most_message_bytes = 65'536 - 128;", sender)
        self.assertEqual(test_bed.MESSAGE_BYTES, 65_536 - 128)
        rule = (FOLDER.parent / "src/machines/protocol/index_rule.h").read_text(encoding="utf-8")
        self.assertIn(f"slots_per_packet = {test_bed.SLOTS_OF_A_PACKET};", rule)


if __name__ == "__main__":
    unittest.main(verbosity=2)
