# SPDX-License-Identifier: Apache-2.0
"""Ranks of one host that sum in shared memory: without a switch, with the bits of the network."""

from __future__ import annotations

import functools
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of
from switches import running_switch
from torch.nn.parallel import DistributedDataParallel
from training import digest_of, make_model, train

RANKS = 3
KILLS = int(os.environ.get("ATP_KILLS", "5"))


def reduce_everything(rank, size):
    torch.manual_seed(rank)
    sums = []
    for kind in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64):
        for elements in (1, 1000, 200_001):
            values = torch.randn(elements) * 100 if kind.is_floating_point else torch.arange(elements) + rank
            values = values.to(kind)
            if kind.is_floating_point:
                values[::97] = float("inf") if rank == 1 else 1.0
                values[5::53] *= 3e3
            dist.all_reduce(values)
            sums.append(values)
    shared = torch.full((100_000,), float(rank))
    dist.broadcast(shared, src=2)
    dist.barrier()
    odd = dist.new_group([0, 2])
    pair = torch.tensor([1.0 + rank])
    if rank != 1:
        dist.all_reduce(pair, group=odd)
    gathered = [torch.zeros(1) for _ in range(size)]
    dist.all_gather(gathered, torch.tensor([float(rank)]))
    everything = [*sums, shared, pair if rank != 1 else torch.tensor([4.0]), *gathered]
    return [values.view(torch.uint8).numpy().tobytes() for values in everything]


def test_all_types_have_the_bits_of_the_network():
    alone = values_of(run_ranks(reduce_everything, RANKS))
    with running_switch() as switch:
        network = values_of(
            run_ranks(reduce_everything, RANKS, {"ATP_SWITCH": switch.address, "ATP_HOST_LEVEL": "off"})
        )
    assert alone[0] == alone[1] == alone[2]
    assert alone[0] == network[0]


def reduce_several_at_once(rank, size):
    torch.manual_seed(rank)
    found = []
    for kind in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        for _ in range(3):
            own = [torch.randn(elements).to(kind) for elements in (1000, 6000, 1)]
            expected = [tensor.double() for tensor in own]
            for tensor in expected:
                dist.all_reduce(tensor)  # float64 by Gloo
            dist.all_reduce_coalesced(own)
            for sums, exact in zip(own, expected, strict=True):
                assert torch.allclose(sums.double(), exact, rtol=1e-2, atol=5e-3), kind
            found += [tensor.view(torch.uint8).numpy().tobytes() for tensor in own]
    return found


@pytest.mark.parametrize("lanes", ["auto", "int16"])
def test_tensors_summed_at_once_have_the_bits_of_the_network(lanes):
    alone = values_of(run_ranks(reduce_several_at_once, 2, {"ATP_LANES": lanes}))
    with running_switch() as switch:
        network = {"ATP_SWITCH": switch.address, "ATP_HOST_LEVEL": "off", "ATP_LANES": lanes}
        assert values_of(run_ranks(reduce_several_at_once, 2, network)) == alone


def scatter_spans_of_any_magnitude(rank, size):
    """Each span of 5,632 numbers of a block has a magnitude of its own."""
    generator = torch.Generator().manual_seed(rank)
    found = []
    for _ in range(3):
        whole = torch.randn(size, 20_000, generator=generator)
        for span, part in enumerate(whole.split(5632, dim=1)):
            part.mul_(10.0 ** (span % 3))
        whole[0, 5] = float("nan") if rank == 1 else 1.0
        part = torch.empty(20_000)
        dist.reduce_scatter_tensor(part, whole.reshape(-1))
        found.append(part.numpy().tobytes())
        reduced = whole.reshape(-1)
        dist.reduce(reduced, dst=1)
        found.append(reduced.numpy().tobytes() if rank == 1 else b"")
    return found


@pytest.mark.parametrize("lanes", ["int32", "int16"])
def test_scattered_sums_have_the_bits_of_the_network_and_of_two_hosts(lanes):
    alone = values_of(run_ranks(scatter_spans_of_any_magnitude, RANKS, {"ATP_LANES": lanes}))
    with running_switch() as switch:
        network = {"ATP_SWITCH": switch.address, "ATP_HOST_LEVEL": "off", "ATP_LANES": lanes}
        assert values_of(run_ranks(scatter_spans_of_any_magnitude, RANKS, network)) == alone

        def hosts(rank):
            return {**on_two_hosts(switch, 2)(rank), "ATP_LANES": lanes}

        assert values_of(run_ranks(scatter_spans_of_any_magnitude, RANKS, hosts)) == alone


def sum_beside_nan(rank, size):
    """After sums of 1e9, one number of each is not finite from the second call on, and the others are small."""
    errors = []
    for call in range(40):
        own = torch.full((3000,), 1e9 if call == 0 else 1.0 + rank)
        if call != 0:
            own[5] = float("nan") if rank == 0 else 1.0
        dist.all_reduce(own)
        exact = size * 1e9 if call == 0 else size * (size + 1) / 2
        errors.append((own[6:] / exact - 1).abs().max().item())
    return max(errors)


def test_numbers_beside_nan_keep_their_precision():
    assert max(values_of(run_ranks(sum_beside_nan, 2))) < 1e-4


