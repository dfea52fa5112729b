# SPDX-License-Identifier: Apache-2.0
"""Trainings of the examples' models with the examples' data, all workers in one process.

Workers with the same sums have the same weights. One model therefore serves all workers and computes each worker's
gradient in turn.
"""

import dataclasses
import os
import statistics
import sys

import torch
from torch import nn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "examples"))

import common  # noqa: E402  examples/common.py

WORKERS = 4


class Training:
    """A model, its data, and its score. `step` counts from 0; each worker gets different samples."""

    subject = ""
    measure = ""  # name of the value that score() returns
    score_every = 1

    def __init__(self, seed, workers=WORKERS):
        torch.manual_seed(seed)
        self.seed = seed
        self.workers = workers
        self.model = self.make_model()
        self.forward = self.model  # what loss() calls: a process of one worker may wrap the model
        self.optimizer = self.make_optimizer()
        self.parameters = list(self.model.parameters())

    def make_model(self):
        raise NotImplementedError

    def make_optimizer(self):
        raise NotImplementedError

    def loss(self, step, worker):
        raise NotImplementedError

    def score(self):
        raise NotImplementedError

    def gradient(self, step, worker):
        self.optimizer.zero_grad()
        self.loss(step, worker).backward()
        return torch.cat([parameter.grad.flatten() for parameter in self.parameters])

    def gradients(self, step):
        return torch.stack([self.gradient(step, worker) for worker in range(self.workers)])

    def apply(self, mean):
        pieces = mean.split([parameter.numel() for parameter in self.parameters])
        for parameter, piece in zip(self.parameters, pieces):
            parameter.grad = piece.view_as(parameter)
        self.optimizer.step()


class Digits(Training):
    """Handwritten digits; the score is the share of test images that the model recognises."""

    measure = "test accuracy"
    score_every = 4
    batch = 32  # images per worker and step

    def __init__(self, seed, workers=WORKERS):
        self.train, self.test = common.digits()
        self.steps_of_epoch = len(self.train) // (self.batch * workers)
        super().__init__(seed, workers)

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def loss(self, step, worker):
        epoch, place = divmod(step, self.steps_of_epoch)
        order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(epoch + 1000 * self.seed))
        own = order[worker :: self.workers][place * self.batch : (place + 1) * self.batch]
        images = self.train[own]
        return nn.functional.cross_entropy(self.forward(images.pixels), images.labels)

    def score(self):
        return common.accuracy_of(self.model, self.test)


class Perceptron(Digits):
    """A model that trains fast enough for a test."""

    subject = "a perceptron, handwritten digits"

    def make_model(self):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)


class Cnn(Digits):
    """The model of examples/train_cnn.py with narrower linear layers."""

    subject = "a CNN, handwritten digits"
    width = 256

    def make_model(self):
        from train_cnn import make_model

        return make_model(self.width)


class Gpt(Training):
    """The model of examples/train_gpt.py; the score is the loss on text that no worker trains with."""

    subject = "a small GPT, text"
    measure = "test loss"
    score_every = 5
    batch = 8
    width, layers = 64, 2

    def make_model(self):
        from tales import tales
        from train_gpt import GPT

        characters = tales()
        alphabet = sorted(set(characters))
        numbers = {character: number for number, character in enumerate(alphabet)}
        text = torch.tensor([numbers[character] for character in characters])
        self.text, self.kept = text[: -len(text) // 10], text[-len(text) // 10 :]
        return GPT(len(alphabet), self.width, self.layers)

    def make_optimizer(self):
        return torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def draw(self, text, batch, seed):
        from train_gpt import CONTEXT

        generator = torch.Generator().manual_seed(seed)
        starts = torch.randint(len(text) - CONTEXT, (batch,), generator=generator)
        pieces = torch.stack([text[start : start + CONTEXT + 1] for start in starts])
        return pieces[:, :-1], pieces[:, 1:]

    def loss_of(self, model, text, batch, seed):
        seen, following = self.draw(text, batch, seed)
        return nn.functional.cross_entropy(model(seen).flatten(0, 1), following.flatten())

    def loss(self, step, worker):
        seed = (self.seed * 100_003 + step) * self.workers + worker
        return self.loss_of(self.forward, self.text, self.batch, seed)

    @torch.no_grad()
    def score(self):
        return self.loss_of(self.model, self.kept, 64, 0).item()


TRAININGS = {"perceptron": Perceptron, "cnn": Cnn, "gpt": Gpt}


def run(make, reducer, steps, seed, seen=None):
    """Returns pairs of a step and its score. Calls `seen` with the gradients of each step and their sum."""
    training = make(seed)
    scores = []
    for step in range(steps):
        gradients = training.gradients(step)
        total = reducer.sum(gradients)
        if seen is not None:
            seen(gradients, total)
        training.apply(total / WORKERS)
        if (step + 1) % training.score_every == 0 or step + 1 == steps:
            scores.append((step + 1, training.score()))
    return scores


@dataclasses.dataclass
class Loss:
    """Errors of one format in the sums of a training."""

    errors: list = dataclasses.field(default_factory=list)  # relative error of the whole sum, per step
    nonzero: int = 0
    zeros_lost: int = 0

    def median(self):
        return statistics.median(self.errors)

    def add(self, exact, total):
        self.errors.append(((total.double() - exact).norm() / exact.norm()).item())
        nonzero = exact != 0
        self.nonzero += int(nonzero.sum())
        self.zeros_lost += int((nonzero & (total == 0)).sum())
