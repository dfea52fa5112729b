# SPDX-License-Identifier: Apache-2.0
"""Features of PyTorch that use process groups: variants of DDP, hooks, sharded optimizers, FSDP2, checkpoints."""

from __future__ import annotations

import functools
import tempfile

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of
from releases import needs_fsdp2
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from training import digest_of, loss_of, make_model, train

STEPS = 12


def compress_to_bf16(state, bucket):
    """Calls the hook of PyTorch. Without CUDA, PyTorch refuses that hook by its name, so this hook has another name."""
    return default_hooks.bf16_compress_hook(state, bucket)


class HalfUsed(nn.Module):
    """A model whose head is used only in every second step."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = make_model()
        self.head = nn.Linear(4, 4)
        nn.init.eye_(self.head.weight)
        self.step = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.step += 1
        outputs = self.trunk(images)
        return self.head(outputs) if self.step % 2 else outputs


def train_in_parallel(rank, size, model_type=make_model, hook=None, **arguments):
    model = model_type()
    parallel = DistributedDataParallel(model, **arguments)
    if hook is not None:
        parallel.register_comm_hook(None, hook)
    losses = train(parallel, torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.5), rank, STEPS)
    return losses, digest_of(model.parameters())


def train_with_power_sgd(rank, size):
    model = make_model()
    parallel = DistributedDataParallel(model)
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=4, start_powerSGD_iter=2, min_compression_rate=1
    )
    parallel.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    losses = train(parallel, torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.5), rank, STEPS)
    return losses, digest_of(model.parameters())


def test_training_with_a_hook_whose_callbacks_sum_learns():
    check_that_it_learnt(values_of(run_ranks(train_with_power_sgd, 2)))


def check_that_it_learnt(results):
    losses = [sum(each) / len(results) for each in zip(*(losses for losses, *_ in results))]
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3]), losses
    assert len({digest for _, digest in results}) == 1, "weights differ between ranks"


@pytest.mark.parametrize(
    "variant",
    [
        {"bucket_cap_mb": 0.01},
        {"bucket_cap_mb": 0.01, "gradient_as_bucket_view": True},
        {"static_graph": True},
        {"model_type": HalfUsed, "find_unused_parameters": True},
        {"hook": default_hooks.fp16_compress_hook},
        {"hook": compress_to_bf16, "bucket_cap_mb": 0.01},
    ],
    ids=["buckets", "bucket-views", "static-graph", "unused-parameters", "fp16-hook", "bf16-hook"],
)
def test_ddp_learns_with_equal_bits_on_all_ranks(variant):
    check_that_it_learnt(values_of(run_ranks(functools.partial(train_in_parallel, **variant), 4)))


def test_eight_ranks_learn():
    check_that_it_learnt(values_of(run_ranks(train_in_parallel, 8)))


def accumulate(rank, size):
    """Accumulates two batches, the first in no_sync(). Returns digests of own and summed gradients, and the error."""
    parallel = DistributedDataParallel(make_model(), bucket_cap_mb=0.01)
    with parallel.no_sync():
        loss_of(parallel, rank, 0).backward()
    own = [parameter.grad.clone() for parameter in parallel.parameters()]
    loss_of(parallel, rank, 1).backward()
    alone = make_model()
    for peer in range(size):
        for step in range(2):
            (loss_of(alone, peer, step) / size).backward()
    pairs = list(zip(parallel.parameters(), alone.parameters()))
    error = max((ours.grad - theirs.grad).abs().max().item() for ours, theirs in pairs)
    return digest_of(own), digest_of(ours.grad for ours, _ in pairs), error


def test_no_sync_accumulates_and_then_sums_once():
    results = values_of(run_ranks(accumulate, 3))
    assert len({own for own, _, _ in results}) == 3, "gradients were summed over the ranks inside no_sync()"
    assert len({summed for _, summed, _ in results}) == 1
    assert max(error for _, _, error in results) < 1e-5


def train_with_a_sharded_optimizer(rank, size):
    model = make_model()
    parallel = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.Adam, lr=0.01)
    losses = train(parallel, optimizer, rank, STEPS)
    return losses, digest_of(model.parameters())


def test_zero_redundancy_optimizer_learns():
    check_that_it_learnt(values_of(run_ranks(train_with_a_sharded_optimizer, 2)))


def train_with_fsdp(rank, size):
    from torch.distributed.fsdp import fully_shard

    model = make_model()
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer)
    fully_shard(model)
    losses = train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5), rank, STEPS)
    return losses, digest_of(parameter.full_tensor() for parameter in model.parameters())


@needs_fsdp2
def test_fsdp2_learns_through_the_fallback():
    check_that_it_learnt(values_of(run_ranks(train_with_fsdp, 2)))


def train_compiled(rank, size):
    """aot_eager traces the model, but needs no C++ compiler."""
    model = make_model()
    parallel = torch.compile(DistributedDataParallel(model), backend="aot_eager")
    losses = train(parallel, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5), rank, STEPS)
    return losses, digest_of(model.parameters())


def test_compiled_ddp_learns():
    check_that_it_learnt(values_of(run_ranks(train_compiled, 2)))


def sum_in_a_compiled_graph(rank, size):
    @torch.compile(backend="aot_eager", fullgraph=True)
    def double_and_sum(tensor):
        doubled = 2 * tensor
        dist.all_reduce(doubled)
        return doubled

    return double_and_sum(torch.full((5,), float(rank))).tolist()


def test_all_reduce_inside_a_compiled_function_sums():
    assert values_of(run_ranks(sum_in_a_compiled_graph, 3)) == [[6.0] * 5] * 3


def train_on_a_mesh(rank, size):
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=mesh.get_group("shards"))
    model = make_model()
    parallel = DistributedDataParallel(model, process_group=mesh.get_group("replicas"))
    losses = train(parallel, torch.optim.SGD(parallel.parameters(), lr=0.1), rank, 2)
    return tensor.item(), len(losses), digest_of(model.parameters())


def test_groups_of_a_device_mesh_sum_separately():
    results = values_of(run_ranks(train_on_a_mesh, 4))
    assert [result[0] for result in results] == [1.0, 1.0, 5.0, 5.0]
    digests = [digest for *_, digest in results]
    assert digests[0] == digests[2] and digests[1] == digests[3] and digests[0] != digests[1]


def save_and_load(rank, size, folder):
    from torch.distributed import checkpoint

    model = make_model()
    before = digest_of(model.parameters())
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    state = {"model": model.state_dict()}
    checkpoint.load(state, checkpoint_id=folder)
    model.load_state_dict(state["model"])
    return digest_of(model.parameters()) == before


def test_distributed_checkpoint_is_saved_and_loaded():
    with tempfile.TemporaryDirectory() as folder:
        assert values_of(run_ranks(functools.partial(save_and_load, folder=folder), 2)) == [True, True]


def scale_gradients(rank, size):
    """In the second step, the gradients of one rank overflow. The scaler of every rank must detect the overflow."""
    model = make_model()
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    digests = []
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(parallel, rank, step)
        scaler.scale(loss * float("inf") if step == 1 and rank == 1 else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        digests.append(digest_of(model.parameters()))
    return digests, scaler.get_scale()


def test_scaler_skips_the_step_after_an_overflow_on_one_rank():
    for digests, scale in values_of(run_ranks(scale_gradients, 2)):
        assert digests[0] == digests[1] != digests[2]
        assert scale == 2.0**9


def train_on_uneven_inputs(rank, size):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(5, 5, bias=False))
    gradients = []
    for _ in range(30):
        with model.join(divide_by_initial_world_size=False):
            for _ in range(2 + 2 * rank):
                model(torch.ones(1, 5)).sum().backward()
                gradients.append(model.module.weight.grad.unique().tolist())
                model.zero_grad()
    return gradients


def test_ddp_joins_ranks_with_uneven_inputs():
    results = values_of(run_ranks(train_on_uneven_inputs, 2))
    assert results == [[[1.0]] * 60, [[1.0]] * 120]
