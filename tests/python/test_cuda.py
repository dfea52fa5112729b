# SPDX-License-Identifier: Apache-2.0
"""Sums of CUDA tensors have the same bits as sums of CPU tensors, and run in the order of their CUDA stream."""

from __future__ import annotations

import hashlib

import numpy
import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of
from test_backend import FLOATS, INTEGERS, bits, values

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device that this torch can use")

# Number of elements that the device converts in one step (src/drivers/staging/elements.h). SIZES are below, equal and
# above.
STEP = 1 << 19
SIZES = (1, 1000, STEP, 2 * STEP + 17)


def device_of(rank):
    return torch.device("cuda", rank % torch.cuda.device_count())


def reduce_everything(rank, size, on_cuda):
    results = {}
    device = device_of(rank) if on_cuda else torch.device("cpu")
    for dtype in FLOATS + INTEGERS:
        for operation in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            if operation == dist.ReduceOp.AVG and not dtype.is_floating_point:
                continue
            for count in SIZES:
                tensor = values(rank, dtype, count).to(device)
                dist.all_reduce(tensor, operation)
                results[f"{dtype} {operation} {count}"] = hashlib.sha256(bits(tensor.cpu())).hexdigest()
    return results


def reduce_everything_on_cuda(rank, size):
    return reduce_everything(rank, size, True)


def reduce_everything_on_the_cpu(rank, size):
    return reduce_everything(rank, size, False)


def reduce_everything_on_both(rank, size):
    return reduce_everything(rank, size, rank == 0)


# With the fixed scale the device converts its tensors, otherwise the CPU.
SCALINGS = pytest.mark.parametrize("environment", [{"ATP_SCALING": "fixed"}, {}], ids=["fixed", "default"])


@SCALINGS
@pytest.mark.parametrize("body", [reduce_everything_on_cuda, reduce_everything_on_both])
def test_every_type_has_the_same_bits_as_on_the_cpu(body, environment):
    expected = values_of(run_ranks(reduce_everything_on_the_cpu, 2, environment))
    assert values_of(run_ranks(body, 2, environment)) == expected


def special_values(dtype):
    """Returns ordinary values and six special ones, 1000 elements apart: infinities, NaN, subnormal, beyond int32."""
    tensor = torch.linspace(-3, 3, 2 * STEP, dtype=torch.float64).to(dtype)
    limits = torch.finfo(dtype)
    special = [float("inf"), float("-inf"), float("nan"), limits.max, limits.tiny / 2, 300.5]
    for at, value in enumerate(special):
        tensor[STEP + 1000 * at] = value
    return tensor


def reduce_special_values(rank, size, device):
    results = []
    for dtype in FLOATS:
        tensor = special_values(dtype).to(device)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        results.append(bits(tensor.cpu()))
    return results


def reduce_special_values_on_cuda(rank, size):
    return reduce_special_values(rank, size, device_of(rank))


def reduce_special_values_on_the_cpu(rank, size):
    return reduce_special_values(rank, size, "cpu")


@SCALINGS
def test_infinities_and_huge_floats_have_the_same_bits(environment):
    on_cuda = values_of(run_ranks(reduce_special_values_on_cuda, 2, environment))
    assert on_cuda == values_of(run_ranks(reduce_special_values_on_the_cpu, 2, environment))


def reduce_in_streams(rank, size):
    device = device_of(rank)
    torch.cuda.set_device(device)
    tensor = torch.zeros(3 * STEP, device=device)
    busy = torch.randn(4096, 4096, device=device)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(20):
            busy = busy @ busy / 4096  # keeps the stream busy, so that the next operations of the stream start late
        tensor += rank + 1
        work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    doubled = tensor * 2
    future = dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value()[0] + 1)
    return doubled.unique().tolist(), future.wait().unique().tolist()


def test_sum_runs_in_the_order_of_its_stream():
    for doubled, chained in values_of(run_ranks(reduce_in_streams, 2)):
        assert doubled == [6.0]
        assert chained == [7.0]


def reduce_awkward_tensors(rank, size):
    device = device_of(rank)
    transposed = (torch.arange(12.0, device=device).reshape(3, 4) * (rank + 1)).t()
    empty = torch.empty(0, device=device)
    several = [torch.full((count,), float(rank + count), device=device) for count in (1, 7, STEP + 1, 0, 3)]
    dist.all_reduce(transposed)
    dist.all_reduce(empty)
    dist.all_reduce_coalesced(several)
    message = torch.arange(5, device=device) if rank == 1 else torch.zeros(5, dtype=torch.int64, device=device)
    dist.broadcast(message, src=1)
    dist.barrier()
    return transposed.tolist(), [tensor.unique().tolist() for tensor in several], message.tolist()


@pytest.mark.filterwarnings("ignore")
def test_strided_empty_and_several_tensors_broadcast_and_barrier_succeed():
    for transposed, several, message in values_of(run_ranks(reduce_awkward_tensors, 2)):
        assert transposed == (torch.arange(12.0).reshape(3, 4).t() * 3).tolist()
        assert several == [[3.0], [15.0], [2.0 * (STEP + 1) + 1], [], [7.0]]
        assert message == [0, 1, 2, 3, 4]


def train(rank, size):
    device = device_of(rank)
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    model = torch.nn.Sequential(torch.nn.Linear(16, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).to(device)
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(100 + rank)
    inputs = torch.randn(64, 16, generator=generator).to(device)
    targets = inputs.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(parallel(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1], b"".join(bits(parameter.detach().cpu()) for parameter in model.parameters())


def test_ddp_learns_with_equal_bits_on_all_ranks():
    deterministic = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    first = values_of(run_ranks(train, 2, deterministic))
    for begin, end, _ in first:
        assert end < 0.5 * begin
    assert len({weights for _, _, weights in first}) == 1
    assert values_of(run_ranks(train, 2, deterministic))[0][2] == first[0][2], "two runs with the same seed differ"


def overlap(rank, size):
    """Returns the milliseconds of a computation on the device alone, of a sum alone, and of both at the same time."""
    device = device_of(rank)
    torch.cuda.set_device(device)
    tensor = torch.ones(16 * STEP, device=device)
    factor = torch.randn(4096, 4096, device=device)

    def compute():
        for _ in range(40):
            factor @ factor

    def timed(what):
        dist.barrier()
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        what()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end)

    def both():
        work = dist.all_reduce(tensor, async_op=True)
        compute()
        work.wait()

    compute(), dist.all_reduce(tensor)
    return [timed(compute), timed(lambda: dist.all_reduce(tensor)), timed(both)]


def test_time_of_sums_with_concurrent_computation_is_recorded(record_property):
    """Records the times. No assertion compares them, because they depend on the machine."""
    results = numpy.array(values_of(run_ranks(overlap, 2)))
    record_property("milliseconds: compute, sum, both", results.tolist())
    print(f"\nmilliseconds by rank: compute, sum, both\n{results}")
    assert (results > 0).all()
