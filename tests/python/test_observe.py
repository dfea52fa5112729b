# SPDX-License-Identifier: Apache-2.0
"""Logs of ranks through the logger `atp`, and traces of their packets."""

from __future__ import annotations

import logging
import re
import time

import pytest
import torch
import torch.distributed as dist
from log_lines import Lines
from ranks import init_group, run_ranks, values_of
from releases import needs_notice

import atp.backend

RANKS = 2


def logged_job(rank, size, store_file):
    lines = Lines()
    logging.getLogger("atp").addHandler(lines)
    init_group(rank, size, store_file)
    dist.all_reduce(torch.ones(1000))
    ready = lines.wait_for("INFO job ready ")
    dist.destroy_process_group()
    return ready, lines.wait_for("INFO job left ")


@needs_notice
def test_ranks_log_that_their_job_is_ready_and_left():
    for rank, (ready, left) in enumerate(values_of(run_ranks(logged_job, RANKS, {"ATP_LOG": "info"}, in_group=False))):
        job = re.match(
            rf"INFO job ready job=([0-9a-f]{{8}}) rank={rank} world={RANKS} switch=[\d.:]+ channels=1 lanes=", ready
        )
        assert job, ready
        assert left == f"INFO job left job={job[1]} rank={rank}"


def failed_job(rank, size, store_file):
    lines = Lines()
    logging.getLogger("atp").addHandler(lines)
    init_group(rank, size, store_file, timeout_s=2)
    dist.barrier()
    if rank == 1:
        time.sleep(4)
        return None
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(1000))
    return lines.wait_for("WARNING job failed ")


def test_failed_job_is_a_warning_with_the_reason_of_the_exception():
    line, _ = values_of(run_ranks(failed_job, RANKS, in_group=False))
    assert " rank=0 reason=" in line
    assert "rank 1" in line


def reduce_in_two_groups(rank, size):
    group = dist.new_group(list(range(size)))
    for each in (None, group):
        tensor = torch.ones(10_000)
        dist.all_reduce(tensor, group=each)
        assert tensor.eq(size).all()


def fields_of(lines, event, packet):
    """The job and fragment of each line with this event and type of packet."""
    found = (re.match(rf"[\d.]+us \S+ {event} {packet} job=([0-9a-f]{{8}}) .*seq=(\d+) ", line) for line in lines)
    return {match.groups() for match in found if match}


@needs_notice
def test_each_rank_writes_a_complete_trace_of_its_groups(tmp_path):
    values_of(run_ranks(reduce_in_two_groups, RANKS, {"ATP_TRACE": str(tmp_path / "%r.trace")}))
    for rank in range(RANKS):
        lines = (tmp_path / f"{rank}.trace").read_text().splitlines()
        assert " begins at " in lines[0]
        assert re.search(r" ends at \S+ written=\d+ dropped=0$", lines[-1])
        sent = fields_of(lines, "sent", "GRADIENT")
        assert len({job for job, _ in sent}) == 2, "both groups are in one file"
        assert sent == fields_of(lines, "received", "ACK")


def test_file_that_two_ranks_name_is_refused_with_the_remedy(tmp_path):
    outcomes = run_ranks(reduce_in_two_groups, RANKS, {"ATP_TRACE": str(tmp_path / "trace")})
    assert all(outcome.error == "DistBackendError" for outcome in outcomes), outcomes
    assert any("give each process its own file" in outcome.text for outcome in outcomes)


@pytest.mark.parametrize(
    ("pattern", "path"), [("%r.trace", "3.trace"), ("%%r", "%%r"), ("%%%r-%p", "%%3-%p"), ("plain", "plain")]
)
def test_pattern_gets_the_rank_in_the_program(pattern, path):
    assert atp.backend._with_rank(pattern, 3) == path
