# SPDX-License-Identifier: Apache-2.0
"""One rank of a job of PyTorch, whose rank 0 starts a switch in its own process. Prints the events of rank.py."""

import argparse
import datetime
import json
import sys
import time

SUMS_BEFORE_WORKING = 10
SUMS_OF_A_BEAT = 5
PAUSE_SECONDS = 0.02
EXIT_READ_AN_ERROR = 1
EXIT_WRONG_SUM = 3


def say(event, **more):
    print(json.dumps({"event": event, "at": time.monotonic(), **more}), flush=True)


def sum_for_ever(words, torch, dist):
    number = 0
    tensor = torch.empty(words.elements)
    while True:
        tensor.fill_(words.rank + 1.0)
        dist.all_reduce(tensor)
        if not (tensor == words.world * (words.world + 1) / 2).all():
            say("wrong sum")
            sys.exit(EXIT_WRONG_SUM)
        number += 1
        if number == SUMS_BEFORE_WORKING:
            say("working")
        elif number > SUMS_BEFORE_WORKING and number % SUMS_OF_A_BEAT == 0:
            say("beat", sums=number)
        time.sleep(PAUSE_SECONDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--store", required=True, help="file of torch.distributed.FileStore")
    parser.add_argument("--elements", type=int, default=20_000)
    words = parser.parse_args()
    import torch
    import torch.distributed as dist

    import atp  # noqa: F401, registers the backend

    try:
        store = dist.FileStore(words.store, words.world)
        timeout = datetime.timedelta(seconds=300)
        dist.init_process_group("atp", store=store, rank=words.rank, world_size=words.world, timeout=timeout)
        say("formed")
        sum_for_ever(words, torch, dist)
    except RuntimeError as error:  # DistBackendError is one
        say("error", text=str(error).splitlines()[0])
        sys.exit(EXIT_READ_AN_ERROR)


if __name__ == "__main__":
    main()
