# SPDX-License-Identifier: Apache-2.0
"""PyTorch's Flight Recorder for the operations in the network."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import init_group, run_ranks, values_of

import atp
from atp._backends import backends, has_library

RANKS = 2

pytestmark = pytest.mark.skipif(
    not (has_library() and backends.has_flight_recorder()), reason="the installed torch lacks FlightRecorderDetail.hpp"
)


def summary(records):
    keys = ("profiling_name", "state", "retired", "input_sizes", "input_dtypes", "collective_seq_id", "process_group")
    return [tuple(entry[key] for key in keys) for entry in records["entries"]]


def recorded_job(rank, size):
    dist.all_reduce(torch.ones(1000))
    dist.broadcast(torch.ones(3, dtype=torch.float64), 0)
    dist.barrier()
    dist.all_reduce(torch.ones(2, 7, dtype=torch.bfloat16))
    group = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(5), group=group)
    return atp.flight_records()


def test_completed_operations_are_recorded_with_tensors_and_group():
    for records in values_of(run_ranks(recorded_job, RANKS)):
        assert summary(records) == [
            ("atp:all_reduce", "completed", True, [[1000]], ["Float"], 0, ("0", "atp")),
            ("atp:broadcast", "completed", True, [[3]], ["Double"], 1, ("0", "atp")),
            ("atp:barrier", "completed", True, [], [], 2, ("0", "atp")),
            ("atp:all_reduce", "completed", True, [[2, 7]], ["BFloat16"], 3, ("0", "atp")),
            ("atp:all_reduce", "completed", True, [[5]], ["Float"], 0, ("1", "atp")),
        ]
        assert [config["ranks"] for config in records["pg_config"].values()] == ["[0, 1]", "[0, 1]"]
        for entry in records["entries"]:
            assert entry["duration_ms"] > 0
            assert any(frame["name"] == "recorded_job" for frame in entry["frames"])


def without_recorder(rank, size):
    dist.all_reduce(torch.ones(10))
    return len(atp.flight_records()["entries"])


def test_buffer_of_size_0_records_nothing():
    assert values_of(run_ranks(without_recorder, RANKS, {"TORCH_FR_BUFFER_SIZE": "0"})) == [0, 0]


def delegated_job(rank, size):
    dist.gather(torch.ones(2), [torch.ones(2), torch.ones(2)] if rank == 0 else None, dst=0)
    return summary(atp.flight_records())


def test_operations_of_gloo_are_not_recorded_twice():
    assert values_of(run_ranks(delegated_job, RANKS)) == [[], []]


def partner_ends(rank, size, store_file):
    init_group(rank, size, store_file, timeout_s=20)
    dist.all_reduce(torch.ones(4))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(9))
    records = atp.flight_records()
    return summary(records), summary(atp.flight_records(only_active=True)), records["pg_status"]["0"]


def test_failed_operation_stays_started_and_is_written(tmp_path):
    prefix = tmp_path / "trace_"
    outcome = run_ranks(partner_ends, RANKS, {"TORCH_FR_DUMP_TEMP_FILE": str(prefix)}, in_group=False)[0]
    assert outcome.error is None, outcome.text
    everything, active, status = outcome.value
    failed = ("atp:all_reduce", "started", True, [[9]], ["Float"], 1, ("0", "atp"))
    assert everything[1] == failed
    assert active == [failed]
    assert (status["last_enqueued_collective"], status["last_completed_collective"]) == (1, 0)
    written = pickle.loads(Path(f"{prefix}0").read_bytes())
    assert summary(written)[1] == failed


def partner_does_not_call(rank, size, prefix):
    dist.all_reduce(torch.ones(4))
    if rank == 0:
        work = dist.all_reduce(torch.ones(9), async_op=True)
        with pytest.raises(dist.DistBackendError):
            work.wait(timedelta(seconds=0.2))
    atp.write_flight_records(prefix, name="gloo")
    os._exit(0)


def run_partner_that_does_not_call(rank, size):
    partner_does_not_call(rank, size, os.environ["PREFIX"])


def test_analyser_of_pytorch_names_the_rank_that_does_not_call(tmp_path):
    run_ranks(run_partner_that_does_not_call, RANKS, {"PREFIX": str(tmp_path / "trace_")})
    found = subprocess.run(
        [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(tmp_path), "-p", "trace_"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named torch.distributed.flight_recorder" in found.stderr:
        pytest.skip("the installed torch lacks the analyser")
    text = found.stdout + found.stderr
    assert "Not all ranks joining collective" in text, text
    assert "missing ranks: {1}" in text, text
