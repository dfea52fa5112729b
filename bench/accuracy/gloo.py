# SPDX-License-Identifier: Apache-2.0
"""Sums of PyTorch's Gloo. All ranks of the group are in one process."""

import os
import sys
import threading
from datetime import timedelta

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import float8  # noqa: E402  in bench/


class Gloo:
    """A group of Gloo with all of its ranks."""

    def __init__(self, ranks):
        store = dist.HashStore()
        self._groups = [None] * ranks

        def join(rank):
            self._groups[rank] = dist.ProcessGroupGloo(store, rank, ranks, timeout=timedelta(seconds=60))

        threads = [threading.Thread(target=join, args=(rank,)) for rank in range(ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run(self, begin):
        works = [begin(rank, group) for rank, group in enumerate(self._groups)]
        for work in works:
            work.wait()

    def sum(self, rows):
        """The sum of the rows, one of each rank, in their own type."""
        tensors = [row.clone() for row in rows]
        self._run(lambda rank, group: group.allreduce([tensors[rank]]))
        return tensors[0]

    def sum_in_eights(self, rows):
        """The sum of float32 rows as a hook for float8_e4m3fn makes it."""
        ranks = len(self._groups)
        sent = [float8.parts_to_send(row, ranks) for row in rows]
        received = [torch.empty_like(row) for row in sent]
        self._run(lambda rank, group: group.alltoall_base(received[rank], sent[rank], [], []))
        parts = [float8.sum_of_parts(row, ranks) for row in received]
        gathered = [[torch.empty_like(part) for part in parts] for _ in range(ranks)]
        self._run(lambda rank, group: group.allgather([gathered[rank]], [parts[rank]]))
        return float8.sums_of(torch.cat(gathered[0]), ranks, rows.shape[1])
