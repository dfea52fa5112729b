# SPDX-License-Identifier: Apache-2.0
"""What a job sees of itself: counters that equal those of its interfaces, and errors as objects."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import torch
import torch.distributed as dist
from namespaces import two_hosts  # noqa: F401
from ranks import run_ranks, values_of
from switches import running_switch

import atp

ELEMENTS = 1_000_000
PATIENCE_S = 20.0
IN_MEMORY = {"ATP_HOST_LEVEL": "on"}


def count_sums(rank, size):
    before = atp.counters()
    for _ in range(3):
        dist.all_reduce(torch.ones(ELEMENTS))
    dist.barrier()
    for _ in range(2):
        dist.all_to_all_single(torch.empty(size), torch.ones(size))
    dist.gather(torch.ones(2), [torch.zeros(2) for _ in range(size)] if rank == 0 else None)
    deadline = time.monotonic() + PATIENCE_S
    while (after := atp.counters()).fragments + after.copied_bytes == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert after.operations - before.operations == 4
    assert after.gloo == {"all_to_all_single": 2, "gather": 1}
    assert after.in_flight_us > 0
    return after


def test_ranks_in_memory_count_operations_and_copies():
    ranks = values_of(run_ranks(count_sums, 2, IN_MEMORY))
    assert any(counted.waiting_us > 0 for counted in ranks)  # the last rank to arrive may wait for nobody
    for counted in ranks:
        assert counted.copied_bytes >= 3 * 2 * 4 * ELEMENTS
        assert counted.sent_datagrams == counted.received_bytes == counted.fragments == 0


def test_ranks_count_what_they_send_through_a_switch():
    with running_switch() as switch:
        for counted in values_of(run_ranks(count_sums, 2, {"ATP_SWITCH": switch.address})):
            assert counted.copied_bytes == 0
            assert counted.sent_bytes > 42 * counted.sent_datagrams > 0
            assert counted.fragments > 0


def count_by_host(rank, size):
    dist.all_reduce(torch.ones(ELEMENTS))
    deadline = time.monotonic() + PATIENCE_S
    while rank == 0 and atp.counters().received_bytes < 4 * ELEMENTS and time.monotonic() < deadline:
        time.sleep(0.01)
    return atp.counters()


def test_only_the_first_rank_of_a_host_uses_the_network():
    with running_switch() as switch:
        environments = [
            {**IN_MEMORY, "ATP_SWITCH": switch.address, "ATP_HOST_NAME": f"host{rank // 2}"} for rank in range(3)
        ]
        first, second, other = values_of(run_ranks(count_by_host, 3, environments.__getitem__))
    assert first.sent_bytes > 0 and other.sent_bytes > 0
    assert first.copied_bytes > 0 and second.copied_bytes > 0
    assert second.sent_bytes == second.received_bytes == 0


RANK_OF_A_HOST = """
    import json, time, torch, torch.distributed as dist, atp

    def interfaces():
        lines = [line.split(":")[1].split() for line in open("/proc/net/dev").readlines()[2:]]
        return sum(int(each[8]) for each in lines), sum(int(each[0]) for each in lines)

    def traffic():
        own = atp.counters()
        return [own.sent_bytes, own.received_bytes, *interfaces()]

    dist.init_process_group("atp")
    before = traffic()
    for _ in range(5): dist.all_reduce(torch.ones(1_000_000))
    deadline = time.monotonic() + 20
    while True:
        sent, received, of_sent, of_received = (now - then for now, then in zip(traffic(), before))
        near = abs(sent - of_sent) < of_sent / 100 and abs(received - of_received) < of_received / 100
        if near or time.monotonic() > deadline: break
        time.sleep(0.01)
    print(json.dumps([sent, received, of_sent, of_received]))
    dist.destroy_process_group()
