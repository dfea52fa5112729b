#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of slurm_test.py: trains 20 steps with the backend `atp`, and checks that all ranks end with equal weights."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from training import digest_of, make_model, train

import atp

STEPS = 20


def main() -> None:
    dist.init_process_group("atp")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(make_model())
    losses = train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank, STEPS)
    digests: list[str] = [""] * size
    dist.all_gather_object(digests, digest_of(model.parameters()))
    if len(set(digests)) != 1:
        raise SystemExit(f"rank {rank}: weights differ: {digests}")
    if losses[-1] >= losses[0]:
        raise SystemExit(f"rank {rank}: the loss did not fall: {losses}")
    if atp.counters().sent_bytes == 0:
        raise SystemExit(f"rank {rank}: sent no packet")
    if rank == 0:
        print(f"{size} ranks trained {STEPS} steps through {os.environ['ATP_SWITCH']}: equal weights, "
              f"loss {losses[0]:.2f} to {losses[-1]:.2f}")  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
