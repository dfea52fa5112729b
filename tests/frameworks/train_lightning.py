# SPDX-License-Identifier: Apache-2.0
"""Lightning starts its ranks itself. Usage: python train_lightning.py BACKEND"""

from __future__ import annotations

import sys

import lightning
import task
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = task.network()

    def training_step(self, batch, index):
        loss = task.loss_of(self.network, *batch)
        mean = self.all_gather(loss.detach()).mean().item()
        if self.trainer.is_global_zero:
            task.report(index, mean)
        return loss

    def configure_optimizers(self):
        return task.optimizer(self.network)

    def train_dataloader(self):
        return DataLoader(task.samples(), batch_size=task.BATCH)


if __name__ == "__main__":
    lightning.Trainer(
        accelerator="cpu",
        devices=task.RANKS,
        strategy=DDPStrategy(process_group_backend=sys.argv[1]),
        max_steps=task.STEPS,
        use_distributed_sampler=True,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(Module())
