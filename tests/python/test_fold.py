# SPDX-License-Identifier: Apache-2.0
"""Small reductions that no switch can add: the ranks gather the elements and fold them, on every path and like Gloo."""

from __future__ import annotations

import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of
from releases import needs_fsdp2
from switches import running_switch

INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
LARGEST = 65536  # bytes of a rank
IN_MEMORY = {"ATP_HOST_LEVEL": "on"}


def paths():
    """The settings of each path: shared memory, hosts without a switch, through a switch."""
    yield "memory", IN_MEMORY
    yield "hosts", {"ATP_HOST_LEVEL": "off", "ATP_LISTEN": "127.0.0.1:0"}
    with running_switch() as switch:
        yield "switch", {"ATP_HOST_LEVEL": "off", "ATP_SWITCH": switch.address}


def values_for(rank, dtype, elements):
    """Values of both signs, whose products overflow integers, and which differ between ranks."""
    generator = torch.Generator().manual_seed(17 * rank + 1)
    if dtype == torch.bool:
        return torch.randint(0, 2, (elements,), generator=generator).to(torch.bool)
    if dtype.is_floating_point:
        return torch.randn(elements, generator=generator, dtype=torch.float64).to(dtype)
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, (elements,), generator=generator, dtype=torch.int64).to(dtype)


def operations_of(dtype):
    names = ["MIN", "MAX", "PRODUCT"]
    if not dtype.is_floating_point:
        names += ["BAND", "BOR", "BXOR"]
    if dtype not in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        names.append("SUM")
    return names


