#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/cluster/idle and bench/cluster/share on little data. No assertion depends on measured time.

usage: sharing_test.py FOLDER_OF_PROGRAMS. Exit status 77: this machine cannot create such networks."""

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

import measure
import picture
import sharing

FOLDER = os.path.dirname(os.path.abspath(__file__))
IDLE = os.path.join(FOLDER, "idle")
SHARE = os.path.join(FOLDER, "share")
DEADLINE_SECONDS = 120
EXIT_UNAVAILABLE = 77
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
programs = None


def turn(*seconds):
    return measure.Turn([{"seconds": list(seconds)}], 0.0, None, 0.0, 0.0, {}, [])


def samples(*rates):
    """One sample per second on a link of 80 bit/s. Each of `rates` is the bytes of (job, flow, results) in one second,
    at most 10."""
    counted = [sharing.Sample(0.0, 0, 0, 0)]
    for at, (job, flow, results) in enumerate(rates, start=1):
        last = counted[-1]
        counted.append(
            sharing.Sample(float(at), last.job_bytes + job, last.flow_bytes + flow, last.other_bytes + results)
        )
    return counted


class Lines(unittest.TestCase):
    LINE = sharing.Line(80, samples((8, 0, 8), (8, 0, 8), (0, 9, 0), (5, 4, 5), (5, 4, 5), (0, 10, 0)))

    def test_shares_are_bytes_divided_by_what_the_link_carries_in_the_interval(self):
        self.assertEqual(self.LINE.shares(sharing.Span(0, 2)), (0.8, 0))
        self.assertEqual(self.LINE.shares(sharing.Span(3, 5)), (0.5, 0.4))
        self.assertEqual(self.LINE.shares(sharing.Span(5.2, 5.3)), (0, 0), "the interval contains no sample")

    def test_measured_interval_ends_with_the_last_result_of_the_job(self):
        self.assertEqual(self.LINE.measured_span(sharing.Job(turn(0.5, 0.5), 2.9)), sharing.Span(1, 2))
        self.assertEqual(self.LINE.measured_span(sharing.Job(turn(1, 0.5), 7)), sharing.Span(3.5, 5))

    def test_result_has_shares_and_speed_of_the_job_alone_and_beside_the_flow(self):
        alone, together = sharing.Job(turn(1, 1), 2.9), sharing.Job(turn(2), 7)
        found = sharing.Result("sum", "xdp", self.LINE, alone, sharing.Span(2, 3), together).as_dict()
        self.assertEqual(
            [found[key] for key in ("job_share_alone", "flow_share_alone", "job_share", "flow_share", "job_speed")],
            [0.8, 0.9, 0.5, 0.4, 0.5],
        )
        self.assertAlmostEqual(found["sum"], 0.9)


@unittest.skipUnless(HAS_MATPLOTLIB, "matplotlib is missing")
class Pictures(unittest.TestCase):
    def test_each_series_is_a_line_with_its_name(self):
        series = {"one": [(0, 0), (4, 2)], "two": [(1, 1)], "empty": []}
        drawn = ElementTree.fromstring(picture.lines("a < b", "s", "y", series))
        ids = {each.get("id") for each in drawn.iter()}
        self.assertLessEqual({f"line {name}" for name in series}, ids)
        self.assertLessEqual({"a < b", "s", "y", *series}, {text.text for text in drawn.findall(".//{*}text")})

    def test_equal_series_give_equal_files(self):
        self.assertEqual(*(picture.lines("t", "s", "y", {"a": [(0, 1)]}, (1, 3)) for _ in range(2)))


class CommandLines(unittest.TestCase):
    def test_error_about_a_bad_argument_names_its_flag(self):
        for program, flag, value in (
            (IDLE, "--rate", "fast"),
            (IDLE, "--rounds", "0"),
            (IDLE, "--seconds", "0"),
            (SHARE, "--job", "alexnet"),
            (SHARE, "--rate", "fast"),
            (SHARE, "--switch", "both"),
            (SHARE, "--workers", "0"),
        ):
            ran = subprocess.run([program, flag, value], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2, flag)
            self.assertIn(flag, ran.stderr)


class Runs(unittest.TestCase):
    def measure(self, program, *flags):
        if not (shutil.which("iperf3") and os.path.exists(os.path.join(programs, "atp"))):
            self.skipTest("there is no iperf3, or no atp")
        ran = subprocess.run(
            [sys.executable, program, "--bin", programs, "--json", *flags],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        refused = "no switch inside the kernel" in ran.stderr or "not permitted" in ran.stderr
        if ran.returncode == EXIT_UNAVAILABLE or refused:
            self.skipTest(ran.stderr.strip())
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def test_each_round_measures_with_and_without_the_idle_program(self):
        found = self.measure(IDLE, "--rounds", "2", "--seconds", "1", "--rate", "100mbit")
        pairs = list(zip(found["without_bps"], found["with_bps"]))
        self.assertEqual(len(pairs), 2)
        self.assertTrue(all(0 < bps < 110e6 for pair in pairs for bps in pair))
        self.assertAlmostEqual(found["loss"], statistics.median(1 - attached / bare for bare, attached in pairs))

    def test_links_without_a_rate_are_measured(self):
        found = self.measure(IDLE, "--rounds", "1", "--seconds", "1", "--rate", "none")
        self.assertIsNone(found["rate_bps"])

    def test_job_and_flow_share_a_link(self):
        with tempfile.TemporaryDirectory() as folder:
            drawn = os.path.join(folder, "share.svg")
            flags = ("--workers", "2", "--rate", "100mbit", "--bytes", "2MB", "--operations", "4")
            found = self.measure(SHARE, *flags, *(("--picture", drawn) if HAS_MATPLOTLIB else ()))
            if HAS_MATPLOTLIB:
                ElementTree.parse(drawn)
        for share in ("job_share_alone", "flow_share_alone", "job_share", "flow_share"):
            self.assertTrue(0 < found[share] < 1.2, (share, found))
        self.assertEqual(len(found["seconds"]), 4)

    def test_job_without_a_switch_sends_beside_the_flow(self):
        flags = ("--workers", "2", "--rate", "100mbit", "--bytes", "2MB", "--operations", "4", "--switch", "none")
        found = self.measure(SHARE, *flags)
        begin, end = found["together"]
        self.assertTrue(any(share > 0 for at, share in found["series"]["job"] if begin < at <= end), found)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = sys.argv[1]
    ran = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    sys.exit(1 if not ran.wasSuccessful() else EXIT_UNAVAILABLE if ran.skipped else 0)
