# SPDX-License-Identifier: Apache-2.0
"""The programs in C and C++, built from the installed files only, sum and report errors as docs/reference/c.md states.

HELLO names the folder where tests/packaging built them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

DEADLINE_S = 60.0


@contextlib.contextmanager
def running_switch() -> Iterator[str]:
    """The address of an `atp switch` on the loopback."""
    command = [os.environ["ATP_PROGRAM"], "switch", "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


def free_address() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture(params=["pkg-config/hello_c", "pkg-config/hello_cc", "find_package/hello_c", "find_package/hello_cc"])
def hello(request: pytest.FixtureRequest) -> str:
    return os.path.join(os.environ["HELLO"], request.param)


def test_both_ranks_print_the_sum(hello: str):
    store = free_address()
    with running_switch() as switch:
        ranks = [
            subprocess.Popen([hello, switch, store, rank], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in ("0", "1")
        ]
        results = [process.communicate(timeout=DEADLINE_S) for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], results
    assert [output for output, _ in results] == ["rank 0: 2 4 6\n", "rank 1: 2 4 6\n"]


def test_malformed_store_address_is_reported(hello: str):
    ended = subprocess.run([hello, "127.0.0.1:1", "nowhere", "0"], capture_output=True, text=True, timeout=DEADLINE_S)
    assert ended.returncode == 1
    assert "malformed" in ended.stderr


def test_missing_arguments_print_the_usage(hello: str):
    ended = subprocess.run([hello], capture_output=True, text=True, timeout=DEADLINE_S)
    assert (ended.returncode, ended.stderr) == (2, "usage: hello SWITCH STORE RANK\n")
