#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a CNN in the manner of VGG on handwritten digits, with DistributedDataParallel.

torchrun --nproc-per-node 4 examples/train_cnn.py [--backend gloo] [--epochs 20] [--json FILE]
"""

import argparse
import json
import time

import torch
import torch.distributed as dist
from common import accuracy_of, batches_of_rank, compare_weights, digits, mean_over_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import atp  # noqa: F401  PyTorch 2.5 and later need no import


def block(inputs: int, outputs: int) -> list[nn.Module]:
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.ReLU()]
    return [*layers, nn.MaxPool2d(2)]


def make_model(width: int = 1024, channels: int = 32) -> nn.Module:
    """Two blocks of convolutions, and most of the weights in linear layers, as in VGG."""
    flat = 2 * channels * 2 * 2
    linear = [nn.Linear(flat, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)]
    model = nn.Sequential(*block(1, channels), *block(channels, 2 * channels), nn.Flatten(), *linear)
    for layer in model:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return model


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list) -> list[float]:
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch.pixels), batch.labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a CNN in the manner of VGG on handwritten digits.")
    parser.add_argument("--backend", default="atp", help="backend of torch.distributed [atp]")
    parser.add_argument("--epochs", type=int, default=20, help="number of epochs, at least 1 [20]")
    parser.add_argument("--steps", type=int, help="number of steps after which the training ends, at least 1 [all]")
    parser.add_argument("--width", type=int, default=1024, help="outputs of a linear layer, at least 1 [1024]")
    parser.add_argument("--channels", type=int, default=32, help="outputs of the first convolution, at least 1 [32]")
    parser.add_argument("--batch", type=int, default=32, help="images of one rank in one step [32]")
    parser.add_argument("--json", metavar="FILE", help="file to which rank 0 writes the results [none]")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train, test = digits()
    model = make_model(arguments.width, arguments.channels)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01, momentum=0.9)
    losses, rates = [], []
    for epoch in range(arguments.epochs):
        batches = batches_of_rank(train, arguments.batch, epoch)
        if arguments.steps:
            batches = batches[: arguments.steps - len(losses)]
        if not batches:
            break
        begin = time.perf_counter()
        losses_here = train_epoch(parallel, optimizer, batches)
        rates.append(len(batches) / (time.perf_counter() - begin))
        losses += mean_over_ranks(losses_here)
        if dist.get_rank() == 0:
            of_all = f"epoch {epoch + 1} of {arguments.epochs}"
            print(f"{of_all}: loss {losses[-1]:.4f}, {rates[-1]:.1f} steps/s", flush=True)
    accuracy, weights = accuracy_of(model, test), compare_weights(model)
    if dist.get_rank() == 0:
        print(f"{arguments.backend}: accuracy {accuracy:.1%}; {weights}")
    if dist.get_rank() == 0 and arguments.json:
        figures = {
            "backend": arguments.backend,
            "ranks": weights.ranks,
            "gradient_bytes": sum(parameter.nbytes for parameter in model.parameters()),
            "losses": losses,
            "steps_per_s": rates,
            "accuracy": accuracy,
            "identical": weights.identical,
            "weights": weights.digest,
        }
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(figures, file)
    dist.barrier()  # otherwise threads of Gloo may hold tensors when Python ends, and abort the process
    del parallel  # otherwise the model would end a thread of Gloo, which may wait for Python's lock
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
