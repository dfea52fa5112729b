#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains as programs for parameter servers do: pushes and pulls gradients by key, without DDP.

The backward pass pushes each gradient as soon as it exists, and the network sums it while the pass continues. The
optimizer step pulls each sum just before it applies it.

torchrun --nproc-per-node 4 examples/push_pull.py [--steps 100]
"""

import argparse

import torch
import torch.distributed as dist
from common import accuracy_of, batches_of_rank, compare_weights, digits
from torch import nn

import atp


def push_when_there(model: nn.Module) -> None:
    """All ranks push in the same order, because the backward pass of a model reaches its parameters in a fixed
    order."""
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda parameter, name=name: atp.push(name, parameter.grad))


@torch.no_grad()
def pull_and_apply(model: nn.Module, rate: float) -> None:
    for name, parameter in model.named_parameters():
        parameter -= rate / dist.get_world_size() * atp.pull(name, parameter.grad)
        parameter.grad = None


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains with gradients that are pushed and pulled by key.")
    parser.add_argument("--steps", type=int, default=100, help="number of steps, at least 1 [100]")
    parser.add_argument("--batch", type=int, default=32, help="images of one rank in one step [32]")
    arguments = parser.parse_args()

    dist.init_process_group("atp")
    torch.set_num_threads(1)
    torch.manual_seed(1)  # the same weights on every rank
    train, test = digits()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    push_when_there(model)
    epoch, batches = 0, []
    for step in range(1, arguments.steps + 1):
        if not batches:
            batches = batches_of_rank(train, arguments.batch, epoch)
            epoch += 1
        batch = batches.pop()
        loss = nn.functional.cross_entropy(model(batch.pixels), batch.labels)
        loss.backward()
        pull_and_apply(model, rate=0.3)
        if dist.get_rank() == 0 and (step % 20 == 0 or step in (1, arguments.steps)):
            print(f"step {step} of {arguments.steps}: loss {loss.item():.4f}", flush=True)
    weights = compare_weights(model)
    if dist.get_rank() == 0:
        print(f"accuracy {accuracy_of(model, test):.1%}; {weights}")
    dist.barrier()  # otherwise threads of Gloo may hold tensors when Python ends, and abort the process
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
