# SPDX-License-Identifier: Apache-2.0
"""A model that computes nothing: each layer waits for its recorded time. DistributedDataParallel trains the model with
hooks, buckets and overlap."""

import time

import torch
from torch import nn

# Gradients of real models vary by orders of magnitude. The gradients here are around 1e-4, and rarely above 1.
TYPICAL_GRADIENT = 1e-4
SPREAD = 2.0


class Processor:
    """A simulated processor, like a GPU whose queue is never empty: a computation begins when the previous one ends,
    even if the host calls compute() later. The host only waits for the end of each computation."""

    def __init__(self):
        self._done_at = 0.0

    def begin(self):
        self._done_at = time.monotonic()

    def compute(self, seconds):
        self._done_at += seconds
        while (left := self._done_at - time.monotonic()) > 0:
            time.sleep(left)


class _LayerFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, layer, *_parameters):
        ctx.layer = layer
        layer.processor.compute(layer.forward_seconds)
        return inputs.clone()

    @staticmethod
    def backward(ctx, of_outputs):
        ctx.layer.processor.compute(ctx.layer.backward_seconds)
        return of_outputs, None, *ctx.layer.gradients


class _Layer(nn.Module):
    def __init__(self, layer, processor, random):
        super().__init__()
        self.processor = processor
        self.forward_seconds = layer.forward_ms / 1e3
        self.backward_seconds = layer.backward_ms / 1e3
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(elements)) for elements in layer.tensors)
        self.gradients = [gradient_like(weight, random) for weight in self.weights]

    def forward(self, inputs):
        return _LayerFunction.apply(inputs, self, *self.weights)


class RecordedModel(nn.Module):
    """The model of one rank. Each rank has other gradients, which are the same in every step."""

    def __init__(self, table, rank):
        super().__init__()
        random = torch.Generator().manual_seed(rank)
        self._processor = Processor()
        self.layers = nn.Sequential(*(_Layer(layer, self._processor, random) for layer in table.layers))

    def forward(self, inputs):
        self._processor.begin()
        return self.layers(inputs)

    def gradients(self):
        """The gradients in the order of parameters()."""
        return [gradient for layer in self.layers for gradient in layer.gradients]


def gradient_like(weight, random):
    magnitude = torch.exp(torch.randn(weight.shape, generator=random) * SPREAD)
    return torch.randn(weight.shape, generator=random) * magnitude * TYPICAL_GRADIENT
