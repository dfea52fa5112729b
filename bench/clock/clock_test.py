#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests how bench/time_to_accuracy evaluates trainings, names its points and keeps them. Measures nothing.

usage: clock_test.py"""

import os
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(FOLDER)
sys.path.append(BENCH)

import clocks  # noqa: E402
import keep  # noqa: E402  in bench/
import points  # noqa: E402
from points import Point  # noqa: E402


def training(seconds, scores, measure="test accuracy", every=4):
    steps = range(every, every * len(scores) + 1, every)
    return {"measure": measure, "scores": list(zip(steps, scores)), "seconds": seconds}


class Clocks(unittest.TestCase):
    LEVEL = (0.5, 0.5, 0.5, 0.5, 0.5, 0.5)

    def test_clock_is_the_median_of_the_seeds_and_the_score_their_mean(self):
        seeds = [training([each] * 6, [score] * 6) for each, score in ((1, 0.2), (2, 0.4), (9, 0.9))]
        curve = clocks.by_seconds(seeds)
        self.assertEqual([at for at, _ in curve], [2, 4, 6, 8, 10, 12])
        for _, score in curve:
            self.assertAlmostEqual(score, 0.5)

    def test_target_is_reached_between_two_scores(self):
        rising = [training([2.0] * 6, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])]
        # Each score is the mean of its neighbours, at most two on each side: 0.2, 0.3, 0.4, 0.6, 0.7, 0.8.
        self.assertAlmostEqual(clocks.target(rising), 0.75)
        self.assertAlmostEqual(clocks.seconds_to(0.5, rising), 7)

    def test_loss_reaches_a_target_from_above(self):
        falling = [training([1.0] * 5, [3.0] * 5, "test loss")]
        self.assertAlmostEqual(clocks.target(falling), 3.15)
        self.assertEqual(clocks.seconds_to(3.0, falling), 1)
        self.assertIsNone(clocks.seconds_to(2.9, falling))

    def test_faster_steps_reach_the_target_sooner(self):
        fast, slow = ([training([each] * 6, self.LEVEL)] for each in (1.0, 1.5))
        self.assertAlmostEqual(clocks.times_sooner(0.5, fast, slow), 1.5)
        self.assertAlmostEqual(clocks.steps_per_second(fast) / clocks.steps_per_second(slow), 1.5)
        self.assertIsNone(clocks.times_sooner(0.6, fast, slow))

    def test_step_without_sums_is_the_median_after_the_first_steps(self):
        one = training([9.0, 0.4, 0.8, 0.2], [0.1] * 4)
        one["scores"][-1] = (14, 0.1)  # two steps in the last span
        self.assertAlmostEqual(clocks.seconds_of_a_step(one), 0.1)

    def test_prediction_is_of_steps_that_compute_and_then_sum(self):
        self.assertAlmostEqual(clocks.predicted_ratio(1, 3, 1), 2)


class Points(unittest.TestCase):
    TRAINING = Point("cnn", 4, "200mbit", "atp-int16", seed=2, steps=12)

    def test_name_tells_points_apart(self):
        others = (("seed", 3), ("steps", 9), ("ranks", 8), ("rate", "1gbit"), ("task", "sum"), ("jobs", 2))
        others += (("variant", "gloo-float32"), ("model", "gpt"), ("fault", "loss=0.1%@hosts"))
        fields = vars(self.TRAINING)
        names = {self.TRAINING.name, *(Point(**{**fields, name: value}).name for name, value in others)}
        self.assertEqual(len(names), len(others) + 1)

    def test_training_passes_its_seed_steps_and_hook(self):
        for variant, task, hook in (
            ("atp-int32", "train", "plain"),
            ("gloo-float16", "train", "float16"),
            ("gloo-float32", "compute", "none"),
        ):
            point = Point("gpt", 4, "100mbit", variant, seed=3, steps=7, task=task)
            words = points.system_of(point, "/programs", point.options()).ranks.task(None)
            self.assertEqual(words[1:], f"--model gpt --seed 3 --steps 7 --sums {hook}".split())

    def test_sum_has_the_bytes_that_reach_the_backend(self):
        sizes = {}
        for variant in points.VARIANTS:
            work = Point("cnn", 4, "200mbit", variant, task="sum").work(4000)
            sizes[variant] = (work.bytes, work.operation.type, work.operation.lane_type)
        self.assertEqual(sizes["atp-int16"], (4000, "float32", "int16"))
        self.assertEqual(sizes["gloo-float32"], (4000, "float32", None))
        self.assertEqual(sizes["gloo-float16"], (2000, "float16", None))

    def test_without_aggregation_the_server_has_a_host_of_its_own(self):
        options = Point("cnn", 4, "200mbit", "no-aggregation").options()
        self.assertEqual((options.memory, options.topology.server.name), ("0", "server"))

    def test_time_left_follows_from_the_points_measured(self):
        plan = [Point("cnn", 4, "200mbit", "atp-int32", seed, steps=10) for seed in range(4)]
        times = iter((100.0, 130.0))
        shown = []
        progress = points.Progress(plan, shown.append, lambda: next(times))
        self.assertIsNone(progress.seconds_left())
        progress.finish(plan[0])  # kept by another run
        with progress.measuring(plan[1]):
            pass
        progress.finish(plan[1])
        self.assertAlmostEqual(progress.seconds_left(), 60)
        self.assertEqual(shown, [f"{plan[1].name}: 3 points left"])


class Keeping(unittest.TestCase):
    def test_interrupted_measurement_is_repeated_and_a_finished_one_kept(self):
        def interrupted():
            raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(KeyboardInterrupt):
                keep.kept(folder, "point", interrupted)
            self.assertEqual(keep.kept(folder, "point", lambda: [1]), [1])
            self.assertEqual(keep.kept(folder, "point", lambda: [2]), [1])
        self.assertEqual(keep.kept(None, "point", lambda: [2]), [2])

    def test_sums_of_a_model_share_the_point_that_tells_its_gradients(self):
        turns = []

        class Measurer(points.Measurer):
            def _turn(self, point):
                turns.append(point)
                size = self._gradient_bytes(point) if point.task == "sum" else 4000
                return {"jobs": [{"gradient_bytes": size}]}

        with Measurer(None, None, points.Progress([], None)) as measurer:
            for variant in ("atp-int32", "gloo-float32"):
                point = Point("gpt", 4, "100mbit", variant, steps=60, task="sum")
                self.assertEqual(measurer.measure(point)["jobs"], [{"gradient_bytes": 4000}])
        self.assertEqual([point.task for point in turns], ["sum", "compute", "sum"])


class CommandLine(unittest.TestCase):
    def test_bad_arguments_are_refused_by_name(self):
        for words, named in ((["vgg"], "PART"), (["--seeds", "0"], "--seeds"), (["--steps", "9"], "--steps")):
            program = os.path.join(BENCH, "time_to_accuracy")
            ran = subprocess.run([sys.executable, program, *words], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2, words)
            self.assertIn(named, ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
