# SPDX-License-Identifier: Apache-2.0
"""Ray Train starts its workers itself. Usage: python train_ray.py BACKEND"""

from __future__ import annotations

import sys
import tempfile

import ray
import ray.train
import task
import torch.distributed as dist
from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader


def train() -> None:
    model = prepare_model(task.network())
    optimizer = task.optimizer(model)
    loader = prepare_data_loader(DataLoader(task.samples(), batch_size=task.BATCH))
    for step, (inputs, targets) in enumerate(loader):
        loss = task.loss_of(model, inputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if dist.get_rank() == 0:
            task.report(step, mean.item())


if __name__ == "__main__":
    ray.init(num_cpus=task.RANKS, include_dashboard=False)
    with tempfile.TemporaryDirectory() as folder:
        TorchTrainer(
            train,
            torch_config=TorchConfig(backend=sys.argv[1]),
            scaling_config=ray.train.ScalingConfig(num_workers=task.RANKS, use_gpu=False),
            run_config=ray.train.RunConfig(storage_path=folder),
        ).fit()
