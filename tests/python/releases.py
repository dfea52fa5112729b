# SPDX-License-Identifier: Apache-2.0
"""What some releases of PyTorch lack, as marks of tests."""

import pytest
import torch
import torch.distributed.fsdp

needs_fsdp2 = pytest.mark.skipif(
    not (hasattr(torch.distributed.fsdp, "fully_shard") and hasattr(torch.cpu.Stream, "record_event")),
    reason="FSDP2 of this PyTorch does not run on CPUs",
)
