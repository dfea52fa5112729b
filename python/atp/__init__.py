# SPDX-License-Identifier: Apache-2.0
"""Sums of gradients inside the network, as a backend of torch.distributed.

    import atp
    import torch.distributed as dist

    dist.init_process_group("atp")

all_reduce with SUM and AVG, all_reduce_coalesced, broadcast and barrier of CPU and CUDA tensors go through the switch that
ATP_SWITCH names; where it names none, rank 0 starts one in its own process. Gloo executes all other operations, and the
logger `atp` names each of them once. `atp.Options` has the settings and the variables of the environment. `atp.push()`
and `atp.pull()` sum by keys, as programs for parameter servers do.
"""

import torch.distributed as _dist

from .backend import create_backend as _create_backend
from .options import Options
from .push_pull import pull, push

__all__ = ["Options", "pull", "push"]
__version__ = "0.1.0"

_dist.Backend.register_backend("atp", _create_backend, extended_api=True, devices=["cpu", "cuda"])
