# SPDX-License-Identifier: Apache-2.0
"""Scores of several runs as one curve."""

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
