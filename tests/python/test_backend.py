# SPDX-License-Identifier: Apache-2.0
"""Operations that the network executes, with a switch that rank 0 starts in its own process."""

from __future__ import annotations

import functools
import threading
import time
from datetime import timedelta

import numpy
import pytest
import torch
import torch.distributed as dist
from ranks import init_group, run_ranks, values_of

from atp._backends import has_library

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int32, torch.int64]
# The network sums float32 values. The backend rounds each sum once to the type of the tensor.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-14, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def values(rank: int, dtype: torch.dtype, count: int = 5000) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank)
    if dtype.is_floating_point:
        return torch.randn(count, generator=generator).to(dtype)
    return torch.randint(-(2**20), 2**20, (count,), generator=generator).to(dtype)


def reduce_everything(rank, size):
    results = {}
    for dtype in FLOATS + INTEGERS:
        for name, operation in {"sum": dist.ReduceOp.SUM, "avg": dist.ReduceOp.AVG}.items():
            if name == "avg" and not dtype.is_floating_point:
                continue
            tensor = values(rank, dtype)
            dist.all_reduce(tensor, operation)
            exact = sum(values(peer, dtype).double() for peer in range(size))
            error = (tensor.double() - (exact / size if name == "avg" else exact)).abs().max().item()
            results[f"{dtype} {name}"] = (bits(tensor), error)
    return results


@pytest.mark.parametrize("size", [1, 3])
def test_sums_and_averages_are_accurate_with_equal_bits_on_all_ranks(size):
    results = values_of(run_ranks(reduce_everything, size))
    for dtype in FLOATS + INTEGERS:
        for name in ("sum", "avg") if dtype.is_floating_point else ("sum",):
            of_ranks = [result[f"{dtype} {name}"] for result in results]
            assert len({raw for raw, _ in of_ranks}) == 1, f"{dtype} {name} differs between ranks"
            assert of_ranks[0][1] <= TOLERANCE.get(dtype, 0), f"{dtype} {name}"


NARROW_INTEGERS = [torch.int8, torch.uint8, torch.int16]


