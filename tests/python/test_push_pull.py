# SPDX-License-Identifier: Apache-2.0
"""Tests of atp.push() and atp.pull()."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of

import atp

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64]


def error_of(call, *arguments) -> str:
    """Returns the type and the text of the exception that the call raises."""
    try:
        call(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def push_every_type_for_two_rounds(rank, size):
    results = []
    for round_ in range(2):
        for number, dtype in enumerate(TYPES):
            atp.push(number, torch.full((700,), rank + round_).to(dtype))
        for number, dtype in reversed(list(enumerate(TYPES))):
            out = atp.pull(number, torch.zeros(700, dtype=dtype))
            results.append(set(out.tolist()))
    return results


def test_each_round_has_the_sum_of_its_own_pushes_in_every_type():
    for results in values_of(run_ranks(push_every_type_for_two_rounds, 3)):
        assert results == [{3.0}] * len(TYPES) + [{6.0}] * len(TYPES)


def push_by_name_and_with_strides(rank, size):
    gradient = torch.arange(12.0).reshape(3, 4).t().requires_grad_()
    atp.push("layer.weight", gradient * (rank + 1))
    atp.push(torch.tensor(3), torch.ones(2))  # a key may be any object that Python accepts as an index
    gradient.data.zero_()  # push() has copied the tensor
    out = torch.zeros(8, 3)[::2]
    assert atp.pull("layer.weight", out) is out
    assert atp.pull(3, torch.zeros(2)).tolist() == [2.0, 2.0]
    return out.tolist(), atp.pull("layer.weight", torch.zeros(4, 3)).tolist()


def test_names_can_be_keys_and_strided_tensors_are_accepted():
    expected = (torch.arange(12.0).reshape(3, 4).t() * 3).tolist()
    for result in values_of(run_ranks(push_by_name_and_with_strides, 2)):
        assert result == (expected, expected)


def push_through_a_wrapper(rank, size):
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group()
    atp.push("key", torch.tensor([rank + 1.0]), group)
    return atp.pull("key", torch.zeros(1), group).item()


def test_push_and_pull_work_in_a_group_with_the_debug_wrapper():
    assert values_of(run_ranks(push_through_a_wrapper, 2)) == [3.0, 3.0]


def push_in_a_pair(rank, size):
    pair = [dist.new_group([0, 1]), dist.new_group([2])][rank // 2]
    atp.push(1, torch.tensor([float(rank)]), pair)
    atp.push(1, torch.tensor([10.0 * rank]))
    return atp.pull(1, torch.zeros(1), group=pair).item(), atp.pull(1, torch.zeros(1)).item()


def test_groups_have_separate_keys():
    assert values_of(run_ranks(push_in_a_pair, 3)) == [(1.0, 30.0), (1.0, 30.0), (2.0, 30.0)]


def make_wrong_calls(rank, size):
    atp.push(5, torch.ones(10))
    errors = {
        "never pushed": error_of(atp.pull, 6, torch.zeros(10)),
        "other size": error_of(atp.pull, 5, torch.zeros(11)),
        "other type": error_of(atp.push, 5, torch.ones(10, dtype=torch.int32)),
        "no type of keys": error_of(atp.push, 7, torch.ones(3, dtype=torch.bool)),
        "no key": error_of(atp.push, -1, torch.ones(3)),
        "other backend": error_of(atp.push, 5, torch.ones(3), dist.new_group(backend="gloo")),
    }
    return errors, atp.pull(5, torch.zeros(10)).tolist()


def test_wrong_calls_raise_and_change_no_key():
    for errors, values in values_of(run_ranks(make_wrong_calls, 2)):
        assert "Error: atp: pull: " in errors["never pushed"]
        assert "this rank has not pushed key 6" in errors["never pushed"]
        assert "key 5 has 10 elements of type float32" in errors["other size"]
        assert "but the push has 10 of type int32" in errors["other type"]
        assert errors["no type of keys"].startswith("TypeError: atp: push and pull accept floats")
        assert errors["no key"].startswith("TypeError")
        assert errors["other backend"] == "ValueError: the process group does not use the backend 'atp'"
        assert values == [2.0] * 10


def push_different_keys(rank, size):
    atp.push(rank, torch.ones(100))
    return error_of(atp.pull, rank, torch.zeros(100))


def test_different_keys_raise_on_all_ranks_without_a_sum():
    for error in values_of(run_ranks(push_different_keys, 2, {"ATP_TIMEOUT": "4"})):
        assert "Error: atp: push" in error


def test_missing_group_raises_with_the_reason():
    with pytest.raises(ValueError, match="init_process_group"):
        atp.push(1, torch.ones(1))
