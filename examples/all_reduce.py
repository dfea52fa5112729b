#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums a tensor of every rank and prints the time.

torchrun --nproc-per-node 4 examples/all_reduce.py [--backend gloo] [--megabytes 25] [--rounds 10]
"""

import argparse
import time

import torch
import torch.distributed as dist

import atp  # noqa: F401  PyTorch 2.5 and later need no import


def main() -> None:
    parser = argparse.ArgumentParser(description="Sums a tensor of every rank.")
    parser.add_argument("--backend", default="atp", help="backend of torch.distributed [atp]")
    parser.add_argument("--megabytes", type=float, default=25, help="size of the tensor in MB [25]")
    parser.add_argument("--rounds", type=int, default=10, help="number of all-reduces, at least 1 [10]")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    elements = int(arguments.megabytes * 1e6 / 4)
    seconds = []
    for _ in range(arguments.rounds):
        tensor = torch.full((elements,), rank + 1.0)
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        seconds.append(time.perf_counter() - begin)
        expected = size * (size + 1) / 2
        if not bool((tensor == expected).all()):
            raise SystemExit(f"rank {rank}: WRONG SUM, not {expected}")
    if rank == 0:
        median = sorted(seconds)[len(seconds) // 2]
        print(f"{arguments.backend}: {size} ranks, {arguments.megabytes:g} MB, median {median * 1e3:.1f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
