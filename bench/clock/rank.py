# SPDX-License-Identifier: Apache-2.0
"""Run one rank of a training of examples/ with DistributedDataParallel. Rank 0 scores the model after some steps, while
all clocks stand still, and prints the seconds of the slowest rank between the scores."""

import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [os.path.join(BENCH, "accuracy"), os.path.join(BENCH, "cluster")]

import torch_group  # noqa: E402  in bench/cluster/
import trainings  # noqa: E402  in bench/accuracy/, adds examples/ to sys.path


class Cnn(trainings.Cnn):
    width = 1024


class Gpt(trainings.Gpt):
    width, layers = 96, 3


MODELS = {"cnn": Cnn, "gpt": Gpt}


def no_sum(_, bucket):
    """A communication hook that sends nothing: the rank keeps its own gradients."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


HOOKS = {"plain": None, "float16": default_hooks.fp16_compress_hook, "none": no_sum}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    torch_group.add_arguments(parser)
    parser.add_argument("--model", choices=tuple(MODELS), required=True)
    parser.add_argument("--seed", type=int, required=True, help="of the weights and of the order of samples")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--sums", choices=tuple(HOOKS), required=True, help="communication hook of the model")
    return parser.parse_args()


def wrapped(model, sums):
    parallel = DistributedDataParallel(model)
    if HOOKS[sums]:
        parallel.register_comm_hook(None, HOOKS[sums])
    return parallel


def train(training, rank, steps):
    """Returns the scores of rank 0, and the seconds of this rank's steps before each of them. Scoring is outside of the
    seconds, because each rank starts its clock only after a barrier with all others."""
    scores, seconds = [], []
    for first in range(0, steps, training.score_every):
        last = min(first + training.score_every, steps)
        dist.barrier()
        begin = time.perf_counter()
        for step in range(first, last):
            training.optimizer.zero_grad()
            training.loss(step, rank).backward()
            training.optimizer.step()
        seconds.append(time.perf_counter() - begin)
        if rank == 0:
            scores.append((last, training.score()))
    return scores, seconds


def main():
    arguments = parse()
    with torch_group.joined(arguments):
        training = MODELS[arguments.model](arguments.seed, arguments.world)
        training.forward = wrapped(training.model, arguments.sums)
        scores, seconds = train(training, arguments.rank, arguments.steps)
        of_ranks = torch_group.from_all_ranks(seconds)
        weights = trainings.common.compare_weights(training.model)
        if not weights.identical and arguments.sums != "none":
            raise SystemExit(f"rank {arguments.rank}: {weights}")
        if arguments.rank == 0:
            result = {
                "measure": training.measure,
                "scores": scores,
                "seconds": [max(of_span) for of_span in zip(*of_ranks)],
                "gradient_bytes": sum(parameter.nbytes for parameter in training.parameters),
                "weights": weights.digest,
            }
            print(json.dumps(result))
        del training  # with the last reference to the group, it would wait for Gloo, and Gloo for Python's lock


if __name__ == "__main__":
    main()
