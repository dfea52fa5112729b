#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of layers in bench/cluster/workloads, or, with --check, says whether they are what it would write.

A layer's share of a step's time is its share of the floating-point operations, forward and backward, which PyTorch
counts on tensors without memory; the step's time is that of one GPU of a testbed. What is left out with that: layers
that are bound by memory (normalisation, activations), whose time goes to the others.
"""

import argparse
import json
import sys
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode
from workloads import models, tables

# Table 1 of SwitchML: eight times what a single P100 trains, at mini-batches of 64, on links of 10 Gbit/s.
SWITCHML = "SwitchML, table 1: one NVIDIA P100, mini-batches of 64, links of 10 Gbit/s"
LINK_BPS = 10e9
BATCH = 64


@dataclass(frozen=True)
class Source:
    model: str
    text: str
    batch: int
    length: int  # pixels a side, or tokens a sequence
    samples_per_second: float


SOURCES = {
    "vgg": Source("VGG16", SWITCHML, BATCH, models.IMAGE, 1180 / 8),
    "resnet": Source("ResNet50", SWITCHML, BATCH, models.IMAGE, 1838 / 8),
    "gpt": Source(
        "GPT-2 small",
        "no paper's: as many operations a second as ResNet50 in "
        + SWITCHML
        + "; mini-batches of 8 sequences of 512 tokens",
        8,
        512,
        None,
    ),
}


@dataclass
class Count:
    name: str
    tensors: list
    forward: int
    backward: int


def count_layers(name):
    """What has parameters or something to multiply, in the order of the forward pass."""
    source = SOURCES[name]
    with torch.device("meta"):
        model = models.build(name)
        inputs, _ = models.batch(name, source.batch, source.length)
    counts, seen = [], set()
    counter = FlopCounterMode(display=False)

    def before(title):
        def note(*_):
            counts.append(Count(title, [], counter.get_total_flops(), 0))

        return note

    def after(module, *_):
        count = counts[-1]
        count.forward = counter.get_total_flops() - count.forward
        # Once for the gradient of the parameters or of one factor, once for that of the input or of the other.
        count.backward = count.forward * (1 if len(counts) == 1 else 2)
        for parameter in module.parameters():
            if parameter not in seen:
                seen.add(parameter)
                count.tensors.append(parameter.numel())

    for title, module in model.named_modules():
        if not list(module.children()):
            module.register_forward_pre_hook(before(f"{title} {type(module).__name__}"))
            module.register_forward_hook(after)
    with counter, torch.no_grad():
        model(inputs)
    return [count for count in counts if count.tensors or count.forward]


def operations(counts):
    return sum(count.forward + count.backward for count in counts)


def operations_per_second(name, counts):
    source = SOURCES[name]
    if source.samples_per_second is None:
        return operations_per_second("resnet", count_layers("resnet"))
    return operations(counts) / source.batch * source.samples_per_second


def table_of(name):
    source, counts = SOURCES[name], count_layers(name)
    rate = operations_per_second(name, counts)
    return {
        "model": source.model,
        "source": source.text,
        "link_bps": LINK_BPS,
        "operations_per_second": round(rate),
        "layers": [
            {
                "name": count.name,
                "tensors": count.tensors,
                "forward_ms": round(count.forward / rate * 1e3, 6),
                "backward_ms": round(count.backward / rate * 1e3, 6),
            }
            for count in counts
        ],
    }


def text_of(table):
    """A layer a line."""
    layers = ",\n".join("    " + json.dumps(layer) for layer in table["layers"])
    head = json.dumps({key: value for key, value in table.items() if key != "layers"}, indent=2)
    return head.removesuffix("\n}") + ',\n  "layers": [\n' + layers + "\n  ]\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where a table is another one")
    options = parser.parse_args()
    differing = []
    for name in tables.NAMES:
        text = text_of(table_of(name))
        if options.check:
            with open(tables.path_of(name), encoding="utf-8") as file:
                differing += [name] if file.read() != text else []
        else:
            with open(tables.path_of(name), "w", encoding="utf-8") as file:
                file.write(text)
    if differing:
        sys.exit(f"not what this script would write: {', '.join(differing)}")


if __name__ == "__main__":
    main()
