# SPDX-License-Identifier: Apache-2.0
"""Lanes of 8 bits with the hook that makes up for their rounding."""

from __future__ import annotations

import functools

import pytest
import torch
from ranks import run_ranks, values_of
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from training import digest_of, make_model, train

import atp
from atp._library import ELEMENTS_OF_CELL
from atp.error_feedback import rounding_error

EIGHT_BITS = {"ATP_SCALING": "dynamic", "ATP_LANES": "int8"}
STEPS = 40


class Weighted(nn.Module):
    """Weights whose gradient is the input, whatever they are."""

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(elements))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return (self.weights * values).sum()


def values_of_rank(rank: int, elements: int) -> torch.Tensor:
    return torch.randn(elements, generator=torch.Generator().manual_seed(rank))


def error_of_the_mean(rank, size, elements, hook, dtype=torch.float32):
    """Returns by how much the mean of many equal steps differs from their mean without rounding."""
    parallel = DistributedDataParallel(Weighted(elements).to(dtype))
    if hook:
        parallel.register_comm_hook(atp.ErrorFeedback(), atp.error_feedback_hook)
    total = torch.zeros(elements)
    for _ in range(STEPS):
        parallel.zero_grad()
        parallel(values_of_rank(rank, elements).to(dtype)).backward()
        total += parallel.module.weights.grad.float()
    own = [values_of_rank(peer, elements).to(dtype).float() for peer in range(size)]
    exact = sum(own) / size
    return ((total / STEPS - exact).norm() / exact.norm()).item()


def worst_error(elements, hook, **options):
    return max(
        values_of(
            run_ranks(functools.partial(error_of_the_mean, elements=elements, hook=hook, **options), 3, EIGHT_BITS)
        )
    )


@pytest.mark.parametrize("elements", [5000, 5632, 20000])  # less than a span, one, and several
def test_errors_of_rounding_end_in_the_mean_of_many_steps(elements):
    without = worst_error(elements, hook=False)
    assert without > 0.02, "lanes of 8 bits round these numbers visibly"
    assert worst_error(elements, hook=True) < without / 8


def test_bfloat16_gradients_lose_only_the_digits_of_their_sums():
    without = worst_error(20000, hook=False, dtype=torch.bfloat16)
    assert worst_error(20000, hook=True, dtype=torch.bfloat16) < without / 8


def train_with_the_hook(rank, size, hook=True):
    model = make_model()
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.02)
    if hook:
        parallel.register_comm_hook(atp.ErrorFeedback(), atp.error_feedback_hook)
    losses = train(parallel, torch.optim.SGD(parallel.parameters(), lr=0.2), rank, 60)
    return losses, digest_of(model.parameters())


@pytest.mark.parametrize("host_level", ["off", "on"])
def test_a_training_with_8_bits_learns_with_equal_bits_on_all_ranks(host_level):
    results = values_of(run_ranks(train_with_the_hook, 4, {**EIGHT_BITS, "ATP_HOST_LEVEL": host_level}))
    floats = values_of(run_ranks(functools.partial(train_with_the_hook, hook=False), 4, {"ATP_LANES": "int32"}))
    assert len({digest for _, digest in results}) == 1, "weights differ between ranks"
    ours, theirs = (sum(losses[-1] for losses, _ in each) / 4 for each in (results, floats))
    assert ours < 1.2 * theirs, (ours, theirs)


def test_placement_of_ranks_changes_no_bit():
    apart, together = (
        values_of(run_ranks(train_with_the_hook, 2, {**EIGHT_BITS, "ATP_HOST_LEVEL": level})) for level in ("off", "on")
    )
    assert {digest for _, digest in apart} == {digest for _, digest in together}


def sum_an_infinity_once(rank, size):
    """Returns the finite elements after a step in which one gradient of one rank was infinite."""
    parallel = DistributedDataParallel(Weighted(100))
    parallel.register_comm_hook(atp.ErrorFeedback(), atp.error_feedback_hook)
    for step in range(3):
        values = values_of_rank(rank, 100)
        if step == 1 and rank == 0:
            values[7] = torch.inf
        parallel.zero_grad()
        parallel(values).backward()
    return parallel.module.weights.grad.isfinite().all().item()


def test_an_infinity_leaves_no_trace_in_later_steps():
    assert values_of(run_ranks(sum_an_infinity_once, 2, EIGHT_BITS)) == [True, True]


def use_the_hook(rank, size):
    parallel = DistributedDataParallel(Weighted(100))
    parallel.register_comm_hook(atp.ErrorFeedback(), atp.error_feedback_hook)
    parallel(torch.ones(100)).backward()


@pytest.mark.parametrize(
    ("backend", "scaling"), [("atp", "fixed"), ("gloo", "dynamic")], ids=["fixed-scale", "another-backend"]
)
def test_the_hook_needs_dynamic_scales(backend, scaling):
    environment = {"ATP_SCALING": scaling, "ATP_LANES": "int8"}
    for outcome in run_ranks(use_the_hook, 2, environment, backend=backend):
        assert "at dynamic scales" in outcome.text, outcome


def test_rounding_error_is_what_the_nearest_integers_lack():
    values = torch.tensor([0.3, -0.5, 1.5, 1e10, torch.inf, -torch.inf, torch.nan])
    error = rounding_error(values, torch.tensor([1.0]))
    assert error.tolist() == pytest.approx([0.3, -0.5, -0.5, 0, 0, 0, 0])


def test_each_cell_has_the_rounding_error_of_its_own_scale():
    values = torch.full((ELEMENTS_OF_CELL + 1,), 0.3)
    error = rounding_error(values, torch.tensor([1.0, 2.0]))
    assert error[:-1].tolist() == pytest.approx([0.3] * ELEMENTS_OF_CELL)
    assert error[-1].item() == pytest.approx(-0.2)


def test_sums_at_the_exact_scale_have_no_error():
    values = torch.tensor([0.3, 1e-20, -7.0])
    assert rounding_error(values, torch.tensor([2.0**127])).tolist() == [0, 0, 0]
