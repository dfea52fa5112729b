# SPDX-License-Identifier: Apache-2.0
"""Operations that the network does not execute. Gloo executes them, and the log names each operation once."""

from __future__ import annotations

import functools
import logging

import pytest
import torch
import torch.distributed as dist
from ranks import init_group, run_ranks, values_of

RANKS = 3


def gather_and_scatter(rank, size):
    own = torch.full((2,), float(rank))
    gathered = [torch.zeros(2) for _ in range(size)] if rank == 1 else None
    dist.gather(own, gathered, dst=1)
    scattered = torch.zeros(2)
    dist.scatter(scattered, [torch.full((2,), 10.0 * peer) for peer in range(size)] if rank == 0 else None, src=0)
    whole = torch.zeros(2 * size)
    dist.all_gather_into_tensor(whole, own)
    reduced = torch.tensor([float(rank)])
    dist.reduce(reduced, dst=2, op=dist.ReduceOp.MIN)
    return {
        "gather": torch.stack(gathered)[:, 0].tolist() if rank == 1 else [0.0, 1.0, 2.0],
        "scatter": scattered.tolist(),
        "all_gather": whole.tolist(),
        "reduce": reduced.item() if rank == 2 else 0.0,
    }


def test_tensors_are_gathered_scattered_and_reduced():
    for rank, result in enumerate(values_of(run_ranks(gather_and_scatter, RANKS))):
        assert result["gather"] == [0.0, 1.0, 2.0]
        assert result["scatter"] == [10.0 * rank] * 2
        assert result["all_gather"] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
        assert result["reduce"] == 0.0


def reduce_and_exchange_lists(rank, size):
    part = torch.zeros(2)
    dist.reduce_scatter(part, [torch.full((2,), float(peer)) for peer in range(size)])
    exchanged = [torch.zeros(1) for _ in range(size)]
    dist.all_to_all(exchanged, [torch.tensor([10.0 * rank + peer]) for peer in range(size)])
    return part.tolist(), torch.cat(exchanged).tolist()


def test_lists_of_tensors_are_reduced_and_exchanged():
    outcomes = run_ranks(reduce_and_exchange_lists, RANKS)
    if "oes not support alltoall" in outcomes[0].text or "ProcessGroupGloo does not support" in outcomes[0].text:
        pytest.skip(f"the Gloo of PyTorch {torch.__version__} does not execute these operations")
    for rank, (part, exchanged) in enumerate(values_of(outcomes)):
        assert part == [float(RANKS * rank)] * 2
        assert exchanged == [10.0 * peer + rank for peer in range(RANKS)]


def pass_objects(rank, size):
    broadcast = [{"from": 1, "values": [1, 2, 3]}] if rank == 1 else [None]
    dist.broadcast_object_list(broadcast, src=1)
    everybody = [None] * size
    dist.all_gather_object(everybody, ("rank", rank))
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(rank * "x", gathered, dst=0)
    scattered = [None]
    dist.scatter_object_list(scattered, [f"for {peer}" for peer in range(size)] if rank == 0 else None, src=0)
    return broadcast[0], everybody, gathered, scattered[0]


def test_objects_are_passed():
    for rank, (broadcast, everybody, gathered, scattered) in enumerate(values_of(run_ranks(pass_objects, RANKS))):
        assert broadcast == {"from": 1, "values": [1, 2, 3]}
        assert everybody == [("rank", peer) for peer in range(RANKS)]
        assert gathered == (["", "x", "xx"] if rank == 0 else None)
        assert scattered == f"for {rank}"


def reduce_otherwise(rank, size):
    results = {}
    for name in ("MAX", "MIN", "PRODUCT", "BAND", "BOR"):
        tensor = torch.tensor([rank + 1, rank + 4])
        dist.all_reduce(tensor, getattr(dist.ReduceOp, name))
        results[name] = tensor.tolist()
    for dtype in (torch.uint8, torch.int8):
        tensor = torch.tensor([rank]).to(dtype)
        dist.all_reduce(tensor)
        results[str(dtype)] = tensor.item()
    sparse = torch.eye(3).to_sparse() * (rank + 1)
    dist.all_reduce(sparse)
    results["sparse"] = sparse.to_dense().diagonal().tolist()
    return results


def test_other_operations_and_types_are_reduced():
    for result in values_of(run_ranks(reduce_otherwise, RANKS)):
        assert result == {
            "MAX": [3, 6],
            "MIN": [1, 4],
            "PRODUCT": [6, 120],
            "BAND": [0, 4],
            "BOR": [3, 7],
            "torch.uint8": 3,
            "torch.int8": 3,
            "sparse": [6.0] * 3,
        }


