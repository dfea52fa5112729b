# SPDX-License-Identifier: Apache-2.0
"""Models as tables of layers: the elements of each gradient and the time of each layer. Needs no PyTorch."""

import json
import os
import subprocess
from dataclasses import dataclass, replace

MODELS = {"vgg": "VGG16", "resnet": "ResNet50", "gpt": "GPT2"}  # names in `atp-lab models`
NAMES = tuple(MODELS)
COMPUTE = ("recorded", "none", "real")  # source of each layer's time
PARALLEL = ("ddp", "fsdp2", "fsdp2-async")  # see parallel.py, which needs PyTorch
# As users name them: a model, and how ranks share it unless each has all of it.
WORKLOADS = tuple(name if way == "ddp" else f"{name}-{way}" for way in PARALLEL for name in NAMES)


def parts_of(workload):
    """The model and the way of a name of WORKLOADS."""
    name, _, way = workload.partition("-")
    return name, way or "ddp"


# Link rate of the testbed in which the times were measured: table 1 of SwitchML.
LINK_BPS = 10e9


@dataclass(frozen=True)
class Layer:
    """`tensors` lists the number of elements of each parameter. It is empty for a layer without parameters, which has only
    times."""

    name: str
    tensors: tuple
    forward_ms: float
    backward_ms: float


@dataclass(frozen=True)
class Table:
    """A model. `layers` is in the order of the forward pass; its times are those of a testbed with links of
    `link_bps`."""

    model: str
    source: str
    link_bps: float
    layers: tuple
    batch: int = 1  # samples of a rank in a step

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

    def scaled(self, share, link_bps=None, compute="recorded"):
        """The table with `share` of the parameters, for links of `link_bps`. The time to compute keeps its ratio to the
        time that the gradients take on the link, or is 0 if `compute` is none. Without a rate, links are as fast as the
        testbed's."""
        factor = 0 if compute == "none" else share * (self.link_bps / link_bps if link_bps else 1)
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
    """The table that `atp-lab models` prints for a name of MODELS or of its own. `programs` is the folder of `atp-lab`."""
    command = [os.path.join(programs, "atp-lab"), "models", MODELS.get(name, name), "--json"]
    (model,) = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    layers = tuple(
        Layer(layer["name"], tuple(layer["tensors"]), layer["forward_us"] / 1e3, layer["backward_us"] / 1e3)
        for layer in model["layers"]
    )
    return Table(model["name"], model["source"], LINK_BPS, layers, model["batch"])
