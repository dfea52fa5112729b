# SPDX-License-Identifier: Apache-2.0
"""Reduce-scatter, all-gather and reduce in the network, and the training methods that use them."""

from __future__ import annotations

import logging
import time

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of
from releases import needs_fsdp2

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64]


def values(rank: int, dtype: torch.dtype, count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank)
    if dtype.is_floating_point:
        return torch.randn(count, generator=generator).to(dtype)
    return torch.randint(-(2**20), 2**20, (count,), generator=generator).to(dtype)


class Delegated(logging.Handler):
    """Collects what the log says of operations that Gloo executes."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "operation delegated" in record.getMessage():
            self.lines.append(record.getMessage())

    @classmethod
    def watch(cls) -> Delegated:
        handler = cls()
        logging.getLogger("atp").addHandler(handler)
        logging.getLogger("atp").setLevel(logging.DEBUG)
        return handler


def scatter_every_type(rank, size):
    log = Delegated.watch()
    for dtype in TYPES:
        count = 3001
        own = values(rank, dtype, count * size)
        for operation in [dist.ReduceOp.SUM] + ([dist.ReduceOp.AVG] if dtype.is_floating_point else []):
            whole = own.clone()
            dist.all_reduce(whole, operation)
            expected = whole[rank * count : (rank + 1) * count]
            part = torch.empty(count, dtype=dtype)
            dist.reduce_scatter_tensor(part, own, operation)
            assert torch.equal(part, expected), (dtype, operation)
            listed = torch.empty(count, dtype=dtype)
            dist.reduce_scatter(listed, list(own.chunk(size)), operation)
            assert torch.equal(listed, expected), (dtype, operation)
            reduced = own.clone()
            dist.reduce(reduced, dst=1, op=operation)
            assert torch.equal(reduced, whole if rank == 1 else own)
    return log.lines


def test_a_reduce_scatter_has_the_bits_of_an_all_reduce():
    # Dynamic scales of a reduce-scatter and of an all-reduce differ.
    assert values_of(run_ranks(scatter_every_type, 3, {"ATP_SCALING": "fixed"})) == [[]] * 3


def gather_every_type(rank, size):
    log = Delegated.watch()
    for dtype in [*TYPES, torch.float64, torch.uint8, torch.bool, torch.complex64]:
        own = torch.arange(7 * size).reshape(7, size).add(rank).to(dtype)
        expected = [torch.arange(7 * size).reshape(7, size).add(peer).to(dtype) for peer in range(size)]
        whole = torch.empty(7 * size, size, dtype=dtype)
        dist.all_gather_into_tensor(whole, own)
        assert torch.equal(whole, torch.cat(expected)), dtype
        listed = [torch.empty(7, size, dtype=dtype) for _ in range(size)]
        dist.all_gather(listed, own)
        assert all(torch.equal(*pair) for pair in zip(listed, expected)), dtype
        strided = torch.empty(size, 7, dtype=dtype).t()
        into = [strided, *(torch.empty(7, size, dtype=dtype) for _ in range(size - 1))]
        dist.all_gather(into, own.t().contiguous().t())
        assert all(torch.equal(*pair) for pair in zip(into, expected)), dtype
    # In place, as FSDP calls it.
    whole = torch.zeros(size, 5)
    whole[rank] = rank + 1
    dist.all_gather_into_tensor(whole, whole[rank])
    assert whole[:, 0].tolist() == [peer + 1.0 for peer in range(size)]
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": peer} for peer in range(size)]
    return log.lines


def test_an_all_gather_copies_every_type():
    assert values_of(run_ranks(gather_every_type, 3)) == [[]] * 3


def gather_into_misfits(rank, size):
    own = torch.full((6,), float(rank))
    lists = {
        "none": [],
        "one too few": [torch.empty(6) for _ in range(size - 1)],
        "one too many": [*(torch.empty(6) for _ in range(size)), torch.empty(0)],
        "one too long": [torch.empty(6 + (peer == 1) - (peer == 0)) for peer in range(size)],
    }
    for outputs in lists.values():
        for call in (dist.all_gather, lambda all, one: dist.all_gather_coalesced([[each] for each in all], [one])):
            with pytest.raises(ValueError, match="an output for each input of each rank"):
                call(outputs, own)
    with pytest.raises(ValueError, match="an output for each input of each rank"):
        dist.all_gather_coalesced([[torch.empty(2), torch.empty(6)] for _ in range(size)], [own, own[:2]])
    with pytest.raises(ValueError, match="an output for each input of each rank"):
        dist.all_gather_coalesced([[] for _ in range(size)], [own])
    with pytest.raises(ValueError, match="needs the bytes of all ranks"):
        dist.all_gather_into_tensor(torch.empty(6 * size + 1), own)
    group = dist.group.WORLD
    with pytest.raises(ValueError, match="an output for each input"):
        group.reduce_scatter_tensor_coalesced([], [torch.ones(size)])
    with pytest.raises(ValueError, match="an output for each input of each rank"):
        group.allgather_into_tensor_coalesced([torch.empty(2 * size), torch.empty(6 * size)], [own, own[:2]])
    whole = torch.empty(6 * size)
    dist.all_gather_into_tensor(whole, own)  # the group still works
    return whole[::6].tolist()


def test_outputs_that_do_not_fit_their_inputs_are_an_error_before_the_call():
    assert values_of(run_ranks(gather_into_misfits, 2)) == [[0.0, 1.0]] * 2


def use_functional_forms(rank, size):
    import torch.distributed._functional_collectives as functional

    log = Delegated.watch()
    group = list(range(size))
    own = [torch.full((3, 2), float(rank)), torch.full((4,), 10.0 + rank)]
    whole = functional.all_gather_tensor(own[0], 0, group)
    assert whole[:, 0].tolist() == [float(peer) for peer in range(size) for _ in range(3)]
    for tensor, gathered in zip(own, functional.all_gather_into_tensor_coalesced(own, group)):
        expected = torch.cat([tensor - rank + peer for peer in range(size)])
        assert torch.equal(functional.wait_tensor(gathered), expected)
    scattered = functional.reduce_scatter_tensor(torch.arange(6.0 * size), "sum", 0, group)
    assert scattered.tolist() == [size * (6.0 * rank + at) for at in range(6)]
    inputs = [torch.arange(2.0 * size), torch.arange(3.0 * size) + 100]
    parts = functional.reduce_scatter_tensor_coalesced(inputs, "sum", [0, 0], group)
    for tensor, part in zip(inputs, parts):
        assert torch.equal(functional.wait_tensor(part), size * tensor.chunk(size)[rank])
    return log.lines


def test_functional_and_coalesced_forms_use_the_network():
    assert values_of(run_ranks(use_functional_forms, 3)) == [[]] * 3


def overlap(rank, size):
    inputs = [torch.full((size * 2000,), float(rank + number)) for number in range(6)]
    parts = [torch.empty(2000) for _ in inputs]
    wholes = [torch.empty(size * size * 2000) for _ in inputs]
    works = []
    for tensor, part, whole in zip(inputs, parts, wholes):
        works.append(dist.reduce_scatter_tensor(part, tensor, async_op=True))
        works.append(dist.all_gather_into_tensor(whole, tensor, async_op=True))
    for work in reversed(works):
        work.wait()
    for number, (part, whole) in enumerate(zip(parts, wholes)):
        assert set(part.tolist()) == {float(sum(peer + number for peer in range(size)))}
        assert whole.reshape(size, -1)[:, 0].tolist() == [float(peer + number) for peer in range(size)]
    return True


def test_asynchronous_operations_overlap():
    assert values_of(run_ranks(overlap, 4)) == [True] * 4


def overlap_in_groups(rank, size):
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    works = []
    results = []
    for number in range(4):
        if rank == number:
            time.sleep(0.02)
        for group, members in ((None, range(size)), (pairs[rank // 2], range(rank // 2 * 2, rank // 2 * 2 + 2))):
            tensor = torch.full((len(members) * 3000,), float(rank + number))
            part = torch.empty(3000)
            whole = torch.empty(len(members) * tensor.numel())
            works.append(dist.all_gather_into_tensor(whole, tensor, group=group, async_op=True))
            works.append(dist.reduce_scatter_tensor(part, tensor, group=group, async_op=True))
            results.append((part, whole, [float(peer + number) for peer in members]))
    for work in works:
        work.wait()
    for part, whole, numbers in results:
        assert set(part.tolist()) == {sum(numbers)}
        assert whole.reshape(len(numbers), -1)[:, 0].tolist() == numbers
    return True


def test_operations_of_groups_overlap_while_a_rank_is_late():
    assert values_of(run_ranks(overlap_in_groups, 4)) == [True] * 4


def model_and_data(size: int):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(19, 33), torch.nn.ReLU(), torch.nn.Linear(33, 5))
    return model, torch.randn(8 * size, 19), torch.randn(8 * size, 5)


def train(model, optimizer, inputs, targets, steps=3) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def alone(size: int) -> list[torch.Tensor]:
    model, inputs, targets = model_and_data(size)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), inputs, targets)
    return [parameter.detach() for parameter in model.parameters()]


def close(found, expected) -> bool:
    return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, expected, strict=True))


def train_sharded(rank, size, *dimensions):
    """FSDP2 over a mesh with these dimensions; with two of them HSDP, whose first one averages what the second shards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", dimensions, mesh_dim_names=("replicas", "shards")[-len(dimensions) :])
    log = Delegated.watch()
    model, inputs, targets = model_and_data(size)
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    own = slice(8 * rank, 8 * rank + 8)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), inputs[own], targets[own])
    found = [parameter.full_tensor().detach() for parameter in model.parameters()]
    return close(found, alone(size)), log.lines


