# SPDX-License-Identifier: Apache-2.0
"""Sums of gradients inside the network, as a backend of torch.distributed.

    import torch.distributed as dist

    dist.init_process_group("atp")

The network executes sums (all_reduce, reduce_scatter and reduce with SUM and AVG), all_gather, broadcast, barrier, and
up to 64 KiB other reductions of all_reduce, for CPU and CUDA tensors. Ranks on one machine sum in its memory. Otherwise
the switch at ATP_SWITCH adds, or the hosts share the work. Gloo executes all other operations, and rank 0 logs each
kind once (`operation delegated`).

`atp.Options` has the settings. `atp.push()` and `atp.pull()` sum by key, like a parameter server.
`atp.error_feedback_hook()` makes up for the rounding of narrow lanes. `atp.flight_records()` returns what PyTorch's
Flight Recorder keeps of the operations in the network. `atp.counters()` counts them, and `atp.error_of()` says what an
exception is about. Programs in C are built with `atp.get_include()` and `atp.get_library()`. `atp.__version__` is the
release.

Raises:
    torch.distributed.DistBackendError: an operation, or forming the group, failed. The text of a timeout contains
        "Timed out".
    ValueError: a setting is wrong, and the text names it, its value and the accepted values; or a tensor has a wrong
        size, or the group another backend.
    TypeError: `pg_options` is not `atp.Options`, or keys do not support this kind of tensor.
    RuntimeError: an operation that Gloo executes failed, or this build lacks the Flight Recorder.
    ImportError: on `import atp`, because a library of the package is missing.
    KeyboardInterrupt: Ctrl-C while the rank waits.
"""

import atp_autoload as _autoload

from ._build import VERSION as _VERSION
from .embed import get_include, get_library
from .error_feedback import ErrorFeedback, error_feedback_hook
from .errors import Error, Failure
from .flight_recorder import flight_records, write_flight_records
from .job_view import Counters, counters, error_of
from .options import Options
from .push_pull import pull, push

__all__ = [
    "Counters",
    "Error",
    "ErrorFeedback",
    "Failure",
    "Options",
    "counters",
    "error_feedback_hook",
    "error_of",
    "flight_records",
    "get_include",
    "get_library",
    "pull",
    "push",
    "write_flight_records",
]
__version__ = _VERSION

_autoload.register()
