# SPDX-License-Identifier: Apache-2.0
"""Models as tables of layers: how many elements each gradient has, and how long each layer takes. Needs no PyTorch."""

import json
import os
import subprocess
from dataclasses import dataclass, replace

MODELS = {"vgg": "VGG16", "resnet": "ResNet50", "gpt": "GPT2"}  # as `atp-lab models` calls them
NAMES = tuple(MODELS)
# Of the testbed where the times are from: table 1 of SwitchML.
LINK_BPS = 10e9


@dataclass(frozen=True)
class Layer:
    """`tensors` has the elements of each parameter; a layer without any only takes its time."""

    name: str
    tensors: tuple
    forward_ms: float
    backward_ms: float


@dataclass(frozen=True)
class Table:
    """In the order of the forward pass. The times are of a testbed with links of `link_bps`."""

    model: str
    source: str
    link_bps: float
    layers: tuple

    @property
    def parameters(self):
        return sum(sum(layer.tensors) for layer in self.layers)

    @property
    def forward_seconds(self):
        return sum(layer.forward_ms for layer in self.layers) / 1e3

    @property
    def backward_seconds(self):
        return sum(layer.backward_ms for layer in self.layers) / 1e3

    @property
    def compute_seconds(self):
        return self.forward_seconds + self.backward_seconds

    @property
    def gradient_bytes(self):
        return self.parameters * 4

    def scaled(self, share, link_bps=None):
        """`share` of the parameters, over links of `link_bps`: the time to compute keeps its proportion to the time
        that the gradients take on the link. Without a rate, links are taken to be as fast as the testbed's."""
        factor = share * (self.link_bps / link_bps if link_bps else 1)
        return replace(
            self,
            link_bps=link_bps or self.link_bps,
            layers=tuple(_scaled(layer, share, factor) for layer in self.layers),
        )


def _scaled(layer, share, factor):
    return Layer(
        layer.name,
        tuple(max(1, round(elements * share)) for elements in layer.tensors),
        layer.forward_ms * factor,
        layer.backward_ms * factor,
    )


def load(name, programs):
    """What `atp-lab models`, which lies in the folder `programs`, says of it."""
    command = [os.path.join(programs, "atp-lab"), "models", MODELS[name], "--json"]
    (model,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    layers = tuple(
        Layer(layer["name"], tuple(layer["tensors"]), layer["forward_us"] / 1e3, layer["backward_us"] / 1e3)
        for layer in model["layers"]
    )
    return Table(model["name"], model["source"], LINK_BPS, layers)