def send_round(rank, size):
    received = torch.zeros(1)
    operations = [
        dist.P2POp(dist.isend, torch.tensor([float(rank)]), (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    if rank == 0:
        from_any = torch.zeros(1)
        source = dist.recv(from_any)
        return received.item(), (source, from_any.item())
    if rank == 1:
        dist.send(torch.tensor([41.0]), dst=0)
    return received.item(), None


def test_ranks_send_to_each_other():
    results = values_of(run_ranks(send_round, RANKS))
    assert [received for received, _ in results] == [2.0, 0.0, 1.0]
    assert results[0][1] == (1, 41.0)


def work_in_groups(rank, size):
    groups = [dist.new_group([0, 1]), dist.new_group([1, 2])]
    results = []
    for group, ranks in zip(groups, ([0, 1], [1, 2])):
        if rank not in ranks:
            continue
        summed = torch.tensor([float(rank)])
        dist.all_reduce(summed, group=group)
        gathered = [torch.zeros(1) for _ in ranks]
        dist.all_gather(gathered, torch.tensor([float(rank)]), group=group)
        copied = torch.tensor([float(rank)])
        dist.broadcast(copied, src=ranks[1], group=group)
        results.append((summed.item(), torch.cat(gathered).tolist(), copied.item()))
    gloo = dist.new_group(backend="gloo")
    other = torch.ones(1)
    dist.all_reduce(other, group=gloo)
    dist.barrier()
    return results, other.item()


def test_rank_may_be_in_groups_with_different_backends():
    first, second = (1.0, [0.0, 1.0], 1.0), (3.0, [1.0, 2.0], 2.0)
    results = values_of(run_ranks(work_in_groups, RANKS))
    assert results == [([first], 3.0), ([first, second], 3.0), ([second], 3.0)]


def note_lines_of(action):
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append((record.levelname, record.getMessage()))
    logger = logging.getLogger("atp")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    action()
    logger.setLevel(level)
    logger.removeHandler(handler)
    return lines


def note_what_is_delegated(rank, size):
    def delegate():
        for _ in range(3):
            dist.all_reduce(torch.ones(1))
            dist.all_reduce(torch.ones(20_000), dist.ReduceOp.MAX)
            dist.all_reduce(torch.ones(70_000, dtype=torch.uint8))
            dist.all_reduce(torch.ones(9000, dtype=torch.float64), dist.ReduceOp.AVG)
            dist.reduce(torch.ones(1), dst=0, op=dist.ReduceOp.MAX)
            dist.gather(torch.ones(1), [torch.zeros(1) for _ in range(size)] if rank == 0 else None, dst=0)

    return note_lines_of(delegate)


def test_each_delegated_operation_is_logged_once_by_one_rank():
    assert values_of(run_ranks(note_what_is_delegated, 2)) == [
        [
            ("WARNING", 'operation delegated name="all_reduce" backend=gloo reason="more than 64 KiB: MAX"'),
            ("WARNING", 'operation delegated name="all_reduce" backend=gloo reason="more than 64 KiB: Byte tensors"'),
            (
                "WARNING",
                'operation delegated name="all_reduce" backend=gloo '
                'reason="more than 64 KiB: float64, which the network rounds to float32"',
            ),
            ("WARNING", 'operation delegated name="reduce" backend=gloo reason="MAX"'),
            ("INFO", 'operation delegated name="gather" backend=gloo'),
        ],
        [],
    ]


def note_what_ddp_logs(rank, size):
    def train():
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
        model(torch.ones(3, 4)).sum().backward()

    return [level for level, _ in note_lines_of(train)]


def test_plain_ddp_logs_no_warning():
    for levels in values_of(run_ranks(note_what_ddp_logs, 2)):
        assert "WARNING" not in levels


def sum_by_device(rank, size, store_file, backend):
    init_group(rank, size, store_file, backend=backend)
    before = atp_sums(dist.group.WORLD)
    tensor = torch.full((3,), rank + 0.5)
    dist.all_reduce(tensor)
    average = torch.tensor([rank - 4])
    dist.all_reduce(average, dist.ReduceOp.AVG)
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.broadcast(tensor, src=1, group=pair)
    dist.barrier()
    result = (tensor.tolist(), average.item(), atp_sums(dist.group.WORLD) - before)
    dist.destroy_process_group()
    return result


def atp_sums(group):
    """Returns the number of operations that the CPU backend of this rank has begun. The backend must be atp."""
    backend = group._get_backend(torch.device("cpu"))
    assert backend.name() == "atp", backend.name()
    return backend._get_sequence_number_for_group()


@pytest.mark.parametrize("backend", ["atp", "cpu:atp", "cpu:atp,cuda:gloo"])
def test_cpu_tensors_use_atp_if_each_device_has_a_backend(backend):
    outcomes = run_ranks(functools.partial(sum_by_device, backend=backend), RANKS, in_group=False)
    assert [values[:2] for values in values_of(outcomes)] == [([4.5] * 3, -3)] * RANKS
    assert all(values[2] >= 2 for values in values_of(outcomes))
