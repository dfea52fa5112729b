# SPDX-License-Identifier: Apache-2.0
"""How the ranks share a model: each has all of it (DistributedDataParallel), or a part of each tensor (fully_shard)."""

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

BUCKET_MB = 25  # default of DistributedDataParallel
# A smaller part of the model has no unit of its own: its parameters travel with those of the whole.
LEAST_UNIT = 0.01


def wrap(model, units, arguments):
    """The model as arguments.parallel trains it (tables.PARALLEL). `units`: its parts, in the order of the forward pass."""
    if arguments.parallel == "ddp":
        # As many buckets as the whole model has.
        return DistributedDataParallel(model, bucket_cap_mb=BUCKET_MB * arguments.share)
    for parameter in model.parameters():
        # Ranks begin with equal parameters, as a checkpoint gives them; DistributedDataParallel sends those of rank 0.
        dist.broadcast(parameter.data, 0)
    least = LEAST_UNIT * _size(model)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for unit in units:
        if _size(unit) >= least:
            fully_shard(unit, mesh=mesh)
    model = fully_shard(model, mesh=mesh)
    if arguments.parallel == "fsdp2-async":
        _gather_ahead(model, units)
    return model


def whole(tensor):
    """All elements of a parameter or gradient, of which this rank may have a part only."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _size(module):
    return sum(parameter.numel() for parameter in module.parameters())


def _gather_ahead(model, units):
    """The gather of a unit's parameters begins while the unit before it computes, in both passes."""
    model._set_unshard_async_op(True)  # noqa: SLF001  PyTorch has no public name for it
    sharded = [unit for unit in units if isinstance(unit, FSDPModule)]
    for unit, following in zip(sharded, sharded[1:]):
        unit.set_modules_to_forward_prefetch([following])
        following.set_modules_to_backward_prefetch([unit])
