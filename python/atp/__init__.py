# SPDX-License-Identifier: Apache-2.0
"""Sums of gradients inside the network, as a backend of torch.distributed.

    import atp
    import torch.distributed as dist

    dist.init_process_group("atp")

The network executes sums (all_reduce, reduce_scatter and reduce with SUM and AVG), all_gather, broadcast and barrier
of CPU and CUDA tensors. Ranks on one machine sum in its memory. Otherwise the switch at ATP_SWITCH adds, or the hosts
share the work. Gloo executes all other operations, and the logger `atp` reports each of them once. `atp.Options`
documents the settings and the environment variables. `atp.push()` and `atp.pull()` sum by key, like a parameter
server. `atp.error_feedback_hook()` makes up for the rounding of narrow lanes. `atp.flight_records()` returns what
PyTorch's Flight Recorder keeps of the operations in the network.
"""

import torch.distributed as _dist

from . import _fit as _fit  # first: it raises if the backend is for another torch
from ._build import VERSION as _VERSION
from .backend import create_backend as _create_backend
from .error_feedback import ErrorFeedback, error_feedback_hook
from .flight_recorder import flight_records, write_flight_records
from .options import Options
from .push_pull import pull, push

__all__ = [
    "ErrorFeedback",
    "Options",
    "error_feedback_hook",
    "flight_records",
    "pull",
    "push",
    "write_flight_records",
]
__version__ = _VERSION

_dist.Backend.register_backend("atp", _create_backend, extended_api=True, devices=["cpu", "cuda"])
