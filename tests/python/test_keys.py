# SPDX-License-Identifier: Apache-2.0
"""Ranks that have a key form a group over torch's store, which may be read and changed by others. The switch that rank 0
starts asks all of them for the key."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, values_of

RANKS = 2
ATP = os.environ["ATP_COMMAND"]


@pytest.fixture
def key(tmp_path):
    return new_key(tmp_path / "key", 7)


def new_key(path: Path, number: int) -> Path:
    subprocess.run([ATP, "key", "new", str(path), "--id", str(number)], check=True, capture_output=True, timeout=30)
    return path


def form(rank, size, store_file, read=None):
    """Forms a group whose rank 0 reads `read(key, value)` from the store. Returns a sum, and what the store holds."""

    class LyingStore(dist.Store):
        def __init__(self):
            super().__init__()
            self.inner = dist.FileStore(store_file, size)

        def set(self, key, value):
            self.inner.set(key, value)

        def get(self, key):
            value = self.inner.get(key)
            return read(key, value) if read is not None and rank == 0 else value

        def add(self, key, delta):
            return self.inner.add(key, delta)

        def check(self, keys):
            return self.inner.check(keys)

        def wait(self, keys, *timeout):
            self.inner.wait(keys, *timeout)

    store = LyingStore()
    dist.init_process_group("atp", store=store, rank=rank, world_size=size)
    values = torch.full((1000,), rank + 1.0)
    dist.all_reduce(values)
    dist.destroy_process_group()
    return values[0].item(), Path(store_file).read_bytes()


def form_changed(rank, size, store_file):
    """A byte of what rank 1 says of itself is another."""
    return form(rank, size, store_file, lambda key, value: value[:-1] + bytes([value[-1] ^ 1])
                if "facts/1" in key else value)  # fmt: skip


def form_replayed(rank, size, store_file):
    """Two groups in turn: in the second, rank 0 reads what rank 1 left for the first."""
    left = {}

    def read(key, value):
        return left.setdefault(key.partition("atp/")[2], value) if "facts/1" in key else value

    form(rank, size, store_file, read)
    assert rank != 0 or left
    return form(rank, size, store_file + "2", read)


@pytest.mark.parametrize("in_memory", [True, False])
def test_ranks_with_a_key_leave_nothing_that_others_read(key, in_memory):
    settings = {"ATP_HOST_LEVEL": "on" if in_memory else "off"}
    clear = values_of(run_ranks(form, RANKS, settings, in_group=False))
    sealed = values_of(run_ranks(form, RANKS, {**settings, "ATP_KEY_FILE": str(key)}, in_group=False))
    assert [total for total, _ in clear + sealed] == [3.0] * 2 * RANKS
    assert b"version=5" in clear[0][1]
    assert b"version=5" not in sealed[0][1]


@pytest.mark.parametrize("body", [form_changed, form_replayed])
def test_value_that_no_rank_left_is_refused_on_all_ranks(key, body):
    settings = {"ATP_HOST_LEVEL": "off", "ATP_KEY_FILE": str(key)}
    outcomes = run_ranks(body, RANKS, settings, in_group=False)
    for outcome in outcomes:
        assert outcome.error == "DistBackendError", outcome
        assert "left a value that does not open" in outcome.text, outcome.text


def test_rank_without_the_key_is_named(key, tmp_path):
    files = {"": "no key", str(new_key(tmp_path / "other", 8)): "key 8"}
    for file, text in files.items():
        outcomes = run_ranks(
            form, RANKS, lambda rank, file=file: {"ATP_KEY_FILE": str(key) if rank == 0 else file}, in_group=False
        )
        for outcome in outcomes:
            assert f"rank 1 has {text}, rank 0 key 7" in outcome.text, outcome.text


def test_key_file_that_others_may_read_is_refused(key):
    key.chmod(0o640)
    outcomes = run_ranks(form, 1, {"ATP_KEY_FILE": str(key)}, in_group=False)
    assert "denied" in outcomes[0].text and "chmod 600" in outcomes[0].text, outcomes[0].text