def on_two_hosts(switch, ranks_each):
    def environment(rank):
        return {"ATP_SWITCH": switch.address, "ATP_HOST_NAME": f"host{rank // ranks_each}"}

    return environment


def test_two_hosts_have_the_bits_of_one():
    alone = values_of(run_ranks(reduce_everything, RANKS))
    with running_switch() as switch:
        hosts = values_of(run_ranks(reduce_everything, RANKS, on_two_hosts(switch, 2)))
    assert hosts == alone


def train_cnn(rank, size):
    model = make_model()
    parallel = DistributedDataParallel(model)
    losses = train(parallel, torch.optim.SGD(parallel.parameters(), lr=0.05), rank, steps=5)
    return losses, digest_of(model.parameters())


def test_training_has_the_bits_of_the_network():
    alone = values_of(run_ranks(train_cnn, 2))
    with running_switch() as switch:
        network = values_of(run_ranks(train_cnn, 2, {"ATP_SWITCH": switch.address, "ATP_HOST_LEVEL": "off"}))
    assert alone == network


def test_training_on_two_hosts_has_the_bits_of_the_network():
    with running_switch() as switch:
        network = values_of(run_ranks(train_cnn, 4, {"ATP_SWITCH": switch.address, "ATP_HOST_LEVEL": "off"}))
        hosts = values_of(run_ranks(train_cnn, 4, on_two_hosts(switch, 2)))
    assert hosts == network


def is_on_host(rank, size):
    threads = [Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    names = [os.readlink(path) for path in threads if path.is_symlink()]
    return any(name.startswith("/memfd:atp") for name in names)


def test_single_host_needs_no_switch():
    assert values_of(run_ranks(is_on_host, RANKS)) == [True] * RANKS
    # No process listens there, and no rank asks.
    assert values_of(run_ranks(is_on_host, RANKS, {"ATP_SWITCH": "127.0.0.1:9"})) == [True] * RANKS


@pytest.mark.parametrize("variable", ["ATP_HOST_LEVEL", "ATP_HOST_NAME"])
def test_host_level_can_be_turned_off(variable):
    def environment(rank):
        return {variable: "off" if variable == "ATP_HOST_LEVEL" else f"host{rank}"}

    assert values_of(run_ranks(is_on_host, RANKS, environment)) == [False] * RANKS


def lose_a_rank(rank, size, victim, delay_s, folder):
    values = torch.ones(4_000_000)
    dist.all_reduce(values)
    if rank == victim:

        def die(*_):
            (folder / "died").write_text(repr(time.monotonic()))
            os.kill(os.getpid(), signal.SIGKILL)

        signal.signal(signal.SIGALRM, die)
        signal.setitimer(signal.ITIMER_REAL, delay_s)
    try:
        while True:
            dist.all_reduce(values)
    finally:
        (folder / f"raised-{rank}").write_text(repr(time.monotonic()))


def test_killed_rank_is_named_with_its_process(tmp_path):
    before = set(os.listdir("/dev/shm")) | set(os.listdir("/tmp"))
    latest_s = 0.0
    for attempt in range(KILLS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        chance = random.Random(attempt)
        victim = chance.randrange(RANKS)
        body = functools.partial(lose_a_rank, victim=victim, delay_s=chance.uniform(0.001, 0.05), folder=folder)
        outcomes = run_ranks(body, RANKS)
        assert outcomes[victim].exit_code == -signal.SIGKILL
        died = float((folder / "died").read_text())
        for rank in set(range(RANKS)) - {victim}:
            assert outcomes[rank].error == "DistBackendError", outcomes[rank]
            assert f"of rank {victim}, on this host, has ended" in outcomes[rank].text
            latest_s = max(latest_s, float((folder / f"raised-{rank}").read_text()) - died)
    left = (set(os.listdir("/dev/shm")) | set(os.listdir("/tmp"))) - before
    # Not the folders of networks that bench/cluster makes at the same time.
    assert not [name for name in left if "atp" in name and not re.match(r"atp-\d+-\d+-", name)]
    print(f"{KILLS} kills, the latest error after {latest_s * 1000:.1f} ms")


def test_killed_rank_ends_the_other_host(tmp_path):
    latest_s = {"its host": 0.0, "the other": 0.0}
    for attempt in range(KILLS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        chance = random.Random(attempt)
        victim = chance.randrange(4)
        body = functools.partial(lose_a_rank, victim=victim, delay_s=chance.uniform(0.001, 0.05), folder=folder)
        with running_switch() as switch:
            outcomes = run_ranks(body, 4, on_two_hosts(switch, 2))
        assert outcomes[victim].exit_code == -signal.SIGKILL
        died = float((folder / "died").read_text())
        for rank in set(range(4)) - {victim}:
            assert outcomes[rank].error == "DistBackendError", outcomes[rank]
            after_s = float((folder / f"raised-{rank}").read_text()) - died
            if rank // 2 == victim // 2:
                assert f"of rank {victim}, on this host, has ended" in outcomes[rank].text
                latest_s["its host"] = max(latest_s["its host"], after_s)
            else:
                first = victim // 2 * 2
                assert f"{first}, {first + 1}" in outcomes[rank].text, outcomes[rank].text
                latest_s["the other"] = max(latest_s["the other"], after_s)
    for place, seconds in latest_s.items():
        print(f"{KILLS} kills, the latest error on {place} after {seconds * 1000:.1f} ms")
