# SPDX-License-Identifier: Apache-2.0
"""Run one rank of a training with DistributedDataParallel or fully_shard (FSDP2). All ranks compare their gradients
(--compute recorded or none) or final parameters (--compute real). Rank 0 then prints the step times of the slowest rank
and the processor time of all ranks."""

import argparse
import hashlib
import json
import resource
import time

import torch
import torch.distributed as dist
import torch_group
from torch import nn
from workloads import models, parallel, recorded, tables

# The batch and the lengths are small, so that a step of a real model takes seconds on one core.
REAL_BATCH = 2
REAL_LENGTHS = {"vgg": models.IMAGE, "resnet": models.IMAGE, "gpt": 128}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    torch_group.add_arguments(parser)
    parser.add_argument(
        "--programs", required=True, help="folder with `atp-lab`, which prints the tables of the models"
    )
    parser.add_argument("--workload", choices=tables.NAMES, required=True)
    parser.add_argument("--parallel", choices=tables.PARALLEL, required=True)
    parser.add_argument(
        "--share", type=float, required=True, help="share of the model's parameters, above 0, at most 1"
    )
    parser.add_argument("--compute", choices=tables.COMPUTE, required=True)
    parser.add_argument("--link-bps", type=float, help="link rate in bit/s to which recorded times are scaled")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    return parser.parse_args()


class Recorded:
    """A step without an optimizer. In the testbed of the recorded times, the optimizer takes at most a few per cent of a
    step."""

    def __init__(self, arguments):
        table = tables.load(arguments.workload, arguments.programs)
        self._table = table.scaled(arguments.share, arguments.link_bps, arguments.compute)
        self._model = recorded.RecordedModel(self._table, arguments.rank)
        self._parallel = parallel.wrap(self._model, self._model.layers, arguments)
        self._inputs = torch.ones(1)

    def step(self):
        self._parallel.zero_grad()
        self._parallel(self._inputs).backward()

    def outcome(self):
        return [parallel.whole(parameter.grad) for parameter in self._model.parameters()]

    def verify(self):
        """Compares with the mean of all ranks' gradients, up to the rounding of integers and of float32. ATP
        has one unit for each 16,192 elements of a block, which follows from the largest one."""
        world = dist.get_world_size()
        means = [torch.zeros_like(gradient) for gradient in self._model.gradients()]
        for rank in range(world):
            for mean, gradient in zip(means, recorded.RecordedModel(self._table, rank).gradients()):
                mean += gradient / world
        least = max(1e-7, max(mean.abs().max().item() for mean in means) * 2**-21)
        if not all(torch.allclose(*pair, rtol=1e-4, atol=least) for pair in zip(self.outcome(), means)):
            raise SystemExit(f"rank {dist.get_rank()}: the mean of the gradients is WRONG")


class Real:
    def __init__(self, arguments):
        torch.manual_seed(0)
        self._model = models.build(arguments.workload, arguments.share)
        self._parallel = parallel.wrap(self._model, models.units(self._model), arguments)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)
        torch.manual_seed(arguments.rank)
        self._inputs, self._targets = models.batch(
            arguments.workload, REAL_BATCH, REAL_LENGTHS[arguments.workload], arguments.share
        )

    def step(self):
        self._optimizer.zero_grad()
        nn.functional.cross_entropy(self._parallel(self._inputs), self._targets).backward()
        self._optimizer.step()

    def outcome(self):
        return [parallel.whole(parameter) for parameter in self._model.parameters()]

    def verify(self):
        if not all(bool(parameter.isfinite().all()) for parameter in self.outcome()):
            raise SystemExit(f"rank {dist.get_rank()}: the training DIVERGED: a parameter is not finite")


def timed(training, arguments):
    """The seconds of each measured step, and the processor time of all measured steps."""
    for _ in range(arguments.warmup):
        training.step()
    dist.barrier()
    cpu_before, seconds = cpu_seconds(), []
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        training.step()
        seconds.append(time.perf_counter() - begin)
    return seconds, cpu_seconds() - cpu_before


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def require_equal_outcomes(training):
    digest = hashlib.sha256()
    for tensor in training.outcome():
        digest.update(tensor.detach().numpy())
    if len(set(torch_group.from_all_ranks(digest.hexdigest()))) != 1:
        raise SystemExit(f"rank {dist.get_rank()}: the final gradients or parameters of the ranks are DIFFERENT")


def main():
    arguments = parse()
    with torch_group.joined(arguments):
        training = Real(arguments) if arguments.compute == "real" else Recorded(arguments)
        of_ranks = torch_group.from_all_ranks(timed(training, arguments))
        training.verify()
        require_equal_outcomes(training)
        if arguments.rank == 0:
            print(
                json.dumps(
                    {
                        "seconds": max((seconds for seconds, _ in of_ranks), key=sum),
                        "ranks_cpu_seconds": sum(cpu for _, cpu in of_ranks),
                    }
                )
            )
        del training  # with the last reference to the group, it would wait for Gloo, and Gloo for Python's lock


if __name__ == "__main__":
    main()