def bits(tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def by_hand(name, dtype, size, elements):
    """Folds the values of all ranks in rank order."""
    combine = {
        "MIN": torch.minimum,
        "MAX": torch.maximum,
        "PRODUCT": torch.logical_and if dtype == torch.bool else torch.mul,
        "SUM": torch.logical_or if dtype == torch.bool else torch.add,
        "BAND": torch.bitwise_and,
        "BOR": torch.bitwise_or,
        "BXOR": torch.bitwise_xor,
    }[name]
    result = values_for(0, dtype, elements)
    for rank in range(1, size):
        result = combine(result, values_for(rank, dtype, elements))
    return result


def fold_everything(rank, size):
    """Returns which results differ from the fold by hand, which from Gloo's, and what went to Gloo."""
    import test_fallback

    gloo = dist.new_group(list(range(size)), backend="gloo")
    by_hand_differs, gloo_differs = [], []

    def fold():
        for dtype in [*INTEGERS, *FLOATS, torch.bool]:
            for name in operations_of(dtype):
                operation = getattr(dist.ReduceOp, name)
                found = values_for(rank, dtype, 300)
                dist.all_reduce(found, operation)
                if bits(found) != bits(by_hand(name, dtype, size, 300)):
                    by_hand_differs.append((name, dtype))
                exact = name in ("MIN", "MAX") or not dtype.is_floating_point
                if dtype in (torch.int16, torch.bool) or not exact:
                    continue  # Gloo has no int16, stores a sum of booleans as 2, and has an order of its own
                theirs = values_for(rank, dtype, 300)
                dist.all_reduce(theirs, operation, group=gloo)
                if bits(found) != bits(theirs):
                    gloo_differs.append((name, dtype))

    lines = [line for _, line in test_fallback.note_lines_of(fold) if "delegated" in line]
    return by_hand_differs, gloo_differs, lines


@pytest.mark.parametrize("size", [2, 4])
def test_every_operation_and_type_has_the_bits_of_a_fold_and_of_gloo_on_every_path(size):
    for path, environment in paths():
        assert values_of(run_ranks(fold_everything, size, environment)) == [([], [], [])] * size, path


def fold_special_tensors(rank, size):
    nan = torch.tensor([float("nan") if rank == 1 else 1.0, float(rank)])
    dist.all_reduce(nan, dist.ReduceOp.MAX)
    odd = torch.arange(20.0).reshape(4, 5).t()[1:, ::2] * (rank + 1)
    expected = torch.arange(20.0).reshape(4, 5).t()[1:, ::2] * size
    dist.all_reduce(odd, dist.ReduceOp.MAX)
    work = dist.all_reduce(torch.tensor([rank, -rank]), dist.ReduceOp.MIN, async_op=True)
    work.wait()
    awaited = work.get_future().value()[0].tolist()
    tensors = [torch.full((3,), rank, dtype=torch.uint8), torch.full((2,), 9 - rank, dtype=torch.uint8)]
    with dist._coalescing_manager(async_ops=False):
        for tensor in tensors:
            dist.all_reduce(tensor, dist.ReduceOp.MAX)
    empty = torch.zeros(0)
    dist.all_reduce(empty, dist.ReduceOp.PRODUCT)
    scalar = torch.tensor(rank + 2)
    dist.all_reduce(scalar, dist.ReduceOp.PRODUCT)
    average = torch.tensor([1.0 + 2**-40, float(rank)], dtype=torch.float64)
    dist.all_reduce(average, dist.ReduceOp.AVG)
    return (
        [torch.isnan(nan[0]).item(), nan[1].item()],
        torch.equal(odd, expected),
        awaited,
        [tensor.tolist() for tensor in tensors],
        scalar.item(),
        average.tolist(),
    )


def test_nan_strides_coalesced_empty_and_float64_tensors_are_folded():
    expected = ([True, 1.0], True, [0, -1], [[1] * 3, [9] * 2], 6, [1.0 + 2**-40, 0.5])
    for path, environment in paths():
        assert values_of(run_ranks(fold_special_tensors, 2, environment)) == [expected] * 2, path


def fold_alone(rank, size):
    value = torch.tensor([3, -4], dtype=torch.int8)
    dist.all_reduce(value, dist.ReduceOp.PRODUCT)
    return value.tolist()


def test_a_single_rank_keeps_its_values():
    assert values_of(run_ranks(fold_alone, 1, IN_MEMORY)) == [[3, -4]]


def fold_around_the_limit(rank, size):
    import test_fallback

    results = []

    def reduce():
        for elements in (LARGEST // 8, LARGEST // 8 + 1):
            tensor = torch.full((elements,), rank, dtype=torch.int64)
            dist.all_reduce(tensor, dist.ReduceOp.MAX)
            results.append(bool((tensor == size - 1).all()))
        wide = torch.full((LARGEST // 8 + 1,), 0.1, dtype=torch.float64)
        dist.all_reduce(wide)
        results.append(bool((wide == 0.2).all()))

    # A line about the formation may arrive late.
    return [line for _, line in test_fallback.note_lines_of(reduce) if "delegated" in line], results


def test_gloo_still_reduces_more_than_64_kib():
    prefix = 'operation delegated name="all_reduce" backend=gloo reason="more than 64 KiB: '
    logged = [f'{prefix}MAX"', f'{prefix}float64, which the network rounds to float32"']
    results = [True] * 3
    assert values_of(run_ranks(fold_around_the_limit, 2, IN_MEMORY)) == [(logged, results), ([], results)]


def premultiply(rank, size):
    """Returns the largest difference to values that are multiplied by hand, and what went to Gloo."""
    import test_fallback

    differences = []

    def reduce():
        third = dist._make_nccl_premul_sum(1 / 3)
        for dtype in FLOATS:
            for elements in (1, 100_000 if dtype != torch.float64 else 1000):
                tensor = values_for(rank, dtype, elements)
                dist.all_reduce(tensor, third)
                exact = sum(values_for(other, dtype, elements).double() for other in range(size)) / 3
                differences.append(((tensor.double() - exact).abs() / (exact.abs() + 1)).max().item())
        whole = values_for(rank, torch.float32, 1000 * size)
        part = torch.zeros(1000)
        dist.reduce_scatter_tensor(part, whole, third)
        exact = sum(values_for(other, torch.float32, 1000 * size).double() for other in range(size)) / 3
        own = exact[1000 * rank : 1000 * rank + 1000]
        differences.append(((part.double() - own).abs() / (own.abs() + 1)).max().item())
        of_tensor = torch.ones(5)
        dist.all_reduce(of_tensor, dist._make_nccl_premul_sum(torch.tensor([0.25])))
        differences.append((of_tensor - 0.25 * size).abs().max().item())

    lines = [line for _, line in test_fallback.note_lines_of(reduce) if "delegated" in line]
    return max(differences), lines


@pytest.mark.skipif(not hasattr(dist, "_make_nccl_premul_sum"), reason="this PyTorch has no PREMUL_SUM")
def test_premul_sum_multiplies_floats_of_any_size():
    for path, environment in paths():
        for difference, lines in values_of(run_ranks(premultiply, 2, environment)):
            assert difference < 1e-2, path  # that of bfloat16
            assert lines == [], path


def shard_with_a_divisor(rank, size):
    """Returns the gradients of FSDP2, sharded with a factor of 3, and those divided by hand."""
    import copy

    from test_sharded import model_and_data
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, inputs, targets = model_and_data(size)
    plain = copy.deepcopy(model)
    fully_shard(model, mesh=init_device_mesh("cpu", (size,)))
    model.set_gradient_divide_factor(3.0)
    own = slice(8 * rank, 8 * rank + 8)
    torch.nn.functional.mse_loss(model(inputs[own]), targets[own]).backward()
    found = [parameter.grad.full_tensor() for parameter in model.parameters()]
    for other in range(size):
        part = slice(8 * other, 8 * other + 8)
        torch.nn.functional.mse_loss(plain(inputs[part]), targets[part]).backward()
    expected = [parameter.grad / 3 for parameter in plain.parameters()]
    return all(torch.allclose(a, b, rtol=1e-5, atol=1e-7) for a, b in zip(found, expected, strict=True))


@needs_fsdp2
def test_fsdp2_divides_gradients_by_its_factor():
    assert values_of(run_ranks(shard_with_a_divisor, 2, IN_MEMORY)) == [True] * 2


def call_different_reductions(rank, size):
    dist.all_reduce(torch.ones(4), dist.ReduceOp.MAX if rank == 0 else dist.ReduceOp.MIN)


def test_different_reductions_are_named():
    for path, environment in paths():
        for outcome in run_ranks(call_different_reductions, 2, environment):
            assert outcome.error == "DistBackendError", path
            message = outcome.text.splitlines()[0]
            assert "mismatched" in message and "maximum" in message and "minimum" in message, (path, message)


def lose_a_rank(rank, size):
    """Returns the seconds until MAX fails after the end of rank 1, the text, and get_error() before and after."""
    group = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    get_error = getattr(group, "get_error", lambda: None)
    errors = [str(get_error())]
    dist.all_reduce(torch.ones(1), dist.ReduceOp.MAX)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        while True:
            dist.all_reduce(torch.ones(1), dist.ReduceOp.MAX)
    except dist.DistBackendError as error:
        errors.append(str(get_error()))
        return time.monotonic() - begin, str(error), errors


def test_a_rank_that_is_killed_in_a_fold_is_named_within_a_second():
    for path, environment in paths():
        outcomes = run_ranks(lose_a_rank, 3, environment)
        for rank in (0, 2):
            assert outcomes[rank].error is None, (path, outcomes[rank].text)
            seconds, text, errors = outcomes[rank].value
            assert "rank 1" in text and "all_reduce" in text, (path, text)
            assert seconds < 1, (path, seconds)
            assert errors[0] in ("ErrorType.SUCCESS", "None"), errors
            assert errors[1] in ("ErrorType.REMOTE_ERROR", "None"), errors


def wait_for_nobody(rank, size):
    group = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    if rank == 1:
        time.sleep(2)  # longer than the timeout of rank 0
        return None
    try:
        dist.all_reduce(torch.ones(1), dist.ReduceOp.MAX)
    except dist.DistBackendError:
        return str(group.get_error())
    return "no error"


@pytest.mark.skipif(not hasattr(dist.ProcessGroup, "get_error"), reason="this PyTorch has no get_error()")
def test_a_timeout_is_reported_as_such():
    environment = {**IN_MEMORY, "ATP_TIMEOUT": "0.5"}
    assert run_ranks(wait_for_nobody, 2, environment)[0].value == "ErrorType.TIMEOUT"
