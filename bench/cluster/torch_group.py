# SPDX-License-Identifier: Apache-2.0
"""Shared by ranks that use torch.distributed: their command line, and the process group."""

import contextlib
from datetime import timedelta

import torch
import torch.distributed as dist

PATIENCE = timedelta(minutes=2)


def add_arguments(parser):
    parser.add_argument("--backend", choices=("atp", "gloo"), required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument(
        "--store", required=True, metavar="FILE", help="store file that all ranks share to form the group"
    )


@contextlib.contextmanager
def joined(arguments):
    """The process group exists while the `with` block runs. At the end of the block, the ranks wait for each other."""
    if arguments.backend == "atp":
        import atp  # noqa: F401  registers the backend
    torch.set_num_threads(1)
    store = dist.FileStore(arguments.store, arguments.world)
    dist.init_process_group(
        arguments.backend, store=store, rank=arguments.rank, world_size=arguments.world, timeout=PATIENCE
    )
    yield
    dist.barrier()
    dist.destroy_process_group()


def from_all_ranks(value):
    """Gathers a value of each rank. Do not call it in a timed interval: even with backend `atp`, Gloo may execute
    it."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values
