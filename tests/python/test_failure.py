# SPDX-License-Identifier: Apache-2.0
"""After any failure, every rank raises an exception within the timeout: no rank hangs, and no sum is wrong."""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import init_group, run_ranks, values_of
from switches import running_switch

TIMEOUT_S = 3.0
# Added to the timeout: time that a busy machine needs to form and leave the group.
GRACE_S = 60.0


def run_failing(body, size, environment=None, **options):
    return run_ranks(body, size, {"ATP_TIMEOUT": str(TIMEOUT_S), **(environment or {})}, **options)


def check_failed(outcomes, *words, ranks=None):
    """Checks that `ranks` (None: all) raised the exception of the backend in time, with one of `words` in its text."""
    for rank in range(len(outcomes)) if ranks is None else ranks:
        outcome = outcomes[rank]
        assert outcome.error == "DistBackendError", f"rank {rank}: {outcome}"
        assert outcome.elapsed_s < TIMEOUT_S + GRACE_S
        assert not words or any(word in outcome.text for word in words), f"rank {rank}: {outcome.text}"


def lose_a_rank(rank, size):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(1000))


def test_other_ranks_raise_if_a_rank_is_killed():
    outcomes = run_failing(lose_a_rank, 3)
    assert outcomes[1].exit_code == -signal.SIGKILL
    check_failed(outcomes, "rank 1", "all_reduce", ranks=(0, 2))


def reduce_without_ranks_1_and_2(rank, size, folder):
    """No rank exits before ranks 0 and 3 have their errors: a rank that exits can be reported before the timeout."""
    done = [folder / str(each) for each in (0, 3)]
    dist.barrier()
    try:
        if rank in (0, 3):
            dist.all_reduce(torch.ones(1000))
    finally:
        (folder / str(rank)).touch()
        deadline = time.monotonic() + GRACE_S
        while not all(path.exists() for path in done) and time.monotonic() < deadline:
            time.sleep(0.05)


def test_timeout_names_the_missing_ranks_once(tmp_path):
    outcomes = run_failing(functools.partial(reduce_without_ranks_1_and_2, folder=tmp_path), 4)
    check_failed(outcomes, ranks=(0, 3))
    for rank in (0, 3):
        message = outcomes[rank].text.splitlines()[0]
        assert message.startswith("atp: all_reduce ranks 1, 2: Timed out after "), message
        assert message.count("rank") == 1, message


def lose_the_rank_with_the_switch(rank, size):
    dist.barrier()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(1000))


def test_other_ranks_raise_if_the_rank_with_the_switch_is_killed():
    outcomes = run_failing(lose_the_rank_with_the_switch, 3, {"ATP_TIMEOUT": "600"})
    check_failed(outcomes, "rank 0's process exited and took the switch", ranks=(1, 2))


def reduce_for_ever(rank, size, marker):
    tensor = torch.ones(200_000)
    while True:
        tensor.fill_(1.0)
        dist.all_reduce(tensor)
        assert (tensor == size).all(), "the sum is wrong"
        if rank == 0 and not os.path.exists(marker):
            open(marker, "w").close()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
def test_all_ranks_raise_if_the_switch_ends_during_a_sum(end, tmp_path):
    marker = tmp_path / "running"
    with running_switch() as switch:

        def end_switch():
            deadline = time.monotonic() + GRACE_S
            while not marker.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            switch.process.send_signal(end)

        ending = threading.Thread(target=end_switch)
        ending.start()
        body = functools.partial(reduce_for_ever, marker=str(marker))
        outcomes = run_failing(body, 3, {"ATP_SWITCH": switch.address, "ATP_TIMEOUT": "600"})
        ending.join()
        check_failed(outcomes, f"the process of the switch at {switch.address} ended")


def form_a_group_of(rank, size, store_file, sizes):
    init_group(rank, sizes[rank], store_file)
    dist.all_reduce(torch.ones(10))


@pytest.mark.parametrize("sizes", [(3, 3), (2, 3), (3, 2)])
def test_different_world_sizes_raise_on_both_ranks_with_the_reason(sizes):
    outcomes = run_failing(functools.partial(form_a_group_of, sizes=sizes), 2, in_group=False)
    check_failed(outcomes, "did not arrive", "expects")


