#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with bench/time_to_accuracy for a few steps. No assertion depends on measured time.

usage: trainings_test.py FOLDER_OF_PROGRAMS. Exit status 77: this machine cannot create such networks."""

import os
import sys
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import points  # noqa: E402
from points import Point  # noqa: E402

EXIT_UNAVAILABLE = 77
STEPS = 5  # the last score follows after one step
programs = None


class Trainings(unittest.TestCase):
    def measure(self, *variants):
        wanted = [Point("cnn", 2, "1gbit", variant, steps=STEPS) for variant in variants]
        try:
            with points.Measurer(programs, None, points.Progress(wanted, lambda _: None)) as measurer:
                return [measurer.measure(point) for point in wanted]
        except points.network.Unavailable as reason:
            self.skipTest(str(reason))

    def test_without_aggregation_the_same_training_is_summed_by_the_server(self):
        aggregated, added = self.measure("atp-int32", "no-aggregation")
        self.assertGreater(aggregated["share_in_network"], 0.5)
        self.assertEqual(added["share_in_network"], 0)
        [one], [other] = aggregated["jobs"], added["jobs"]
        self.assertEqual([step for step, _ in one["scores"]], [4, 5])
        self.assertEqual(len(one["seconds"]), 2)
        # The page trains one seed without aggregation, because aggregation gives the same weights.
        self.assertEqual((one["weights"], one["scores"]), (other["weights"], other["scores"]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = sys.argv[1]
    ran = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    sys.exit(1 if not ran.wasSuccessful() else EXIT_UNAVAILABLE if ran.skipped else 0)
