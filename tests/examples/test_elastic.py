# SPDX-License-Identifier: Apache-2.0
"""A killed rank costs the epoch in progress, and no bit of the result."""

from __future__ import annotations

import pytest
from launch import run_example, weights_in

pytest.importorskip("sklearn")


def test_killed_rank_restarts_from_the_checkpoint(tmp_path):
    checkpoint = ("--checkpoint", tmp_path / "checkpoint.pt", "--epochs", 3)
    restarts = ("--max-restarts", "1")
    fixed = {"ATP_SCALING": "fixed"}  # dynamic scales follow from earlier calls, which a new process does not know
    undisturbed = run_example("train_elastic.py", *checkpoint, launcher=restarts, **fixed)
    assert "attempt 1" not in undisturbed
    disturbed = run_example("train_elastic.py", *checkpoint, "--kill-epoch", 2, launcher=restarts, **fixed)
    assert "attempt 1: 1 epochs completed earlier" in disturbed
    assert disturbed.count("epoch 1 of 3") == 1
    assert weights_in(disturbed) == weights_in(undisturbed)
    assert not list(tmp_path.iterdir())
