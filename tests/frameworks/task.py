# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder train: a small network learns a linear function of its input, in 20 steps."""

from __future__ import annotations

import sys

import torch
from torch.utils.data import TensorDataset

STEPS = 20
RANKS = 2
BATCH = 16  # of a rank


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))


def samples() -> TensorDataset:
    """The samples of all steps and ranks."""
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(STEPS * RANKS * BATCH, 32, generator=generator)
    return TensorDataset(inputs, inputs @ torch.randn(32, 1, generator=generator) / 4)


def optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05)


def loss_of(model: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(model(inputs), targets)


def report(step: int, loss: float) -> None:
    """Prints a line that test_frameworks.py reads. Called on one rank."""
    # One write, newline included: torchrun turns buffers off, and a log line of another thread must not come between.
    sys.stdout.write(f"step {step} loss {loss:.6f} backend {torch.distributed.get_backend()}\n")
    sys.stdout.flush()
