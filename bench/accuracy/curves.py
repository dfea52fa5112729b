# SPDX-License-Identifier: Apache-2.0
"""Scores of several runs as one curve, and where a curve reaches a target. A score is an accuracy, or a loss."""

import statistics

SCORES_AVERAGED = 5


def mean_curve(curves):
    """Mean over the seeds and over neighbouring scores. A single score on a few hundred test images varies too much."""
    steps = [step for step, _ in curves[0]]
    means = [statistics.mean(score for _, score in points) for points in zip(*curves)]
    reach = SCORES_AVERAGED // 2
    return [[step, statistics.mean(means[max(0, i - reach) : i + reach + 1])] for i, step in enumerate(steps)]


def final_score(curve):
    """Mean of the last scores of one run."""
    return statistics.mean(score for _, score in curve[-SCORES_AVERAGED:])


def target_of(curve, is_loss):
    """A score near the final score of a curve, at which the curve still rises. On the flat part of the curve, noise
    would decide where training reaches a score."""
    return curve[-1][1] * 1.05 if is_loss else curve[-1][1] - 0.05


def reached_at(curve, target, is_loss):
    """Where the curve reaches the target, interpolated linearly between two points; None: nowhere."""
    sign = -1 if is_loss else 1
    before = None
    for at, score in curve:
        lacking = sign * (target - score)
        if lacking <= 0:
            return at if before is None else at + (before[0] - at) * lacking / (lacking - before[1])
        before = at, lacking
    return None
