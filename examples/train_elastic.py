#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Survives the death of a rank: torchrun restarts all ranks, and they continue from the last checkpoint.

With --kill-epoch, the last rank kills itself in that epoch of the first attempt. With ATP_SCALING=fixed, the final
weights are equal, bit for bit, to those of a run in which no rank dies.

torchrun --nproc-per-node 4 --max-restarts 2 examples/train_elastic.py [--backend gloo] [--kill-epoch 4]
"""

import argparse
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
from common import accuracy_of, batches_of_rank, compare_weights, digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import atp  # noqa: F401  PyTorch 2.5 and later need no import

ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


class Checkpoint:
    """State from which training continues. The file is complete at any time."""

    def __init__(self, path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.path, self.model, self.optimizer = path, model, optimizer

    def load(self) -> int:
        """Returns the number of finished epochs."""
        if not self.path.exists():
            return 0
        state = torch.load(self.path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        return state["epochs"]

    def save(self, epochs: int) -> None:
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epochs": epochs}
        unfinished = self.path.with_suffix(".unfinished")
        torch.save(state, unfinished)
        unfinished.replace(self.path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Goes on from the last checkpoint when a rank dies.")
    parser.add_argument("--backend", default="atp", help="backend of torch.distributed [atp]")
    parser.add_argument("--epochs", type=int, default=6, help="number of epochs, at least 1 [6]")
    parser.add_argument("--batch", type=int, default=32, help="images of one rank in one step [32]")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=Path("checkpoint.pt"),
        help="checkpoint file, removed at the end [checkpoint.pt]",
    )
    parser.add_argument("--kill-epoch", type=int, help="epoch of the first attempt in which the last rank exits [none]")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train, test = digits()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    checkpoint = Checkpoint(arguments.checkpoint, model, optimizer)
    done = checkpoint.load()
    parallel = DistributedDataParallel(model)
    if rank == 0:
        print(f"attempt {ATTEMPT}: {done} epochs completed earlier", flush=True)
    for epoch in range(done + 1, arguments.epochs + 1):
        for step, batch in enumerate(batches_of_rank(train, arguments.batch, epoch)):
            if ATTEMPT == 0 and epoch == arguments.kill_epoch and rank == size - 1 and step == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(batch.pixels), batch.labels)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} of {arguments.epochs}: loss {loss.item():.4f}", flush=True)
            checkpoint.save(epoch)
    weights = compare_weights(model)
    if rank == 0:
        print(f"{arguments.backend}: accuracy {accuracy_of(model, test):.1%}; {weights}")
        arguments.checkpoint.unlink()
    dist.barrier()  # otherwise threads of Gloo may hold tensors when Python ends, and abort the process
    del parallel  # otherwise the model would end a thread of Gloo, which may wait for Python's lock
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
