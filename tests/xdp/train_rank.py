#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank that trains the same model with Gloo and with ATP, and prints the difference between the final weights.

usage: train_rank.py RANK WORLD MASTER_ADDRESS
"""

import hashlib
import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 8
BATCH = 16
INPUTS, HIDDEN, CLASSES = 64, 1024, 4


def make_model():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN // 4), nn.ReLU(),
        nn.Linear(HIDDEN // 4, CLASSES),
    )  # fmt: skip


def train(rank):
    model = make_model()
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(1000 * rank + step)
        labels = torch.randint(CLASSES, (BATCH,), generator=generator)
        inputs = torch.randn(BATCH, INPUTS, generator=generator)
        inputs[torch.arange(BATCH), labels] += 3
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(parallel(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return nn.utils.parameters_to_vector(model.parameters()).detach(), losses


def train_with(backend, port, rank, world, address):
    dist.init_process_group(backend, init_method=f"tcp://{address}:{port}", rank=rank, world_size=world)
    outcome = train(rank)
    dist.destroy_process_group()
    return outcome


def main():
    rank, world, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    expected, _ = train_with("gloo", 29510, rank, world, address)
    import atp  # noqa: F401  registers the backend after the training with Gloo

    weights, losses = train_with("atp", 29511, rank, world, address)
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
    print(json.dumps({"apart": (weights - expected).abs().max().item(), "digest": digest, "losses": losses}))


if __name__ == "__main__":
    main()
