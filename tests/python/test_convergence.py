# SPDX-License-Identifier: Apache-2.0
"""Training with ATP gives the losses of Gloo within noise. Faults of the network change no bit of the result."""

from __future__ import annotations

import contextlib

import pytest
import torch
from ranks import run_ranks, values_of
from switches import running_switch
from torch.nn.parallel import DistributedDataParallel
from training import digest_of, make_model, train

RANKS = 4
STEPS = 60
# Largest difference, relative to the loss of each step. A sum of floats changes by about 1e-7 in another order or with
# scaled integers. Two runs of Gloo with exchanged ranks differ by 4e-6 after these steps.
NOISE = 1e-4
# An aggregator of 352 lanes has 1,448 bytes (docs/operate/tune.md).
EIGHT_AGGREGATORS = ("--lanes", "352", "--memory", str(8 * 1448))


def train_cnn(rank, size):
    model = make_model()
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.02)
    losses = train(parallel, torch.optim.SGD(parallel.parameters(), lr=0.2), rank, STEPS)
    return losses, digest_of(model.parameters())


def mean_losses(results):
    return [sum(each) / len(each) for each in zip(*(losses for losses, _ in results))]


def only_digest(results):
    digests = {digest for _, digest in results}
    assert len(digests) == 1, "weights differ between ranks"
    return digests.pop()


@pytest.fixture(scope="module")
def plain_run():
    """Returns the results with one switch that has enough memory and loses no packet."""
    with running_switch() as switch:
        return values_of(run_ranks(train_cnn, RANKS, {"ATP_SWITCH": switch.address}))


def test_losses_equal_those_of_gloo_within_noise(plain_run):
    ours, theirs = mean_losses(plain_run), mean_losses(values_of(run_ranks(train_cnn, RANKS, backend="gloo")))
    assert theirs[-1] < 0.5 * theirs[0], "the loss of Gloo has not halved"
    assert max(abs(our - their) / their for our, their in zip(ours, theirs)) < NOISE


def test_second_run_has_the_same_bits(plain_run):
    assert only_digest(values_of(run_ranks(train_cnn, RANKS))) == only_digest(plain_run)


def test_loss_of_packets_changes_no_bit(plain_run):
    with running_switch("--loss", "1%") as switch:
        results = values_of(run_ranks(train_cnn, RANKS, {"ATP_SWITCH": switch.address}))
        resends = sum(shard["packets"]["resends"] for shard in switch.report()["shards"])
    assert resends > 0, "no packet was lost, or no rank resent one"
    assert only_digest(results) == only_digest(plain_run)


def test_eight_aggregators_change_no_bit(plain_run):
    with running_switch(*EIGHT_AGGREGATORS) as switch:
        report = switch.report()
        assert [shard["aggregators"] for shard in report["shards"]] == [8]
        results = values_of(run_ranks(train_cnn, RANKS, {"ATP_SWITCH": switch.address}))
    assert only_digest(results) == only_digest(plain_run)


@pytest.mark.parametrize("loss", ["0", "1%"])
def test_two_levels_of_switches_change_no_bit(plain_run, tmp_path, loss):
    with contextlib.ExitStack() as switches:
        root = switches.enter_context(running_switch())
        flags = ("--parent", root.address, "--loss", loss)
        leaves = [switches.enter_context(running_switch(*flags)) for _ in range(2)]
        topology = tmp_path / "topology.toml"
        ranks = ["[0, 1]", "[2, 3]"]
        tables = [f'[[switch]]\naddress = "{leaf.address}"\nranks = {own}\n' for leaf, own in zip(leaves, ranks)]
        topology.write_text("\n".join(tables))
        results = values_of(run_ranks(train_cnn, RANKS, {"ATP_TOPOLOGY": str(topology)}))
        assert all(switch.report()["shards"][0]["packets"]["completed"] > 0 for switch in (root, *leaves))
    assert only_digest(results) == only_digest(plain_run)


def test_several_channels_change_no_bit(plain_run):
    results = values_of(run_ranks(train_cnn, RANKS, {"ATP_CHANNELS": "2"}))
    assert only_digest(results) == only_digest(plain_run)
