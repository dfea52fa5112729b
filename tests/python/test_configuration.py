# SPDX-License-Identifier: Apache-2.0
"""Runs with each configuration of switches, servers and hosts that users can choose."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.distributed as dist
from namespaces import two_hosts  # noqa: F401
from ranks import run_ranks, values_of
from switches import running_switch

import atp
import atp.backend

RANKS = 3


def reduce_and_gather(rank, size):
    tensor = torch.full((50_000,), float(rank + 1))
    dist.all_reduce(tensor)
    gathered = [torch.zeros(1) for _ in range(size)]
    dist.all_gather(gathered, torch.tensor([float(rank)]))
    return tensor[0].item(), tensor[-1].item(), torch.cat(gathered).tolist()


RIGHT = [(6.0, 6.0, [0.0, 1.0, 2.0])] * RANKS


def has_summed(switch) -> bool:
    """Returns true if the switch has completed a sum, or has forwarded gradients of its only rank."""
    (shard,) = switch.report()["shards"]
    return shard["packets"]["completed"] + shard["packets"]["single"] > 0


def test_switch_that_the_environment_names_sums():
    with running_switch() as switch:
        assert values_of(run_ranks(reduce_and_gather, RANKS, {"ATP_SWITCH": switch.address})) == RIGHT
        assert has_summed(switch)


def test_switch_of_rank_0_serves_all_ranks():
    with running_switch() as switch:
        environment = {"ATP_SWITCH": switch.address}
        assert values_of(run_ranks(reduce_and_gather, RANKS, lambda rank: {} if rank else environment)) == RIGHT
        assert has_summed(switch)


def test_switch_of_the_options_overrides_the_environment():
    with running_switch() as switch:
        options = atp.Options(switch=switch.address)
        outcomes = run_ranks(reduce_and_gather, RANKS, {"ATP_SWITCH": "127.0.0.1:9"}, pg_options=options)
        assert values_of(outcomes) == RIGHT


@pytest.mark.parametrize("by_options", [False, True], ids=["environment", "options"])
def test_colocated_servers_sum(by_options):
    with running_switch("--no-server") as switch:
        environment = {"ATP_SWITCH": switch.address, "ATP_CHANNELS": "2"}
        options = atp.Options(server="colocated") if by_options else None
        environment |= {} if by_options else {"ATP_SERVER": "colocated"}
        assert values_of(run_ranks(reduce_and_gather, RANKS, environment, pg_options=options)) == RIGHT


@pytest.mark.parametrize("by_options", [False, True], ids=["environment", "options"])
def test_dedicated_servers_sum(by_options):
    with running_switch("--no-server") as switch, running_switch("--memory", "0") as server:
        place = f"dedicated:{server.address}"
        environment = {"ATP_SWITCH": switch.address} | ({} if by_options else {"ATP_SERVER": place})
        options = atp.Options(server=place) if by_options else None
        assert values_of(run_ranks(reduce_and_gather, RANKS, environment, pg_options=options)) == RIGHT


def write_topology(path, *switches) -> str:
    path.write_text("\n".join(f'[[switch]]\naddress = "{address}"\n{members}\n' for address, members in switches))
    return str(path)


def sum_in_a_subgroup(rank, size):
    results = reduce_and_gather(rank, size)
    group = dist.new_group([1, 2])
    tensor = torch.tensor([float(rank)])
    if rank != 0:
        dist.all_reduce(tensor, group=group)
    return results, tensor.item()


@pytest.mark.parametrize("by_options", [False, True], ids=["environment", "options"])
def test_topology_assigns_each_rank_its_switch(tmp_path, by_options):
    with running_switch() as root:
        flags = ("--parent", root.address)
        with running_switch(*flags) as left, running_switch(*flags) as right:
            path = write_topology(
                tmp_path / "topology.toml", (left.address, "ranks = ['0-1']"), (right.address, "ranks = [2]")
            )
            environment = {} if by_options else {"ATP_TOPOLOGY": path}
            options = atp.Options(topology=path) if by_options else None
            results = values_of(run_ranks(sum_in_a_subgroup, RANKS, environment, pg_options=options))
            assert all(has_summed(switch) for switch in (root, left, right))
    assert [result for result, _ in results] == RIGHT
    assert [summed for _, summed in results] == [0.0, 3.0, 3.0]


def test_topology_matches_hosts_by_the_address_towards_the_switch(tmp_path):
    with running_switch() as switch:
        path = write_topology(tmp_path / "topology.toml", (switch.address, "hosts = ['127.0.0.0/8']"))
        assert values_of(run_ranks(reduce_and_gather, RANKS, {"ATP_TOPOLOGY": path})) == RIGHT


def do_nothing(rank, size):
    return None


def test_missing_switch_is_reported_with_its_address():
    for outcome in run_ranks(do_nothing, 2, {"ATP_SWITCH": "127.0.0.1:9", "ATP_TIMEOUT": "2"}):
        assert outcome.error == "DistBackendError"
        assert "127.0.0.1:9" in outcome.text
        assert "atp doctor --switch 127.0.0.1:9" in outcome.text
        assert outcome.elapsed_s < 60


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ATP_SWITCH", "nowhere"), ("ATP_TOPOLOGY", "/nowhere.toml"), ("ATP_SERVER", "moon"), ("ATP_CHANNELS", "many")],
)
def test_wrong_value_is_refused_before_a_connection(variable, value):
    for outcome in run_ranks(do_nothing, 2, {variable: value}):
        assert outcome.error == "ValueError"
        assert f"{variable}={value!r}" in outcome.text
        assert ": use " in outcome.text or "No such file" in outcome.text


def test_different_options_on_ranks_are_reported():
    for outcome in run_ranks(do_nothing, 2, lambda rank: {"ATP_CHANNELS": str(rank + 1)}):
        assert outcome.error == "DistBackendError"
        assert "channels=1" in outcome.text and "channels=2" in outcome.text


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "127.0.0.1:0"),
        ({"MASTER_ADDR": "192.0.2.1", "LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "4"}, "127.0.0.1:0"),
        ({"MASTER_ADDR": "127.0.0.1"}, "127.0.0.1:0"),
        ({"MASTER_ADDR": "::1"}, "[::1]:0"),
    ],
)
def test_switch_of_rank_0_listens_at_the_address_that_the_ranks_use(monkeypatch, environment, address):
    for name in ("MASTER_ADDR", "LOCAL_WORLD_SIZE", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert atp.backend._listen_address() == address


def test_switch_of_rank_0_on_the_loopback_is_refused_for_several_hosts(monkeypatch):
    for name, value in {"MASTER_ADDR": "localhost", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RuntimeError, match="MASTER_ADDR='localhost' resolves to the loopback"):
        atp.backend._listen_address()


def test_ranks_on_two_hosts_serve_the_sums_without_a_switch(two_hosts):  # noqa: F811
    script = textwrap.dedent("""
        import torch, torch.distributed as dist, atp
        dist.init_process_group("atp")
        tensor = torch.full((50_000,), dist.get_rank() + 1.0)
        dist.all_reduce(tensor)
        gathered = [torch.zeros(1) for _ in range(2)]
        dist.all_gather(gathered, torch.tensor([float(dist.get_rank())]))
        dist.destroy_process_group()
        print(tensor[-1].item(), torch.cat(gathered).tolist())
    """)
    ranks = []
    for rank, host in enumerate(two_hosts):
        environment = os.environ | {
            "MASTER_ADDR": "10.193.77.1",
            "MASTER_PORT": "29500",
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "1",
            "ATP_TIMEOUT": "60",
            "ATP_LOG": "info",
            "ATP_LANE_TYPE": "auto",
        }
        command = ["ip", "netns", "exec", host, sys.executable, "-c", script]
        ranks.append(subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True))
    try:
        for rank in ranks:
            output, complaints = rank.communicate(timeout=150)
            assert rank.returncode == 0, complaints
            assert output.strip() == "3.0 [0.0, 1.0]"
            assert "started a switch" not in complaints
            assert "2 hosts serve the sums" in complaints
            assert complaints.count("variable ignored name=ATP_LANE_TYPE meant=ATP_LANES") == 1
    finally:
        for rank in ranks:
            rank.kill()
