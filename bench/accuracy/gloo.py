# SPDX-License-Identifier: Apache-2.0
"""Sums of PyTorch's Gloo. All ranks of the group are in one process."""

import threading
from datetime import timedelta

import torch
import torch.distributed as dist

_EIGHT = torch.float8_e4m3fn
_SCALE_BYTES = 4  # of a float32


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
        """The sum of float32 rows as a hook for float8_e4m3fn makes it: all_to_all, sum in float32, all_gather. A rank
        scales each part so that its largest magnitude is the largest finite float8."""
        ranks = len(self._groups)
        padded = torch.nn.functional.pad(rows, (0, -rows.shape[1] % ranks))
        sent = [torch.cat([_pack(part) for part in row.chunk(ranks)]) for row in padded]
        received = [torch.empty_like(row) for row in sent]
        self._run(lambda rank, group: group.alltoall_base(received[rank], sent[rank], [], []))
        parts = [_pack(torch.stack([_unpack(part) for part in row.chunk(ranks)]).sum(0)) for row in received]
        gathered = [[torch.empty_like(part) for part in parts] for _ in range(ranks)]
        self._run(lambda rank, group: group.allgather([gathered[rank]], [parts[rank]]))
        return torch.cat([_unpack(part) for part in gathered[0]])[: rows.shape[1]]


def _pack(values):
    scale = (torch.finfo(_EIGHT).max / values.abs().max().clamp(min=1e-30)).reshape(1)
    return torch.cat([scale.view(torch.uint8), (values * scale).to(_EIGHT).view(torch.uint8)])


def _unpack(values):
    return values[_SCALE_BYTES:].view(_EIGHT).float() / values[:_SCALE_BYTES].clone().view(torch.float32)
