# SPDX-License-Identifier: Apache-2.0
"""ZeRO of DeepSpeed. Usage: torchrun --nproc-per-node 2 train_deepspeed.py BACKEND"""

from __future__ import annotations

import sys

import deepspeed
import task
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

# Or else DeepSpeed compiles an all-reduce for inference, which takes a minute and which training does not use.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed(dist_backend=sys.argv[1])
network = task.network()
engine, *_ = deepspeed.initialize(
    model=network,
    optimizer=task.optimizer(network),
    config={
        "train_micro_batch_size_per_gpu": task.BATCH,
        "zero_optimization": {"stage": 2},
        "zero_allow_untested_optimizer": True,
    },
)
samples = task.samples()
for step, (inputs, targets) in enumerate(
    DataLoader(samples, task.BATCH, sampler=DistributedSampler(samples, shuffle=False))
):
    loss = task.loss_of(engine, inputs, targets)
    engine.backward(loss)
    engine.step()
    mean = loss.detach()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        task.report(step, mean.item() / task.RANKS)
engine.destroy()
dist.destroy_process_group()
