# SPDX-License-Identifier: Apache-2.0
"""Evaluates trainings: scores over seconds, when they reach a target, and how much sooner one does than another."""

import itertools
import os
import statistics
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "accuracy"))

from curves import mean_curve, reached_at, target_of  # noqa: E402  in bench/accuracy/


def is_loss(trainings):
    return trainings[0]["measure"] == "test loss"


def by_steps(trainings):
    """Scores of all seeds as one curve over steps."""
    return mean_curve([training["scores"] for training in trainings])


def by_seconds(trainings):
    """Scores of all seeds as one curve over seconds: the median of the seeds at each score."""
    clocks = zip(*(itertools.accumulate(training["seconds"]) for training in trainings))
    return [(statistics.median(of_seeds), score) for of_seeds, (_, score) in zip(clocks, by_steps(trainings))]


def target(trainings):
    return target_of(by_steps(trainings), is_loss(trainings))


def seconds_to(score, trainings):
    """None: never."""
    return reached_at(by_seconds(trainings), score, is_loss(trainings))


median = statistics.median


def steps_per_second(trainings):
    """The median of the seeds."""
    return statistics.median(training["scores"][-1][0] / sum(training["seconds"]) for training in trainings)


def times_sooner(score, ours, others):
    """The seconds of `others` divided by ours; None: one of them never reaches the score."""
    mine, theirs = seconds_to(score, ours), seconds_to(score, others)
    return None if mine is None or theirs is None else theirs / mine


def seconds_of_a_step(training):
    """The median. The first steps do not count: in them, DistributedDataParallel orders its buckets."""
    ends = [step for step, _ in training["scores"]]
    steps = [last - first for first, last in zip([0, *ends], ends)]
    return statistics.median([span / count for span, count in zip(training["seconds"], steps)][1:])


def predicted_ratio(compute, other_sum, own_sum):
    """Of the steps per second, if sums do not overlap computing."""
    return (compute + other_sum) / (compute + own_sum)
