#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed precision and gradient accumulation: autocast, GradScaler, and no_sync() for all micro-batches but the last.

In one step the gradients of the last rank overflow to Inf. Inf survives the sum in the network. GradScaler therefore
finds it on every rank, and all ranks skip that step.

torchrun --nproc-per-node 4 examples/train_amp.py [--backend gloo] [--steps 40]
"""

import argparse
import contextlib

import torch
import torch.distributed as dist
from common import accuracy_of, batches_of_rank, compare_weights, digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import atp  # noqa: F401  PyTorch 2.5 and later need no import

MICRO_BATCHES = 4  # gradients of these are accumulated, then summed over the ranks once


class Overflow:
    """Makes the gradient of a parameter infinite, as half precision does to values beyond its range."""

    def __init__(self, parameter: nn.Parameter) -> None:
        self.enabled = False
        parameter.register_hook(lambda gradient: torch.full_like(gradient, torch.inf) if self.enabled else gradient)


def accumulate(parallel: DistributedDataParallel, scaler: torch.amp.GradScaler, batch) -> float:
    total = 0.0
    for part in range(MICRO_BATCHES):
        micro = batch[part::MICRO_BATCHES]
        last = part == MICRO_BATCHES - 1
        with contextlib.nullcontext() if last else parallel.no_sync():
            with torch.autocast("cpu", dtype=torch.float16):
                loss = nn.functional.cross_entropy(parallel(micro.pixels), micro.labels) / MICRO_BATCHES
            scaler.scale(loss).backward()
        total += loss.item()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description="Mixed precision, gradient accumulation, and an overflow on one rank.")
    parser.add_argument("--backend", default="atp", help="backend of torch.distributed [atp]")
    parser.add_argument("--steps", type=int, default=40, help="number of steps, at least 1 [40]")
    parser.add_argument(
        "--overflow-step", type=int, default=5, help="step in which the last rank's gradients overflow [5]"
    )
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train, test = digits()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    overflow = Overflow(model[-1].bias)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.3)
    scaler = torch.amp.GradScaler("cpu")
    epoch, batches = 0, []
    for step in range(1, arguments.steps + 1):
        if not batches:
            batches = batches_of_rank(train, 32 * MICRO_BATCHES // size, epoch)
            epoch += 1
        overflow.enabled = step == arguments.overflow_step and rank == size - 1
        optimizer.zero_grad()
        loss = accumulate(parallel, scaler, batches.pop())
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = [None] * size
        dist.all_gather_object(skipped, scaler.get_scale() < scale)
        if rank == 0 and any(skipped):
            of_ranks = ", ".join(str(rank) for rank in range(size) if skipped[rank])
            largest = max(parameter.grad.abs().max().item() for parameter in model.parameters())
            print(
                f"step {step}: the largest summed gradient of rank 0 is {largest}; skipped by ranks {of_ranks}; "
                f"scale {scale:g} -> {scaler.get_scale():g}",
                flush=True,
            )
        elif rank == 0 and (step % 10 == 0 or step == 1):
            print(f"step {step} of {arguments.steps}: loss {loss:.4f}", flush=True)
    weights = compare_weights(model)
    if rank == 0:
        print(f"{arguments.backend}: accuracy {accuracy_of(model, test):.1%}; {weights}")
    dist.barrier()  # otherwise threads of Gloo may hold tensors when Python ends, and abort the process
    del parallel  # otherwise the model would end a thread of Gloo, which may wait for Python's lock
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
