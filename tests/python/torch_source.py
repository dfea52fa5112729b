# SPDX-License-Identifier: Apache-2.0
"""Runs tests of PyTorch's source with Gloo and with the backend `atp`, and compares.

The wheel of PyTorch lacks the tests of FSDP, ZeRO and DTensor. They are in the folder test/distributed of PyTorch's
source, best of the installed release. Each test that passes with Gloo must pass with `atp`. Tests that need CUDA devices
skip with both, because the devices are hidden. With --on-cpu, they run on processors; those that cannot fail with Gloo,
and are not compared. A test that forms no group, or only groups of threads, says nothing about a backend: the report
counts the groups of processes that `atp` formed.

Exit status: 0 each test that passes with Gloo passes with `atp`, 1 a test fails or none ran, 2 bad arguments.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import types
import unittest
from collections.abc import Iterator
from typing import Any

from torch_results import PASSED, Results


def _use(backend: str, log: str) -> None:
    """Replaces the backend Gloo by another one in all groups that the tests form, and notes each group in the log."""
    import torch.distributed as dist
    from torch.distributed import device_mesh, distributed_c10d

    import atp  # noqa: F401  registers the backend

    def instead(function: Any, place: int) -> Any:
        @functools.wraps(function)
        def form(*arguments: Any, **options: Any) -> Any:
            if len(arguments) > place:
                before, given, after = arguments[:place], arguments[place], arguments[place + 1 :]
                arguments = (*before, _renamed(given, backend), *after)
            else:
                options["backend"] = _renamed(options.get("backend"), backend)
            result = function(*arguments, **options)
            with open(log, "a") as file:
                file.write(f"{dist.get_backend()}\n")
            return result

        return form

    for name, place in (("init_process_group", 0), ("new_group", 2)):
        form = instead(getattr(distributed_c10d, name), place)
        for module in (dist, distributed_c10d, device_mesh):
            if hasattr(module, name):
                setattr(module, name, form)


def _renamed(backend: Any, name: str) -> Any:
    return backend if backend is None else str(backend).replace("gloo", name)


def _fork_ranks() -> None:
    """Forks the ranks of a test: this process has no other thread. PyTorch would load all modules again in each rank."""
    import torch.multiprocessing
    from torch.testing._internal import common_distributed

    def spawn(case: Any) -> None:
        case._start_processes(torch.multiprocessing.get_context("fork").Process)

    common_distributed.MultiProcessTestCase._spawn_processes = spawn


def _use_cpu(ranks: int) -> None:
    """Tests of CUDA devices run with this number of ranks although there is no device."""
    import torch
    from torch.testing._internal import common_distributed, common_utils

    torch.accelerator.device_count = lambda: ranks
    torch.cpu._sleep = lambda cycles: time.sleep(cycles / 1000)
    common_utils.get_cycles_per_ms = lambda: 1
    common_distributed.skip_if_lt_x_gpu = lambda _count, **_options: lambda function: function
    common_distributed.requires_nccl = lambda: lambda function: function

    from torch.testing._internal import common_fsdp  # imports names of the modules above

    common_fsdp.DEVICE_COUNT = ranks
    _let_fsdp_use_cpu()
    if not hasattr(common_fsdp, "test_compiled_fsdp"):  # PyTorch 2.13 lacks what the tests of PyTorch 2.6 import
        common_fsdp.test_compiled_fsdp = lambda **_options: lambda function: function


def _let_fsdp_use_cpu() -> None:
    """FSDP1 takes modules on processors only if `device_id` names them."""
    from torch.distributed.fsdp import fully_sharded_data_parallel as fsdp1

    choose = fsdp1._init_device_handle

    fsdp1._init_device_handle = lambda state, module, ignored, _device_id: choose(state, module, ignored, "cpu")


def _for_cpu(source: str, ranks: int) -> str:
    """The text of a test of CUDA devices, with processors instead of devices. No line moves."""
    return "\n".join(
        line if re.match(r"\s*(import|from)\b", line) else _line_for_cpu(line, ranks) for line in source.split("\n")
    )


def _line_for_cpu(line: str, ranks: int) -> str:
    line = re.sub(r"torch\.(cuda|accelerator)\.device_count\(\)", str(ranks), line)
    line = re.sub(r"torch\.device\(\"cuda\", [^()]*(\(\))?\)", 'torch.device("cpu")', line)
    line = re.sub(r"torch\.(cuda|accelerator)\.current_device\(\)", "'cpu'", line)
    line = re.sub(r"(\bdevice_ids=|\"device_ids\": )\[[^][]*\]", r"\1None", line)
    line = line.replace("torch.cuda.manual_seed", "torch.manual_seed")
    line = re.sub(r"\btorch\.cuda\.(?=\w)", "torch.cpu.", line)
    line = re.sub(r"\.cuda\([^()]*\)", ".cpu()", line)
    line = re.sub(r"(?<!\w)f?\"cuda(:(\d+|\{[^}]*\}))?\"", '"cpu"', line)
    return line.replace('"nccl"', '"gloo"')


def _cases(suite: Any) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _cases(each)
        else:
            yield each


def _load(path: str, cpu_ranks: int) -> types.ModuleType:
    name = os.path.splitext(os.path.basename(path))[0]
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    with open(path) as file:
        source = file.read()
    if cpu_ranks:
        _use_cpu(cpu_ranks)
        source = _for_cpu(source, cpu_ranks)
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def _work(backend: str, path: str, log: str, cpu_ranks: int, names: list[str] | None) -> int:
    """The main of the process that runs one file with one backend. Prints a line for each test on standard output."""
    output = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nowhere:  # hides the output of tests; a failed test raises an exception
        os.dup2(nowhere.fileno(), 1)
    _fork_ranks()
    if backend != "gloo":
        _use(backend, log)
    sys.path[:0] = [os.path.dirname(path), *_folders_above(path)]
    for case in _cases(unittest.TestLoader().loadTestsFromModule(_load(path, cpu_ranks))):
        if names is None or case.id() in names:
            results = Results()
            unittest.TestSuite([case]).run(results)
            print(json.dumps({"name": case.id(), "outcome": results.outcome, "text": results.text}), file=output)
            output.flush()
    return 0


def _folders_above(path: str) -> list[str]:
    """Some tests import files of the folder `test`, by their place in it."""
    folders, folder = [], os.path.dirname(path)
    while os.path.basename(folder) not in ("test", ""):
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def _run(backend: str, path: str, log: str, options: argparse.Namespace, names: list[str] | None) -> dict[str, dict]:
    """The results of the tests of a file, by name. Those of tests after the timeout are missing."""
    work = ["--work", backend, path, log, str(options.on_cpu)]
    command = [sys.executable, "-W", "ignore", os.path.abspath(__file__), *work]
    environment = dict(
        os.environ, CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="120"
    )
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env=environment,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(json.dumps(names), timeout=options.timeout)
            if process.returncode != 0:
                complaints.seek(0)
                print(f"--- {path} with {backend}: the process ended with {process.returncode}\n{complaints.read()}")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            print(f"--- {path} with {backend}: not all tests ended in {options.timeout:.0f} s")
        except BaseException:
            os.killpg(process.pid, 9)
            raise
    reports = [json.loads(line) for line in output.splitlines()]
    return {report["name"]: report for report in reports}


def _compare(path: str, options: argparse.Namespace) -> tuple[int, int, list[str], int]:
    """How many tests ran with Gloo and passed, the reports of those that fail with `atp`, and the groups of ranks."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "groups")
        gloo = _run("gloo", path, log, options, None)
        expected = [name for name, report in gloo.items() if report["outcome"] == PASSED]
        atp = _run("atp", path, log, options, expected) if expected else {}
        with open(log, "a+") as file:
            file.seek(0)
            formed = file.read().split().count("atp")
    missing = {"outcome": "not run", "text": "the process of the tests ended, or the timeout passed"}
    wrong = [(name, atp.get(name, missing)) for name in expected]
    failed = [f"{name}: {report['outcome']}\n{report['text']}" for name, report in wrong if report["outcome"] != PASSED]
    return len(gloo), len(expected), failed, formed


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        backend, path, log, cpu_ranks = sys.argv[2:6]
        return _work(backend, path, log, int(cpu_ranks), json.load(sys.stdin))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="test files in test/distributed of PyTorch's source")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="longest run of a file [600]")
    parser.add_argument(
        "--on-cpu",
        type=int,
        default=0,
        metavar="RANKS",
        help="run tests of CUDA devices on processors, with RANKS ranks [0: they skip]",
    )
    arguments = parser.parse_args()
    if arguments.on_cpu < 0 or arguments.on_cpu == 1:
        parser.error("--on-cpu: use at least 2 ranks")
    for path in arguments.files:
        if not os.path.isfile(path):
            parser.error(f"there is no file {path}")
    total = failures = 0
    for path in arguments.files:
        ran, passed, failed, formed = _compare(os.path.abspath(path), arguments)
        total, failures = total + passed, failures + len(failed)
        print("".join(f"--- {text}\n" for text in failed), end="")
        print(
            f"{path}: {passed} of {ran} pass with gloo, {passed - len(failed)} of these with atp; {formed} times a rank "
            "joined a group of atp",
            flush=True,
        )
    print(f"{total} tests pass with gloo, {total - failures} of these pass with atp, {failures} fail")
    return 0 if total and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