def train_fsdp2(rank, size):
    return train_sharded(rank, size, size)


@needs_fsdp2
def test_fsdp2_trains_without_gloo():
    assert values_of(run_ranks(train_fsdp2, 2)) == [(True, [])] * 2


def train_hybrid(rank, size):
    return train_sharded(rank, size, 2, size // 2)


@needs_fsdp2
def test_hsdp_trains_without_gloo():
    assert values_of(run_ranks(train_hybrid, 4)) == [(True, [])] * 4


def train_fsdp1(rank, size):
    from torch.distributed.fsdp import FullyShardedDataParallel

    log = Delegated.watch()
    model, inputs, targets = model_and_data(size)
    sharded = FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
    own = slice(8 * rank, 8 * rank + 8)
    train(sharded, torch.optim.SGD(sharded.parameters(), lr=0.1), inputs[own], targets[own])
    with FullyShardedDataParallel.summon_full_params(sharded):
        found = [parameter.detach().clone() for parameter in sharded.parameters()]
    return close(found, alone(size)), log.lines


def test_fsdp1_trains_without_gloo():
    assert values_of(run_ranks(train_fsdp1, 2)) == [(True, [])] * 2


def train_zero(rank, size):
    """ZeRO: each rank sums and updates its part of the flat parameters."""
    log = Delegated.watch()
    model, inputs, targets = model_and_data(size)
    parameters = list(model.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    each = -(-count // size)
    own = slice(8 * rank, 8 * rank + 8)
    for _ in range(3):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(inputs[own]), targets[own]).backward()
        gradients = torch.zeros(each * size)
        gradients[:count] = torch.cat([parameter.grad.reshape(-1) for parameter in parameters])
        part = torch.empty(each)
        dist.reduce_scatter_tensor(part, gradients, dist.ReduceOp.AVG)
        flat = torch.zeros(each * size)
        flat[:count] = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        flat[rank * each : (rank + 1) * each] -= 0.1 * part
        dist.all_gather_into_tensor(flat, flat[rank * each : (rank + 1) * each].clone())
        torch.nn.utils.vector_to_parameters(flat[:count], parameters)
    return close([parameter.detach() for parameter in parameters], alone(size)), log.lines


def test_zero_trains_without_gloo():
    assert values_of(run_ranks(train_zero, 3)) == [(True, [])] * 3


def redistribute(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(10.0 * size).reshape(2 * size, 5)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    log = Delegated.watch()
    assert torch.equal(sharded.redistribute(mesh, [Replicate()]).to_local(), whole)
    partial = DTensor.from_local(whole, mesh, [Partial()])
    assert torch.equal(partial.redistribute(mesh, [Shard(0)]).to_local(), size * whole.chunk(size)[rank])
    assert torch.equal(partial.redistribute(mesh, [Replicate()]).to_local(), size * whole)
    return log.lines


def test_dtensor_redistributes_without_gloo():
    assert values_of(run_ranks(redistribute, 2)) == [[]] * 2


def disagree(rank, size):
    dist.all_gather_into_tensor(torch.empty(size * (100 + rank)), torch.ones(100 + rank))


def test_different_sizes_are_an_error_on_every_rank():
    for outcome in run_ranks(disagree, 2, timeout_s=20):
        assert outcome.error == "DistBackendError"
