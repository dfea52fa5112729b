# SPDX-License-Identifier: Apache-2.0
"""Run one rank of an all-reduce through torch.distributed. As `atp bench` and bench_gloo, it verifies each sum, and
rank 0 prints the times of the slowest rank."""

import argparse
import json
import time

import torch
import torch.distributed as dist
import torch_group

# The values of a tensor repeat after this number of elements. It is prime, so that packets begin with different values.
PERIOD = 4093
# Per rank: ATP rounds an element by at most half a step of 1e-8 (scale 1e8); the other half allows float32's rounding.
TOLERANCE_OF_A_RANK = 1e-8


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    torch_group.add_arguments(parser)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    return parser.parse_args()


def contribution(elements, rank):
    return (torch.arange(elements) % PERIOD - PERIOD // 2) * 1e-5 + rank * 1e-3


class Verdict:
    """Verifies sums. Compares the first sum with the expected values, and later sums with the bits of a verified sum,
    which is faster."""

    def __init__(self, expected):
        self._expected = expected
        self._seen = None

    def check(self, tensor):
        if self._seen is not None and torch.equal(tensor, self._seen):
            return
        if not torch.allclose(tensor, self._expected, rtol=1e-6, atol=dist.get_world_size() * TOLERANCE_OF_A_RANK):
            raise SystemExit(f"rank {dist.get_rank()}: the sum is WRONG")
        self._seen = tensor.clone()


def timed_round(tensor, own, verdict):
    """Wall time and processor time of one all-reduce. The latter includes the barrier before it."""
    tensor.copy_(own)
    cpu_begin = time.process_time()
    dist.barrier()
    begin = time.perf_counter()
    dist.all_reduce(tensor)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    verdict.check(tensor)
    return seconds, cpu_seconds


def measure(arguments):
    elements = arguments.bytes // 4
    own = contribution(elements, arguments.rank)
    verdict = Verdict(sum(contribution(elements, rank) for rank in range(arguments.world)))
    tensor = torch.empty(elements)
    return [timed_round(tensor, own, verdict) for _ in range(arguments.warmup + arguments.rounds)][arguments.warmup :]


def main():
    arguments = parse()
    with torch_group.joined(arguments):
        of_ranks = torch_group.from_all_ranks(measure(arguments))
        if arguments.rank == 0:
            print(
                json.dumps(
                    {
                        "seconds": [max(seconds for seconds, _ in round_) for round_ in zip(*of_ranks)],
                        "ranks_cpu_seconds": sum(cpu for rounds in of_ranks for _, cpu in rounds),
                    }
                )
            )


if __name__ == "__main__":
    main()