def test_ranks_that_disagree_all_read_why_although_rank_0_serves_the_store_and_exits():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    code = "import torch.distributed as dist, atp; dist.init_process_group('atp')"
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "4"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
            env={**common, "RANK": str(rank), **({"ATP_CHANNELS": "2"} if rank == 2 else {})},
        )
        for rank in range(4)
    ]  # fmt: skip
    for rank in ranks:
        output = rank.communicate(timeout=GRACE_S)[1]
        assert rank.returncode == 1
        assert "atp.Error: " in output and 'rank 2 has the options "channels=2"' in output, output
        assert "Connection reset" not in output and "C++" not in output, output


def do_different_things(rank, size, things):
    tensor = torch.ones(1000)
    {
        "float32": lambda: dist.all_reduce(tensor),
        "longer": lambda: dist.all_reduce(torch.ones(1001)),
        "much longer": lambda: dist.all_reduce(torch.ones(100_000)),
        "float16": lambda: dist.all_reduce(tensor.half()),
        "int32": lambda: dist.all_reduce(tensor.int()),
        "average": lambda: dist.all_reduce(tensor, dist.ReduceOp.AVG),
        "broadcast": lambda: dist.broadcast(tensor, src=0),
        "broadcast of 1": lambda: dist.broadcast(tensor, src=1),
        "barrier": lambda: dist.barrier(),
        "all_gather": lambda: dist.all_gather([torch.ones(1000), torch.ones(1000)], tensor),
        "nothing": lambda: time.sleep(2 * TIMEOUT_S),
    }[things[rank]]()
    return tensor[0].item()


@pytest.mark.parametrize(
    "things",
    [
        ("float32", "longer"),
        ("float32", "much longer"),
        ("float32", "float16"),
        ("float32", "int32"),
        ("float32", "average"),
        ("float32", "broadcast"),
        ("broadcast", "broadcast of 1"),
        ("barrier", "float32"),
    ],
    ids=" and ".join,
)
def test_different_operations_raise_on_both_ranks_without_a_sum(things):
    outcomes = run_failing(functools.partial(do_different_things, things=things), 2)
    check_failed(outcomes, "mismatched")


def test_all_reduce_on_one_rank_and_all_gather_on_the_other_raise():
    outcomes = run_failing(functools.partial(do_different_things, things=("float32", "all_gather")), 2)
    check_failed(outcomes[:1], "all_reduce")
    assert outcomes[1].error in ("DistBackendError", "RuntimeError"), outcomes[1]


def call_in_another_order(rank, size):
    calls = [lambda: dist.all_reduce(torch.ones(1000)), lambda: dist.broadcast(torch.ones(64), src=0)]
    for call in calls if rank == 0 else reversed(calls):
        call()


def test_different_order_of_calls_raises_on_both_ranks():
    check_failed(run_failing(call_in_another_order, 2), "mismatched")


def coalesce_differently(rank, size):
    dist.all_reduce_coalesced([torch.ones(30), torch.ones(40)] if rank == 0 else [torch.ones(40), torch.ones(30)])


@pytest.mark.filterwarnings("ignore")
def test_coalesced_tensors_of_different_sizes_raise_on_both_ranks():
    check_failed(run_failing(coalesce_differently, 2), "mismatched")


def test_other_ranks_raise_if_a_rank_makes_no_call():
    outcomes = run_failing(functools.partial(do_different_things, things=("float32", "float32", "nothing")), 3)
    check_failed(outcomes, "all_reduce", ranks=(0, 1))
    assert outcomes[2].error is None


def raise_in_the_midst(rank, size):
    dist.barrier()
    if rank == 1:
        raise RuntimeError("bad data")
    dist.all_reduce(torch.ones(10))


def test_other_ranks_raise_if_a_rank_raises():
    outcomes = run_failing(raise_in_the_midst, 3)
    check_failed(outcomes, "all_reduce", ranks=(0, 2))
    assert "bad data" in outcomes[1].text


