# SPDX-License-Identifier: Apache-2.0
"""Accelerate chooses the backend itself. Usage: torchrun --nproc-per-node 2 train_accelerate.py"""

from __future__ import annotations

import task
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator(cpu=True)
network = task.network()
model, optimizer, loader = accelerator.prepare(
    network, task.optimizer(network), DataLoader(task.samples(), batch_size=task.BATCH)
)
for step, (inputs, targets) in enumerate(loader):
    loss = task.loss_of(model, inputs, targets)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    mean = accelerator.gather(loss.detach()).mean().item()
    if accelerator.is_main_process:
        task.report(step, mean)
# A rank that destroys its group while the other still reads from it ends that one's Gloo at times: "terminate called
# without an active exception", on a busy machine in half of all runs, with PyTorch alone.
accelerator.wait_for_everyone()
accelerator.end_training()
