# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Transformers chooses the backend itself. Usage: torchrun --nproc-per-node 2 train_transformers.py"""

from __future__ import annotations

import tempfile

import task
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Report(TrainerCallback):
    def on_log(self, arguments, state, control, logs=None, **_):
        if state.is_world_process_zero and "loss" in logs:
            task.report(state.global_step, logs["loss"])


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        use_cpu=True,
        max_steps=task.STEPS,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=1,
    )
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=64, n_layer=2, n_head=2))
    counting = torch.arange(task.STEPS * task.RANKS * 4)[:, None] + torch.arange(32)
    samples = [{"input_ids": row, "labels": row} for row in counting % 64]
    Trainer(model, arguments, train_dataset=samples, callbacks=[Report()]).train()