def interrupt_a_wait(rank, size):
    dist.barrier()
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        return store.wait(["interrupted"])  # its process has the switch
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        return dist.all_reduce(torch.ones(10))
    except KeyboardInterrupt:
        return time.monotonic() - begin
    finally:
        store.set("interrupted", "")


def test_ctrl_c_ends_a_wait():
    assert values_of(run_ranks(interrupt_a_wait, 2, timeout_s=60))[1] < 50


def interrupt_the_forming(rank, size, store_file):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    init_group(rank, 2, store_file)


@pytest.mark.parametrize("environment", [{}, {"ATP_SWITCH": "switch"}], ids=["own switch", "a switch"])
def test_ctrl_c_ends_the_formation(environment):
    with running_switch() as switch:
        environment = {name: switch.address for name in environment}
        outcomes = run_ranks(interrupt_the_forming, 1, environment, in_group=False)
    assert outcomes[0].error == "KeyboardInterrupt", outcomes[0]
    assert outcomes[0].elapsed_s < 50


def interrupt_a_backward(rank, size):
    """PyTorch waits for the sums of a backward pass where no handler of Python runs, so rank 0 must end them by leaving."""
    parallel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.wait(["interrupted"])
        return False

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        store.set("interrupted", "")

    threading.Timer(0.3, interrupt).start()
    try:
        try:
            parallel(torch.ones(2, 4)).sum().backward()
        except RuntimeError:  # until 2.6, and without the library, comes before the handler runs
            time.sleep(0)
    except KeyboardInterrupt:
        return True
    return False


def test_ctrl_c_ends_a_backward_pass():
    assert values_of(run_ranks(interrupt_a_backward, 2)) == [False, True]


def fail_and_form_again(rank, size, store_file):
    """Three times in the same store: forms a group, sums, and calls different operations, so that the group fails."""
    sums = []
    for _ in range(3):
        store = dist.FileStore(store_file, size)
        dist.init_process_group("atp", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
        tensor = torch.ones(10_000)
        dist.all_reduce(tensor)
        sums.append(tensor[0].item())
        try:
            dist.all_reduce(torch.ones(100 + rank))
        except dist.DistBackendError:
            dist.destroy_process_group()
    return sums


def test_new_group_forms_in_the_same_store_after_a_failure():
    assert values_of(run_ranks(fail_and_form_again, 3, in_group=False)) == [[3.0] * 3] * 3


class WatchedStore:
    """Tells when somebody looks for a key."""

    def __init__(self, store):
        self._store, self.asked = store, threading.Event()

    def check(self, keys):
        self.asked.set()
        return self._store.check(keys)

    def __getattr__(self, name):
        return getattr(self._store, name)


def abort_during_shutdown(rank, size):
    """Returns whether the package keeps the store while a thread waits for its keys, and after that. Only that makes
    it live between two calls of its functions."""
    from atp import _native, backend

    common = dist.distributed_c10d._get_default_store()
    if rank == 1:
        common.wait(["end"])  # says goodbye when this function returns
        return None
    store = backend._Process.groups[0]._kept[0]
    watched = store._calls.store = WatchedStore(store._calls.store)
    boxed = dist.group.WORLD.boxed()
    thread = threading.Thread(target=_native._operators.shutdown, args=(boxed,))
    thread.start()
    assert watched.asked.wait(GRACE_S)
    _native._operators.abort(boxed)
    kept = []
    for _ in range(2):
        dist.new_group([0], use_local_synchronization=True)  # drops groups that have ended
        kept.append(any(group._kept[0] is store for group in backend._Process.groups))
        common.set("end", "")
        thread.join(GRACE_S)
    return kept


def test_a_new_group_does_not_free_the_store_of_one_that_waits_in_shutdown():
    assert values_of(run_ranks(abort_during_shutdown, 2))[0] == [True, False]


def test_script_that_does_not_destroy_its_group_exits_with_status_0():
    script = (
        "import atp, torch, torch.distributed as dist\n"
        "dist.init_process_group('atp')\n"
        "tensor = torch.ones(100_000)\n"
        "for _ in range(5): dist.all_reduce(tensor)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    done = subprocess.run([*command, sys.executable, "-c", script], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("rank 0 has started a switch") == 1
