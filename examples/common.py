# SPDX-License-Identifier: Apache-2.0
"""Shared by the examples: the data, and a comparison of the weights of all ranks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn

TEST_IMAGES = 360


@dataclass
class Images:
    """Handwritten digits of 8 by 8 pixels, from 0 to 1, and their labels."""

    pixels: torch.Tensor
    labels: torch.Tensor

    def __getitem__(self, index: slice | torch.Tensor) -> Images:
        return Images(self.pixels[index], self.labels[index])

    def __len__(self) -> int:
        return len(self.labels)


def digits() -> tuple[Images, Images]:
    """The 1797 images of scikit-learn: one part to train with, one to test with."""
    data = load_digits()
    images = Images(torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(data.target))
    return images[:-TEST_IMAGES], images[-TEST_IMAGES:]


def batches_of_rank(images: Images, batch: int, epoch: int) -> list[Images]:
    """This rank's share of an epoch: the same number of whole batches on every rank. The epoch determines the order."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    steps = len(images) // (batch * dist.get_world_size())
    own = order[dist.get_rank() :: dist.get_world_size()]
    return [images[own[step * batch : (step + 1) * batch]] for step in range(steps)]


def mean_over_ranks(values: list[float]) -> list[float]:
    tensor = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(tensor)
    return (tensor / dist.get_world_size()).tolist()


@torch.no_grad()
def accuracy_of(model: nn.Module, images: Images) -> float:
    return (model(images.pixels).argmax(1) == images.labels).float().mean().item()


@dataclass
class Weights:
    """Result of a comparison of the weights of all ranks."""

    ranks: int
    identical: bool
    digest: str

    def __str__(self) -> str:
        how = "identical bit for bit" if self.identical else "NOT identical"
        return f"weights of {self.ranks} ranks {how} ({self.digest})"


def compare_weights(model: nn.Module) -> Weights:
    """Compares the weights of all ranks. All ranks must call this. The digest is that of this rank."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        if hasattr(parameter, "full_tensor"):  # this rank has only a part
            parameter = parameter.full_tensor()
        digest.update(parameter.detach().numpy().tobytes())
    digests: list = [None] * dist.get_world_size()
    dist.all_gather_object(digests, digest.hexdigest()[:16])
    return Weights(len(digests), len(set(digests)) == 1, digests[dist.get_rank()])
