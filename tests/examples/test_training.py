# SPDX-License-Identifier: Apache-2.0
"""The examples train in a few steps. test_demo.py tests the CNN, and test_elastic.py the elastic training."""

from __future__ import annotations

import re

import pytest
from launch import losses_in, run_example, weights_in

pytest.importorskip("sklearn")


def test_all_reduce_verifies_its_sums():
    assert re.search(r"atp: 2 ranks, 1 MB, median \d+\.\d ms", run_example("all_reduce.py", "--megabytes", 1))


def test_gpt_learns_and_generates_text():
    output = run_example("train_gpt.py", "--steps", 60, "--batch", 8)
    first, last = losses_in(output)
    assert last < first < 4
    weights_in(output)
    assert output.split("generated text:\n")[1].startswith("switch")


def test_gpt_with_sharded_parameters_learns():
    output = run_example("train_gpt.py", "--steps", 60, "--batch", 8, "--sharded")
    first, last = losses_in(output)
    assert last < first < 4
    weights_in(output)


def test_pushed_and_pulled_gradients_train():
    output = run_example("push_pull.py", "--steps", 60)
    losses = losses_in(output)
    assert losses[-1] < 0.5 * losses[0]
    weights_in(output)


def test_infinity_on_one_rank_skips_the_step_on_all():
    output = run_example("train_amp.py", "--steps", 20, "--overflow-step", 5)
    assert "step 5: the largest summed gradient of rank 0 is inf; skipped by ranks 0, 1; scale 65536 -> 32768" in output
    losses = losses_in(output)
    assert losses[-1] < losses[0]
    weights_in(output)