def numbers_to_average(rank, dtype):
    """Returns numbers of both signs. Their sums have every remainder, and some do not fit the narrow types."""
    limits = torch.iinfo(dtype)
    numbers = [-7, -5, -4, -1, 0, 1, 2, 4, 5, 8, limits.max // 4 - rank, max(limits.min, -(2**60)) // 4 + rank]
    if dtype in NARROW_INTEGERS:
        numbers += [limits.max, limits.min]
    return [min(max(number + rank * (number % 3), limits.min), limits.max) for number in numbers]


def average_integers(rank, size):
    results = {}
    for dtype in NARROW_INTEGERS + INTEGERS:
        per_rank = [numbers_to_average(peer, dtype) for peer in range(size)]
        own = torch.tensor(per_rank[rank], dtype=dtype)
        strided = torch.stack([own, own], dim=1)[:, 0]
        several = [own.clone(), own[:3].clone(), own[:0].clone()]
        dist.all_reduce(own, dist.ReduceOp.AVG)
        dist.all_reduce(strided, dist.ReduceOp.AVG)
        dist.all_reduce_coalesced(several, dist.ReduceOp.AVG)
        assert own.dtype == dtype
        toward_zero = [abs(total) // size * (1 if total > 0 else -1) for total in map(sum, zip(*per_rank))]
        actual = [own.tolist(), strided.tolist(), several[0].tolist(), several[1].tolist()]
        results[str(dtype)] = actual == [toward_zero] * 3 + [toward_zero[:3]] or (actual, toward_zero)
    return results


@pytest.mark.parametrize("size", [1, 2, 3])
def test_averages_of_integers_are_truncated_toward_zero(size):
    expected = {str(dtype): True for dtype in NARROW_INTEGERS + INTEGERS}
    assert values_of(run_ranks(average_integers, size)) == [expected] * size


def sum_where_others_average(rank, size):
    dist.all_reduce(torch.ones(5, dtype=torch.int64), dist.ReduceOp.AVG if rank else dist.ReduceOp.SUM)


def test_sum_on_one_rank_and_average_on_the_other_raise_mismatched():
    for outcome in run_ranks(sum_where_others_average, 2):
        assert outcome.error == "DistBackendError"
        assert "mismatched" in outcome.text


def reduce_again_and_again(rank, size):
    results = []
    for magnitude in (1e-12, 1.1e-12, 1e-9, 1.0, 1.1, 0.9, 1e6, float("inf"), 1e6):
        tensor = values(rank, torch.float32) * magnitude
        dist.all_reduce(tensor)
        exact = sum((values(peer, torch.float32) * magnitude).double() for peer in range(size))
        error = ((tensor - exact).abs().max() / exact.abs().max()).item()
        results.append((bits(tensor), error))
    return results


@pytest.mark.parametrize(("lanes", "tolerance"), [("int32", 1e-6), ("int16", 2e-3)])
def test_dynamic_scaling_keeps_small_and_large_numbers(lanes, tolerance):
    environment = {"ATP_SCALING": "dynamic", "ATP_LANES": lanes}
    of_ranks = values_of(run_ranks(reduce_again_and_again, 3, environment))
    for step in zip(*of_ranks):
        assert len({raw for raw, _ in step}) == 1
        error = step[0][1]
        assert error != error or error <= tolerance, "the error is too large (NaN is right after infinities)"


def reduce_for_comparison(rank, size):
    tensor = values(rank, torch.float32, 100_000)
    dist.all_reduce(tensor)
    return tensor.numpy()


def test_sums_are_close_to_those_of_gloo():
    ours = values_of(run_ranks(reduce_for_comparison, 2))[0]
    theirs = values_of(run_ranks(reduce_for_comparison, 2, backend="gloo"))[0]
    numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def reduce_awkward_shapes(rank, size):
    transposed = torch.arange(12.0).reshape(3, 4).t() * (rank + 1)
    every_other = torch.arange(20.0)[::2].clone().repeat_interleave(2)[::2] * (rank + 1)
    parameter = torch.full((5,), float(rank), requires_grad=True)
    empty = torch.empty(0)
    scalar = torch.tensor(float(rank))
    channels_last = torch.ones(2, 3, 4, 5)
    if rank == 0:
        channels_last = channels_last.to(memory_format=torch.channels_last)
    for tensor in (transposed, every_other, parameter, empty, scalar, channels_last):
        dist.all_reduce(tensor)
    assert empty.numel() == 0
    assert torch.equal(channels_last, torch.full((2, 3, 4, 5), float(size)))
    return transposed.tolist(), every_other.tolist(), parameter.tolist(), scalar.item()


def test_strided_empty_and_scalar_tensors_are_summed_in_place():
    factor = 3  # rank 0 contributes the values, rank 1 twice the values
    for transposed, every_other, parameter, scalar in values_of(run_ranks(reduce_awkward_shapes, 2)):
        assert transposed == (torch.arange(12.0).reshape(3, 4).t() * factor).tolist()
        assert every_other == [value * factor for value in range(0, 20, 2)]
        assert parameter == [1.0] * 5
        assert scalar == 1.0


def reduce_in_inference_mode(rank, size):
    sums = []
    with torch.inference_mode():
        for _ in range(20):
            every_other = torch.ones(300)[::2]
            work = dist.all_reduce(every_other, async_op=True)
            # The thread of the backend, which is not in inference mode, finishes the work before wait().
            time.sleep(0.005)
            work.wait()
            sums.append(every_other.sum().item())
    dist.all_reduce(every_other)
    return set(sums), every_other.sum().item()


def test_tensors_made_in_inference_mode_are_summed_inside_and_outside_it():
    for inside, outside in values_of(run_ranks(reduce_in_inference_mode, 2)):
        assert inside == {300.0}
        assert outside == 600.0


def reduce_coalesced(rank, size):
    tensors = [torch.full((count,), float(rank + count)) for count in (1, 7, 1000, 0, 3)]
    tensors.append((torch.ones(4, 6) * rank).t())
    dist.all_reduce_coalesced(tensors)
    return [tensor.flatten().tolist() for tensor in tensors]


@pytest.mark.filterwarnings("ignore")
def test_coalesced_tensors_have_their_own_sums():
    expected = [[2.0 * count + 1] * count for count in (1, 7, 1000, 0, 3)] + [[1.0] * 24]
    for result in values_of(run_ranks(reduce_coalesced, 2)):
        assert result == expected


def reduce_asynchronously(rank, size):
    tensors = [torch.full((50_000,), float(rank + number)) for number in range(8)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    chained = works[0].get_future().then(lambda done: done.value()[0] * 10)
    for work in reversed(works):
        assert work.wait()
        assert work.is_completed()
    nested = works[1].get_future().then(lambda _: dist.all_reduce(torch.ones(3), async_op=True).wait())
    return [tensor[0].item() for tensor in tensors], chained.wait()[0].item(), nested.wait()


def wait_in_callbacks_for_what_they_begin(rank, size):
    def sum_again(done):
        inner = dist.all_reduce(done.value()[0].clone(), async_op=True).get_future()
        return inner.wait()[0] + dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()[0]

    return dist.all_reduce(torch.ones(3), async_op=True).get_future().then(sum_again).wait().tolist()


def test_callback_may_wait_for_futures_of_operations_that_it_starts():
    assert values_of(run_ranks(wait_in_callbacks_for_what_they_begin, 2, {"ATP_TIMEOUT": "20"})) == [[6.0] * 3] * 2


def read_futures_after_waits(rank, size):
    incomplete, wrong = 0, 0
    for number in range(3000):
        work = dist.all_reduce(torch.full((8,), float(number + rank)), async_op=True)
        future = work.get_future()
        work.wait()
        if not future.done():
            incomplete += 1
        elif future.value()[0][0].item() != 2.0 * number + 1:
            wrong += 1
    return incomplete, wrong


def test_future_is_complete_when_wait_returns():
    assert values_of(run_ranks(read_futures_after_waits, 2)) == [(0, 0)] * 2


def begin_without_waiting(rank, size):
    """Works of callers that say that they wait, and then read the future, poll, or forget the work."""
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    options = dist.AllreduceOptions()
    options.asyncOp = False
    values = []
    for number in range(50):
        future = backend.allreduce([torch.full((8,), float(number + rank))], options).get_future()
        values.append(future.wait()[0][0].item() - 2 * number)
        work = backend.allreduce([torch.ones(8)], options)
        while not work.is_completed():
            time.sleep(0)
        forgotten = torch.ones(8)
        backend.allreduce([forgotten], options)
        dist.barrier()
        values.append(forgotten[0].item())
    return set(values)


@pytest.mark.skipif(not hasattr(dist.AllreduceOptions(), "asyncOp"), reason="the options of this torch have no asyncOp")
@pytest.mark.parametrize("host_level", ["on", "off"])
def test_works_end_without_the_wait_that_was_announced(host_level):
    settings = {"ATP_HOST_LEVEL": host_level, "ATP_TIMEOUT": "20"}
    assert values_of(run_ranks(begin_without_waiting, 2, settings)) == [{1.0, 2.0}] * 2


def poll_works(rank, size):
    incomplete = 0
    for _ in range(300):
        work = dist.all_reduce(torch.ones(8), async_op=True)
        future = work.get_future()
        while not work.is_completed():
            time.sleep(0)
        incomplete += not future.done()
    return incomplete


def test_future_is_complete_when_its_work_reports_completion():
    assert values_of(run_ranks(poll_works, 2)) == [0, 0]


def wait_for_works_in_callbacks(rank, size):
    def wait_for_others(done):
        inner = dist.all_reduce(done.value()[0].clone(), async_op=True)
        inner.wait()
        first.wait()  # the work to which this callback belongs
        return inner.get_future().value()[0]

    sums = []
    for number in range(300):
        first = dist.all_reduce(torch.ones(3), async_op=True)
        chained = first.get_future().then(wait_for_others)
        if number % 2:
            first.wait()
        sums.append(chained.wait().tolist())
    return sums


def test_callback_may_wait_for_its_own_work_and_for_new_works():
    assert values_of(run_ranks(wait_for_works_in_callbacks, 2, {"ATP_TIMEOUT": "20"})) == [[[4.0] * 3] * 300] * 2


def destroy_the_group_in_a_callback(rank, size, store_file):
    ended = []
    for waits in (False, True) * 5:
        init_group(rank, size, f"{store_file}-{len(ended)}", timeout_s=20)
        destroyed = threading.Event()

        def destroy(done, destroyed=destroyed):
            dist.destroy_process_group()
            destroyed.set()
            return done.value()

        work = dist.all_reduce(torch.ones(3), async_op=True)
        chained = work.get_future().then(destroy)
        if waits:
            work.wait()
        ended.append(destroyed.wait(20) and chained.wait()[0].tolist())
        del work, chained
    return ended


def test_callback_may_destroy_the_group():
    outcomes = run_ranks(destroy_the_group_in_a_callback, 2, in_group=False)
    assert values_of(outcomes) == [[[2.0] * 3] * 10] * 2


def read_future_of_failed_work(rank, size):
    if rank == 1:
        return True
    work = dist.all_reduce(torch.ones(3), async_op=True)
    future = work.get_future()
    with pytest.raises(dist.DistBackendError):
        work.wait()
    assert future.done()
    # without the library for PyTorch, a future's error is not of a class of its own
    with pytest.raises(dist.DistBackendError if has_library() else RuntimeError, match="rank 1"):
        future.value()
    return True


def test_future_of_a_failed_work_has_the_error_after_wait_raises():
    assert values_of(run_ranks(read_future_of_failed_work, 2, timeout_s=2)) == [True, True]


def test_futures_of_concurrent_works_have_the_tensors():
    for sums, chained, nested in values_of(run_ranks(reduce_asynchronously, 2)):
        assert sums == [2.0 * number + 1 for number in range(8)]
        assert chained == 10.0
        assert nested


def broadcast_and_meet(rank, size):
    results = []
    for dtype in (torch.float32, torch.uint8, torch.bool, torch.complex64):
        tensor = torch.ones(3, 5).to(dtype) if rank == 1 else torch.zeros(3, 5).to(dtype)
        view = tensor.t()
        dist.broadcast(view, src=1)
        results.append(bool((view == torch.ones(5, 3).to(dtype)).all()))
    dist.barrier()
    return results


def test_broadcast_delivers_any_type_and_barrier_returns():
    assert values_of(run_ranks(broadcast_and_meet, 3)) == [[True] * 4] * 3


def use_what_the_network_does_not_do(rank, size):
    results = {}
    gathered = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(gathered, torch.full((2,), float(rank)))
    results["all_gather"] = [tensor[0].item() for tensor in gathered]
    most = torch.tensor([float(rank)])
    dist.all_reduce(most, dist.ReduceOp.MAX)
    results["max"] = most.item()
    bytes_ = torch.tensor([rank], dtype=torch.uint8)
    dist.all_reduce(bytes_)
    results["uint8"] = bytes_.item()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    results["objects"] = objects
    if rank == 0:
        dist.send(torch.tensor([7.0]), dst=1)
    elif rank == 1:
        received = torch.zeros(1)
        dist.recv(received, src=0)
        results["received"] = received.item()
    reduced = torch.tensor([1.0])
    dist.reduce(reduced, dst=0)
    results["reduce"] = reduced.item() if rank == 0 else float(size)
    part = torch.zeros(2)
    dist.reduce_scatter_tensor(part, torch.arange(2.0 * size))
    results["reduce_scatter"] = part.tolist()
    exchanged = torch.zeros(size)
    dist.all_to_all_single(exchanged, torch.full((size,), float(rank)))
    results["all_to_all"] = exchanged.tolist()
    return results


def test_other_operations_use_the_fallback():
    for rank, result in enumerate(values_of(run_ranks(use_what_the_network_does_not_do, 3))):
        assert result["all_gather"] == [0.0, 1.0, 2.0]
        assert result["max"] == 2.0
        assert result["uint8"] == 3
        assert result["objects"] == [{"rank": 0}, {"rank": 1}, {"rank": 2}]
        assert result.get("received") == (7.0 if rank == 1 else None)
        assert result["reduce"] == 3.0
        assert result["reduce_scatter"] == [3 * 2.0 * rank, 3 * (2.0 * rank + 1)]
        assert result["all_to_all"] == [0.0, 1.0, 2.0]


def sum_in_groups(rank, size):
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=pairs[rank // 2])
    everybody = torch.tensor([float(rank)])
    dist.all_reduce(everybody)
    return tensor.item(), everybody.item()


def test_groups_of_some_ranks_sum_separately():
    assert values_of(run_ranks(sum_in_groups, 4)) == [(1.0, 6.0), (1.0, 6.0), (5.0, 6.0), (5.0, 6.0)]


def sum_infinities(rank, size):
    tensor = torch.ones(1000)
    tensor[3] = float("inf") if rank == 0 else 1.0
    tensor[5] = float("nan") if rank == 1 else 1.0
    dist.all_reduce(tensor)
    return tensor[3].item(), tensor[5].item(), tensor[7].item()


def test_infinities_and_nan_follow_ieee():
    for infinite, no_number, number in values_of(run_ranks(sum_infinities, 2)):
        assert infinite == float("inf")
        assert no_number != no_number
        assert number == 2.0


def train(rank, size):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(100 + rank)
    inputs = torch.randn(64, 16, generator=generator)
    targets = inputs.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(parallel(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1], b"".join(bits(parameter.detach()) for parameter in model.parameters())


def test_ddp_learns_with_equal_bits_on_all_ranks():
    first = values_of(run_ranks(train, 3))
    for begin, end, _ in first:
        assert end < 0.5 * begin
    assert len({weights for _, _, weights in first}) == 1
    again = values_of(run_ranks(train, 3))
    assert again[0][2] == first[0][2], "two runs with the same seed differ"


def wait_too_briefly(rank, size):
    if rank == 1:
        dist.recv(torch.zeros(1), src=0)  # rank 0 sends this after its first wait has failed
    tensor = torch.ones(10)
    work = dist.all_reduce(tensor, async_op=True)
    text = ""
    if rank == 0:
        try:
            work.wait(timedelta(milliseconds=50))
        except dist.DistBackendError as error:
            text = str(error)
        dist.send(torch.zeros(1), dst=1)
    work.wait()
    return text, tensor[0].item()


def test_operation_completes_after_a_wait_times_out():
    results = values_of(run_ranks(wait_too_briefly, 2))
    assert " Timed out " in results[0][0]
    assert [result[1] for result in results] == [2.0, 2.0]


def connect_slowly(rank, size, store_file, folder):
    """Rank 1 waits for rank 0 between its last connection and the end of forming. Returns whether rank 0 waited too."""
    if rank == 1:

        class Slow(dist.ProcessGroupGloo):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                deadline = time.monotonic() + 1
                while not (folder / "formed").exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                (folder / "connected").touch()

        dist.ProcessGroupGloo = Slow
    init_group(rank, size, store_file)
    connected = (folder / "connected").exists()
    (folder / "formed").touch()
    dist.destroy_process_group()
    return connected


def test_no_rank_can_leave_while_gloo_connects_another(tmp_path):
    body = functools.partial(connect_slowly, folder=tmp_path)
    assert values_of(run_ranks(body, 2, in_group=False)) == [True, True]
