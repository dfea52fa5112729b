# SPDX-License-Identifier: Apache-2.0
"""What some releases of PyTorch lack, as marks of tests."""

import pytest
import torch
import torch.distributed.fsdp

needs_fsdp2 = pytest.mark.skipif(
    not (hasattr(torch.distributed.fsdp, "fully_shard") and hasattr(torch.cpu.Stream, "record_event")),
    reason="FSDP2 of this PyTorch does not run on CPUs",
)

needs_notice = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8),
    reason="destroy_process_group() of this PyTorch does not notify a backend",
)
