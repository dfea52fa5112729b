# SPDX-License-Identifier: Apache-2.0
"""A small CNN and generated images to train it. Each image depends only on rank and step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import nn

CLASSES = 4
BATCH = 8


def make_model() -> nn.Module:
    torch.manual_seed(7)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 32),
        nn.ReLU(),
        nn.Linear(32, CLASSES),
    )


def batch_of(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns images of noise and their classes. The class of an image is its brighter quarter."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    labels = torch.randint(CLASSES, (BATCH,), generator=generator)
    images = torch.randn(BATCH, 1, 8, 8, generator=generator)
    for image, label in zip(images, labels.tolist()):
        row, column = 4 * (label // 2), 4 * (label % 2)
        image[0, row : row + 4, column : column + 4] += 1.5
    return images, labels


def loss_of(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    images, labels = batch_of(rank, step)
    return nn.functional.cross_entropy(model(images), labels)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int, steps: int) -> list[float]:
    """Trains the model. Returns the loss of each step."""
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, rank, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def digest_of(tensors: Iterable[torch.Tensor]) -> str:
    """Returns a digest of the bits of the tensors."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
