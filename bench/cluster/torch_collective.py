# SPDX-License-Identifier: Apache-2.0
"""Run one rank of a collective through torch.distributed. As `atp bench` and bench_gloo, it verifies each result, and
rank 0 prints the times of the slowest rank."""

import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch_group

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import float8  # noqa: E402  in bench/

# The values of a tensor repeat after this number of elements. It is prime, so that packets begin with different values.
PERIOD = 4093
# The largest value of rank 0 if the magnitude is not set.
USUAL_MAGNITUDE = 0.02
# Per rank, relative to the largest sum: lanes of ATP keep so many bits of it. float32 lanes would keep 24.
TOLERANCES_OF_LANES = {"int16": 2**-13, "int8": 2**-5}
# Roundings of a type, relative to the sum. Gloo rounds after each addition, to the type of the tensor.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    torch_group.add_arguments(parser)
    parser.add_argument("--collective", choices=tuple(COLLECTIVES), default="all_reduce")
    parser.add_argument("--type", default="float32")
    parser.add_argument("--magnitude", type=float)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    return parser.parse_args()


class Values:
    """The elements of each rank, and the sums that they allow."""

    def __init__(self, arguments):
        self._type = getattr(torch, arguments.type)
        self._world = arguments.world
        self._magnitude = arguments.magnitude or USUAL_MAGNITUDE
        self.elements = arguments.bytes // self._type.itemsize
        if arguments.collective in DIVIDED:
            self.elements -= self.elements % arguments.world

    def of(self, rank):
        pattern = torch.arange(self.elements) % PERIOD - PERIOD // 2
        if not self._type.is_floating_point:
            return (pattern + rank * 100).to(self._type)
        unit = self._magnitude / (PERIOD // 2)
        return (pattern * unit + rank * 100 * unit).to(self._type)

    def sum(self):
        wide = torch.float64 if self._type.is_floating_point else torch.int64
        return sum(self.of(rank).to(wide) for rank in range(self._world))

    def largest_sum(self):
        return self._magnitude * self._world

    def equal_sums(self, found, expected):
        if not self._type.is_floating_point:
            return torch.equal(found.to(torch.int64), expected)
        tolerance = TOLERANCES[self._type]
        largest = self.largest_sum()
        lanes = os.environ.get("ATP_LANES")
        least = largest * max(TOLERANCES[torch.float32], self._world * TOLERANCES_OF_LANES.get(lanes, 0))
        # Sums of the narrow types cancel: their error is relative to the numbers that are added.
        if self._type.itemsize == 2:
            least = max(least, tolerance * largest)
        return torch.allclose(found.to(torch.float64), expected, rtol=tolerance, atol=least)


class Collective:
    """One kind of operation of one rank. prepare() resets `result`, which run() writes."""

    def __init__(self, arguments, values):
        self.rank, self.world, self.values = arguments.rank, arguments.world, values
        self.own = values.of(arguments.rank)
        self.result = torch.empty_like(self.own)

    def prepare(self):
        self.result.copy_(self.own)

    def is_right(self, result):
        """Only for the first result: later ones must have its bits."""
        raise NotImplementedError


class AllReduce(Collective):
    def run(self):
        dist.all_reduce(self.result)

    def is_right(self, result):
        return self.values.equal_sums(result, self.values.sum())


class AllReduceInFloat8(AllReduce):
    """The sum of a communication hook that sends float8, with an all_to_all and an all_gather."""

    def run(self):
        float8.all_reduce(self.result, dist.group.WORLD)

    def is_right(self, result):
        largest = self.values.largest_sum()
        return torch.allclose(result.double(), self.values.sum(), rtol=0, atol=largest * float8.TOLERANCE)


class Broadcast(Collective):
    def run(self):
        dist.broadcast(self.result, src=0)

    def is_right(self, result):
        return torch.equal(result, self.values.of(0))


class Barrier(Collective):
    def run(self):
        dist.barrier()

    def is_right(self, _result):
        return True


class ReduceScatter(Collective):
    def __init__(self, arguments, values):
        super().__init__(arguments, values)
        self.result = torch.empty_like(self.own[: values.elements // self.world])

    def prepare(self):
        self.result.zero_()

    def run(self):
        dist.reduce_scatter_tensor(self.result, self.own)

    def is_right(self, result):
        return self.values.equal_sums(result, self.values.sum().chunk(self.world)[self.rank])


class AllGather(Collective):
    def __init__(self, arguments, values):
        super().__init__(arguments, values)
        self.part = self.own.chunk(self.world)[self.rank].clone()

    def prepare(self):
        self.result.zero_()

    def run(self):
        dist.all_gather_into_tensor(self.result, self.part)

    def is_right(self, result):
        parts = zip(result.chunk(self.world), range(self.world))
        return all(torch.equal(part, self.values.of(rank).chunk(self.world)[rank]) for part, rank in parts)


class Both(Collective):
    """A reduce-scatter and an all-gather of tensors of one size at a time, as of two layers of a sharded model. The
    result is that of the first, followed by that of the second."""

    def __init__(self, arguments, values):
        super().__init__(arguments, values)
        self._scattered, self._gathered = ReduceScatter(arguments, values), AllGather(arguments, values)
        self.result = torch.cat([self._scattered.result, self._gathered.result])
        self._split = len(self._scattered.result)
        self._scattered.result, self._gathered.result = self.result[: self._split], self.result[self._split :]

    def prepare(self):
        self.result.zero_()

    def run(self):
        works = [
            dist.reduce_scatter_tensor(self._scattered.result, self.own, async_op=True),
            dist.all_gather_into_tensor(self._gathered.result, self._gathered.part, async_op=True),
        ]
        for work in works:
            work.wait()

    def is_right(self, result):
        return self._scattered.is_right(result[: self._split]) and self._gathered.is_right(result[self._split :])


COLLECTIVES = {
    "all_reduce": AllReduce,
    "all_reduce_float8": AllReduceInFloat8,
    "broadcast": Broadcast,
    "barrier": Barrier,
    "reduce_scatter": ReduceScatter,
    "all_gather": AllGather,
    "both": Both,
}
DIVIDED = ("reduce_scatter", "all_gather", "both")  # each rank has an equal part of the tensor


class Verdict:
    """Verifies results. Compares the first one with the expected values, and later ones with the bits of a verified
    result, which is faster."""

    def __init__(self, collective):
        self._collective = collective
        self._seen = None

    def check(self, result):
        if self._seen is not None and torch.equal(result, self._seen):
            return
        if not self._collective.is_right(result):
            raise SystemExit(f"rank {dist.get_rank()}: the result is WRONG")
        self._seen = result.clone()


def timed_round(collective, verdict):
    """Wall time and processor time of one operation. The latter includes the barrier before it."""
    collective.prepare()
    cpu_begin = time.process_time()
    dist.barrier()
    begin = time.perf_counter()
    collective.run()
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    verdict.check(collective.result)
    return seconds, cpu_seconds


def measure(arguments):
    collective = COLLECTIVES[arguments.collective](arguments, Values(arguments))
    verdict = Verdict(collective)
    rounds = [timed_round(collective, verdict) for _ in range(arguments.warmup + arguments.rounds)]
    return rounds[arguments.warmup :]


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
