# SPDX-License-Identifier: Apache-2.0
"""The measured models. With `share` below 1, the layers are narrower: the model has about `share` times the
parameters."""

import math

import torch
from torch import nn

IMAGE = 224
CLASSES = 1000
VGG16_CHANNELS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
VGG16_HIDDEN = 4096
RESNET50_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # width, blocks
RESNET_EXPANSION = 4
GPT2_SMALL = {"layers": 12, "heads": 12, "width": 768, "vocabulary": 50257, "context": 1024}


def build(name, share=1.0):
    return {"vgg": _vgg16, "resnet": _resnet50, "gpt": _gpt2_small}[name](_Width(share))


def units(model):
    """Parts of a model in the order of its forward pass, as fully_shard takes them."""
    return list(model.blocks) if isinstance(model, _Gpt) else list(model)


def batch(name, size, length, share=1.0):
    """Inputs and targets; `length`: tokens per sequence, or pixels per side."""
    if name == "gpt":
        tokens = torch.randint(_Width(share).of(GPT2_SMALL["vocabulary"]), (size, length + 1))
        return tokens[:, :-1], tokens[:, 1:].flatten()
    return torch.randn(size, 3, length, length), torch.randint(CLASSES, (size,))


class _Width:
    """Scales widths: the number of parameters grows with the square of the widths."""

    MULTIPLE = 4

    def __init__(self, share):
        self._factor = math.sqrt(share)

    def of(self, width):
        if self._factor == 1:
            return width
        return max(self.MULTIPLE, round(width * self._factor / self.MULTIPLE) * self.MULTIPLE)


def _vgg16(width):
    layers, channels = [], 3
    for block in VGG16_CHANNELS:
        for wide in block:
            layers += [nn.Conv2d(channels, width.of(wide), 3, padding=1), nn.ReLU()]
            channels = width.of(wide)
        layers.append(nn.MaxPool2d(2))
    pixels = (IMAGE >> len(VGG16_CHANNELS)) ** 2
    hidden = width.of(VGG16_HIDDEN)
    layers += [nn.Flatten(), nn.Linear(channels * pixels, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, CLASSES))


class _Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = width * RESNET_EXPANSION
        self.branch = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut = (
            nn.Identity()
            if stride == 1 and channels == out
            else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, inputs):
        return torch.relu(self.branch(inputs) + self.shortcut(inputs))


def _resnet50(width):
    channels = width.of(RESNET50_STAGES[0][0])
    layers = [
        nn.Conv2d(3, channels, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    for stage, (wide, blocks) in enumerate(RESNET50_STAGES):
        for block in range(blocks):
            layers.append(_Bottleneck(channels, width.of(wide), 2 if stage > 0 and block == 0 else 1))
            channels = width.of(wide) * RESNET_EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


class _CausalAttention(nn.Module):
    """The part of attention that has no parameters."""

    def __init__(self, heads):
        super().__init__()
        self._heads = heads

    def forward(self, joined):
        batches, tokens, triple = joined.shape
        shape = (batches, tokens, self._heads, triple // 3 // self._heads)
        queries, keys, values = (part.reshape(shape).transpose(1, 2) for part in joined.chunk(3, dim=-1))
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(shape[-1])
        future = torch.ones(tokens, tokens, dtype=torch.bool, device=joined.device).triu(1)
        mixed = scores.masked_fill(future, -math.inf).softmax(-1) @ values
        return mixed.transpose(1, 2).reshape(batches, tokens, triple // 3)


class _Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 3 * width), _CausalAttention(heads), nn.Linear(width, width)
        )
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, inputs):
        inputs = inputs + self.attention(inputs)
        return inputs + self.mlp(inputs)


class _Gpt(nn.Module):
    def __init__(self, width, vocabulary):
        super().__init__()
        heads = GPT2_SMALL["heads"]
        width = max(1, width // heads) * heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(GPT2_SMALL["context"], width)
        self.blocks = nn.Sequential(*(_Block(width, heads) for _ in range(GPT2_SMALL["layers"])), nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.tokens(tokens) + self.positions(positions))).flatten(0, 1)


def _gpt2_small(width):
    return _Gpt(width.of(GPT2_SMALL["width"]), width.of(GPT2_SMALL["vocabulary"]))