"""


def run_on_hosts(hosts, environment):
    ranks = []
    for rank, host in enumerate(hosts):
        own = {"MASTER_ADDR": "10.193.77.1", "MASTER_PORT": "29500", "RANK": str(rank), "WORLD_SIZE": "2",
               "LOCAL_WORLD_SIZE": "1", "ATP_TIMEOUT": "60", "OMP_NUM_THREADS": "1"}  # fmt: skip
        command = ["ip", "netns", "exec", host, sys.executable, "-c", textwrap.dedent(RANK_OF_A_HOST)]
        ranks.append(subprocess.Popen(command, env=os.environ | own | environment, stdout=-1, stderr=-1, text=True))
    try:
        for rank in ranks:
            output, complaints = rank.communicate(timeout=150)
            assert rank.returncode == 0, complaints
            yield json.loads(output)
    finally:
        for rank in ranks:
            rank.kill()


@pytest.mark.parametrize("has_switch", [False, True], ids=["hosts", "switch"])
def test_bytes_equal_those_of_the_interfaces(two_hosts, has_switch):  # noqa: F811
    """On the first host, the switch uses the interfaces too: the second host has only its rank."""
    off = [word for each in ("gso", "gro", "tso", "tx-udp-segmentation") for word in (each, "off")]
    for host, device in two_hosts.items():
        for each in (device, "lo"):
            subprocess.run(["ip", "netns", "exec", host, "ethtool", "-K", each, *off], check=True, capture_output=True)
    through = ("ip", "netns", "exec", next(iter(two_hosts)))
    running = running_switch(listen="10.193.77.1:4790", through=through) if has_switch else contextlib.nullcontext()
    with running as switch:
        environment = {"ATP_SWITCH": switch.address} if has_switch else {}
        counted = list(run_on_hosts(two_hosts, environment))
    for sent, received, *of_interfaces in counted[1:] if has_switch else counted:
        assert sent > 1_000_000 and received > 1_000_000
        assert [sent, received] == pytest.approx(of_interfaces, rel=0.01)


def failure_of(call):
    """What error_of() says of the exception, of one that it causes, and of the group."""
    try:
        call()
    except dist.DistBackendError as error:
        try:
            raise ValueError("the step failed") from error
        except ValueError as later:
            found = [atp.error_of(error), atp.error_of(later)]
        return [*found, atp.error_of(dist.group.WORLD)]
    raise AssertionError("nothing failed")


def lose_a_rank(rank, size):
    assert atp.error_of(dist.group.WORLD) is None
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return failure_of(lambda: dist.all_reduce(torch.ones(1000)))


@pytest.mark.parametrize(("environment", "reason"), [({}, "refused"), (IN_MEMORY, "closed")], ids=["network", "memory"])
def test_killed_rank_is_named(environment, reason):
    outcomes = run_ranks(lose_a_rank, 3, environment)
    for outcome in (outcomes[0], outcomes[2]):
        assert outcome.value == [atp.Failure(reason, [1], None, "all_reduce")] * 3, outcome


def lose_the_switch(rank, size, process):
    dist.barrier()
    if rank == 0:
        os.kill(process, signal.SIGKILL)

    def reduce_for_ever():
        while True:
            dist.all_reduce(torch.ones(1000))

    return failure_of(reduce_for_ever)


def test_ended_switch_is_named_by_its_address():
    with running_switch() as switch:
        body = functools.partial(lose_the_switch, process=switch.process.pid)
        for found in values_of(run_ranks(body, 2, {"ATP_SWITCH": switch.address})):
            assert found == [atp.Failure("refused", [], switch.address, "all_reduce")] * 3


def differ(rank, size):
    dist.barrier()
    tensor = torch.ones(1000)
    return failure_of((lambda: dist.broadcast(tensor, 0)) if rank == 1 else (lambda: dist.all_reduce(tensor)))


@pytest.mark.parametrize("environment", [{}, IN_MEMORY], ids=["network", "memory"])
def test_rank_that_calls_something_else_is_named(environment):
    for rank, failures in enumerate(values_of(run_ranks(differ, 3, environment))):
        first = failures[0]
        assert failures == [first] * 3
        assert first.operation == ("broadcast" if rank == 1 else "all_reduce")
        assert len(first.ranks) == 1 and first.address is None
        # In memory, a rank names the first one that differs from it, and may know of the failure before it calls.
        assert (first.reason, first.ranks) == ("mismatched", [1]) or environment


def fail_to_form(rank, size, store_file):
    os.environ["ATP_CHANNELS"] = str(1 + rank)
    try:
        dist.init_process_group("atp", store=dist.FileStore(store_file, size), rank=rank, world_size=size)
    except dist.DistBackendError as error:
        return atp.error_of(error)
    raise AssertionError("the options differ")


def test_failure_to_form_is_known():
    for found in values_of(run_ranks(fail_to_form, 2, in_group=False)):
        assert (found.reason, found.operation, len(found.ranks)) == ("mismatched", "rendezvous", 1)


def fail_elsewhere(rank, size):
    found = []
    for call in (lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3), [1, 1], [1, 1]), lambda: {}["key"]):
        try:
            call()
        except (RuntimeError, KeyError) as error:
            found.append(atp.error_of(error))
    return found, atp.error_of(dist.group.WORLD)


def test_errors_of_gloo_and_of_programs_are_not_known():
    assert values_of(run_ranks(fail_elsewhere, 2)) == [([None, None], None)] * 2
