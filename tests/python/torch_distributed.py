# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests of torch.distributed with Gloo and with the backend `atp`, and compares.

Each test that passes with Gloo must pass with `atp`. Exception: before version 2.14, PyTorch has
monitored_barrier only for Gloo. A test that Gloo runs and `atp` skips counts as failed. CUDA devices are hidden from
the tests.

Exit status: 0 each test that passes with Gloo passes with `atp`, 1 a test fails, 2 bad arguments.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
import time
import unittest
from multiprocessing.connection import Connection, wait
from typing import Any

from torch_results import PASSED, Results

_EXCEPTION = "monitored_barrier"
_PROGRESS_S = 15.0
_fork = multiprocessing.get_context("fork")


def _work(backend: str, parent: Connection) -> None:
    """Runs the tests that the parent names, one at a time. Each test forks its ranks. This is the main of a worker."""
    import torch_shim

    with open(os.devnull, "w") as nowhere:  # hides the output of tests; a failed test raises an exception
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    torch_shim.use(backend)
    torch_shim.TestDistributed.setUpClass()
    with contextlib.suppress(EOFError):
        while True:
            name = parent.recv()
            results = Results()
            begin = time.monotonic()
            torch_shim.TestDistributed(name).run(results)
            seconds = time.monotonic() - begin
            parent.send({"name": name, "outcome": results.outcome, "text": results.text, "seconds": seconds})


class _Run:
    """A run of all given tests with one backend, on several workers. Shows the progress and the time left."""

    def __init__(self, backend: str, ranks: int, jobs: int, names: list[str]) -> None:
        self._backend = backend
        self._title = f"{backend}, {ranks} ranks"
        self._waiting = sorted(names, reverse=True)
        self._total = len(names)
        self._begin = self._shown = time.monotonic()
        self._workers: dict[Connection, tuple[Any, str]] = {}
        self.outcomes: dict[str, dict] = {}
        for _ in range(min(jobs, len(names))):
            self._start_worker()
        try:
            while self._workers:
                self._serve_workers()
        finally:
            for process, _ in self._workers.values():
                process.terminate()
        self.seconds = time.monotonic() - self._begin

    def passed(self) -> list[str]:
        return sorted(name for name, report in self.outcomes.items() if report["outcome"] == PASSED)

    def _start_worker(self) -> None:
        ours, theirs = _fork.Pipe()
        process = _fork.Process(target=_work, args=(self._backend, theirs))
        process.start()
        theirs.close()
        self._give_test(ours, process)

    def _give_test(self, connection: Connection, process: Any) -> None:
        if self._waiting:
            name = self._waiting.pop()
            self._workers[connection] = (process, name)
            connection.send(name)
            return
        self._workers.pop(connection, None)
        process.terminate()
        process.join()

    def _serve_workers(self) -> None:
        sentinels = {process.sentinel: connection for connection, (process, _) in self._workers.items()}
        for ready in wait([*self._workers, *sentinels]):
            connection = sentinels.get(ready, ready)
            if connection not in self._workers:
                continue  # the report of this worker was handled before
            process, name = self._workers[connection]
            report = _receive(connection)
            if report is not None:
                self._note(report)
                self._give_test(connection, process)
            else:
                self._note({"name": name, "outcome": "failed", "text": "the test ended its worker", "seconds": 0.0})
                del self._workers[connection]
                if self._waiting:
                    self._start_worker()

    def _note(self, report: dict) -> None:
        self.outcomes[report["name"]] = report
        now, done = time.monotonic(), len(self.outcomes)
        if now - self._shown < _PROGRESS_S and done < self._total:
            return
        self._shown = now
        left = (now - self._begin) / done * (self._total - done)
        print(f"{self._title}: {done} of {self._total} tests, about {left:.0f} s left", flush=True)


def _receive(connection: Connection) -> dict | None:
    """Receives a result from a worker. Returns None if the worker has ended."""
    try:
        return connection.recv() if connection.poll() else None
    except (EOFError, OSError):
        return None


def _show(outcomes: dict[str, dict], names: list[str]) -> None:
    for name in names:
        report = outcomes[name]
        print(f"--- {name}: {report['outcome']} after {report['seconds']:.1f} s\n{report['text']}")


def _exceptions(names: list[str]) -> list[str]:
    """Returns the tests that need not pass with `atp` in this version of PyTorch."""
    import torch

    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return [name for name in names if _EXCEPTION in name] if release < (2, 14) else []


def compare(ranks: int, jobs: int, names: list[str], verbose: bool) -> bool:
    gloo = _Run("gloo", ranks, jobs, names)
    if verbose:
        _show(gloo.outcomes, [name for name, report in gloo.outcomes.items() if report["outcome"] == "failed"])
    expected = gloo.passed()
    exceptions = _exceptions(expected)
    atp = _Run("atp", ranks, jobs, expected)
    missing = sorted(set(expected) - set(atp.passed()))
    excepted = [name for name in missing if name in exceptions]
    failed = [name for name in missing if name not in exceptions]
    _show(atp.outcomes, failed)
    print(
        f"{ranks} ranks: {len(expected)} of {len(names)} tests pass with gloo ({gloo.seconds:.0f} s), {len(atp.passed())} "
        f"of these pass with atp ({atp.seconds:.0f} s); {len(excepted)} of {_EXCEPTION} excepted, {len(failed)} failed"
    )
    return not failed and bool(expected)


def _names(text: str) -> list[str]:
    import torch_shim

    import atp  # noqa: F401  (before the fork: it registers the backend)

    return [name for name in unittest.TestLoader().getTestCaseNames(torch_shim.TestDistributed) if text in name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2, help="ranks of each test, 2 or more [2]")
    parser.add_argument("--jobs", type=int, default=4, help="tests that run at a time, 1 or more [4]")
    parser.add_argument("--match", default="", metavar="TEXT", help="run only tests whose name contains TEXT [all]")
    parser.add_argument("--verbose", action="store_true", help="also show tests that fail with Gloo")
    arguments = parser.parse_args()
    if arguments.ranks < 2 or arguments.jobs < 1:
        parser.error("--ranks must be 2 or more, --jobs 1 or more")
    # PyTorch's files read these variables when they are loaded. CUDA devices are hidden for two reasons: a forked
    # process cannot use CUDA, and PyTorch skips all tests if there are fewer devices than ranks.
    os.environ.update(WORLD_SIZE=str(arguments.ranks), CUDA_VISIBLE_DEVICES="")
    os.environ.update(OMP_NUM_THREADS="1", DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="120")
    names = _names(arguments.match)
    return 0 if compare(arguments.ranks, arguments.jobs, names, arguments.verbose) else 1


if __name__ == "__main__":
    sys.exit(main())
