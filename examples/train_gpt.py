#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on the text of tales.py, character by character, and lets it write some text.

torchrun --nproc-per-node 4 examples/train_gpt.py [--backend gloo] [--steps 400] [--sharded]
"""

import argparse
import time

import torch
import torch.distributed as dist
from common import compare_weights, mean_over_ranks
from tales import tales
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import atp  # noqa: F401  PyTorch 2.5 and later need no import

CONTEXT = 64  # number of characters that the model gets


class GPT(nn.Module):
    def __init__(self, characters: int, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, characters))
        self.register_buffer("future", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        length = text.shape[1]
        states = self.characters(text) + self.positions(torch.arange(length))
        return self.head(self.layers(states, mask=self.future[:length, :length], is_causal=True))


def shard(model: GPT) -> nn.Module:
    """Each rank keeps a part of each parameter. A layer is whole only while it computes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard  # PyTorch 2.6 or later

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.layers.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def draw_batch(text: torch.Tensor, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(len(text) - CONTEXT, (batch,))
    pieces = torch.stack([text[start : start + CONTEXT + 1] for start in starts])
    return pieces[:, :-1], pieces[:, 1:]


@torch.no_grad()
def write(model: nn.Module, text: torch.Tensor, count: int) -> torch.Tensor:
    for _ in range(count):
        likely = model(text[None, -CONTEXT:])[0, -1].softmax(0)
        text = torch.cat([text, torch.multinomial(likely, 1)])
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a small GPT on short tales about a network.")
    parser.add_argument("--backend", default="atp", help="backend of torch.distributed [atp]")
    parser.add_argument("--steps", type=int, default=400, help="number of steps, at least 1 [400]")
    parser.add_argument("--batch", type=int, default=16, help="text samples of one rank in one step [16]")
    parser.add_argument("--sharded", action="store_true", help="keep a part of each parameter on each rank (FSDP2)")
    arguments = parser.parse_args()

    dist.init_process_group(arguments.backend)
    torch.set_num_threads(1)
    characters = tales()
    alphabet = sorted(set(characters))
    text = torch.tensor([alphabet.index(character) for character in characters])
    torch.manual_seed(0)  # the same weights on every rank
    model = GPT(len(alphabet))
    parallel = shard(model) if arguments.sharded else DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=3e-3)
    torch.manual_seed(dist.get_rank())  # other pieces of text on every rank
    losses, begin = [], time.perf_counter()
    for step in range(1, arguments.steps + 1):
        seen, following = draw_batch(text, arguments.batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(parallel(seen).flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == arguments.steps:
            (mean,) = mean_over_ranks([sum(losses) / len(losses)])
            if dist.get_rank() == 0:
                rate = len(losses) / (time.perf_counter() - begin)
                print(f"step {step} of {arguments.steps}: loss {mean:.3f}, {rate:.1f} steps/s", flush=True)
            losses, begin = [], time.perf_counter()
    weights = compare_weights(model)
    beginning = text[characters.index("switch") :][: len("switch")]
    torch.manual_seed(0)
    # Every rank writes, because a rank may have only a part of the weights.
    sample = "".join(alphabet[index] for index in write(model, beginning, 300))
    if dist.get_rank() == 0:
        print(f"{arguments.backend}: {weights}\ngenerated text:\n{sample}")
    dist.barrier()  # otherwise threads of Gloo may hold tensors when Python ends, and abort the process
    del parallel, model, optimizer  # otherwise the model would end a thread of Gloo, which may wait for Python's lock
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
