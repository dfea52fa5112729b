# SPDX-License-Identifier: Apache-2.0
"""The sum of a communication hook that sends float8_e4m3fn through a backend of PyTorch: all_to_all, sum in float32,
all_gather. A rank scales each part so that its largest magnitude is the largest finite float8."""

import torch

_EIGHT = torch.float8_e4m3fn
_SCALE_BYTES = 4  # of a float32, before the numbers of a part
# The largest error of a sum, relative to the sum of the largest magnitudes: two roundings to 4 bits.
TOLERANCE = 2**-3


def parts_to_send(values, ranks):
    """The bytes of float32 values for an all_to_all of so many ranks."""
    padded = torch.nn.functional.pad(values, (0, -len(values) % ranks))
    return torch.cat([_pack(part) for part in padded.chunk(ranks)])


def sum_of_parts(received, ranks):
    """The bytes of the sum, for an all_gather, of the parts that all ranks sent."""
    parts = received.chunk(ranks)
    total = _unpack(parts[0])
    for part in parts[1:]:
        total += _unpack(part)
    return _pack(total)


def sums_of(gathered, ranks, elements):
    """The sums in the bytes that an all_gather returns."""
    return torch.cat([_unpack(part) for part in gathered.chunk(ranks)])[:elements]


def all_reduce(values, group):
    """Replaces the float32 values by their sum over the process group."""
    ranks = group.size()
    sent = parts_to_send(values, ranks)
    received = torch.empty_like(sent)
    torch.distributed.all_to_all_single(received, sent, group=group)
    part = sum_of_parts(received, ranks)
    gathered = torch.empty_like(sent)
    torch.distributed.all_gather_into_tensor(gathered, part, group=group)
    values.copy_(sums_of(gathered, ranks, len(values)))


def _pack(values):
    scale = (torch.finfo(_EIGHT).max / values.abs().max().clamp(min=1e-30)).reshape(1)
    return torch.cat([scale.view(torch.uint8), (values * scale).to(_EIGHT).view(torch.uint8)])


def _unpack(values):
    return values[_SCALE_BYTES:].view(_EIGHT).float() / values[:_SCALE_BYTES].clone().view(torch.float32)
