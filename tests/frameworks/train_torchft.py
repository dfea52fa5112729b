# SPDX-License-Identifier: Apache-2.0
"""A replica group of torchft, with DDP inside. torchft itself makes the groups between replica groups, always with its
classes for Gloo and NCCL. Usage: torchrun --nproc-per-node 2 train_torchft.py BACKEND"""

from __future__ import annotations

import sys

import task
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchft import Manager, Optimizer, ProcessGroupGloo
from torchft.coordination import LighthouseServer

dist.init_process_group(sys.argv[1])
network = task.network()
lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=1) if dist.get_rank() == 0 else None
address = [lighthouse.address() if lighthouse else ""]
dist.broadcast_object_list(address)
manager = Manager(
    pg=ProcessGroupGloo(),
    load_state_dict=network.load_state_dict,
    state_dict=network.state_dict,
    min_replica_size=1,
    lighthouse_addr=address[0].replace("0.0.0.0", "127.0.0.1"),
    hostname="127.0.0.1",
)
model = DistributedDataParallel(network)
optimizer = Optimizer(manager, task.optimizer(model))
samples = task.samples()
for step, (inputs, targets) in enumerate(
    DataLoader(samples, task.BATCH, sampler=DistributedSampler(samples, shuffle=False))
):
    optimizer.zero_grad()
    loss = task.loss_of(model, inputs, targets)
    loss.backward()
    optimizer.step()
    mean = loss.detach()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        task.report(step, mean.item() / task.RANKS)
manager.shutdown()
dist.barrier()
if lighthouse:
    lighthouse.shutdown()
dist.destroy_process_group()
