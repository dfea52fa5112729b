#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small CNN on the handwritten digits that come with scikit-learn, with DistributedDataParallel.

torchrun --nproc-per-node 4 examples/train_cnn.py [--backend gloo] [--epochs 5]
"""

import argparse
import hashlib
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import atp  # noqa: F401  registers the backend

TEST_IMAGES = 360


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def load_images() -> tuple[torch.Tensor, torch.Tensor]:
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    return images, torch.tensor(digits.target)


def hash_of(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list, images, labels) -> tuple[float, int]:
    total = 0.0
    for batch in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches), len(batches)


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a small CNN on handwritten digits.")
    parser.add_argument("--backend", default="atp")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="images of one rank in one step")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    images, labels = load_images()
    train_count = len(images) - TEST_IMAGES
    model = make_model()
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(arguments.epochs):
        order = torch.randperm(train_count, generator=torch.Generator().manual_seed(epoch))
        own = order[: train_count // size * size][rank::size]
        begin = time.perf_counter()
        loss, steps = train_epoch(parallel, optimizer, list(own.split(arguments.batch)), images, labels)
        rate = steps / (time.perf_counter() - begin)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss:.4f}, {rate:.1f} steps/s", flush=True)
    with torch.no_grad():
        right = (model(images[train_count:]).argmax(1) == labels[train_count:]).float().mean().item()
    hashes: list = [None] * size
    dist.all_gather_object(hashes, hash_of(model))
    if rank == 0:
        same = "identical bit for bit" if len(set(hashes)) == 1 else "NOT identical"
        print(f"{arguments.backend}: accuracy {right:.1%}; weights of {size} ranks {same} ({hashes[0][:16]})")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
