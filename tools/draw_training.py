#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the losses and the throughput of the demo's trainings.

usage: draw_training.py FIGURES.json PICTURE.png
"""

from __future__ import annotations

import json
import sys
from statistics import median

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  after the choice of a backend without a screen

COLORS = {"atp": "#d6622d", "switch": "#e8a33d", "gloo": "#33658a"}
TITLES = {
    "atp": "ATP, summed in shared memory",
    "switch": "ATP, summed in a switch",
    "gloo": "Gloo, summed among workers",
}
LABELS = {"atp": "ATP", "switch": "ATP, switch", "gloo": "Gloo"}


def draw_losses(axes, trainings: dict) -> None:
    """Draws the losses. Correct curves coincide, so the first is broad and the others are dashed."""
    styles = [
        {"linewidth": 5, "alpha": 0.5},
        {"linewidth": 2, "linestyle": (0, (1, 2))},
        {"linewidth": 1.4, "linestyle": (0, (4, 2))},
    ]
    for (name, training), style in zip(trainings.items(), styles):
        losses = training["losses"]
        axes.plot(range(1, len(losses) + 1), losses, color=COLORS[name], label=TITLES[name], **style)
    axes.set(title="Loss, mean of all workers", xlabel="step", yscale="log")
    axes.legend(frameon=False)


def draw_rates(axes, trainings: dict) -> None:
    for place, (name, training) in enumerate(trainings.items()):
        rates = training["steps_per_s"]
        axes.bar(place, median(rates), 0.6, color=COLORS[name], alpha=0.6)
        axes.text(place, median(rates) / 2, f"{median(rates):.1f}", ha="center", va="center", fontsize=15)
        offsets = [place + 0.5 * (index / max(len(rates) - 1, 1) - 0.5) for index in range(len(rates))]
        axes.plot(offsets, rates, "o", color=COLORS[name], markersize=4)
    axes.set_xticks(range(len(trainings)), [LABELS[name] for name in trainings])
    axes.set(title="Steps per second: median and each epoch", ylim=(0, None))


def draw(figures: dict, path: str) -> None:
    picture, (losses, rates) = pyplot.subplots(1, 2, figsize=(11, 4.5), width_ratios=(3, 2))
    draw_losses(losses, figures["trainings"])
    draw_rates(rates, figures["trainings"])
    for axes in (losses, rates):
        axes.spines[["top", "right"]].set_visible(False)
    picture.suptitle(
        f"{figures['workers']} workers train a CNN with {figures['gradient_bytes'] / 1e6:.1f} MB of gradients, "
        f"on one machine of {figures['cores']} cores"
    )
    picture.tight_layout()
    picture.savefig(path, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        draw(json.load(file), sys.argv[2])
