# SPDX-License-Identifier: Apache-2.0
"""tools/try_cuda with tensors on the CPU: its report, what it finds, and how it ends. No device is needed."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PROGRAM = TOOLS / "try_cuda"
sys.path.insert(0, str(TOOLS))
from device_trial import problems  # noqa: E402
from device_trial.trace import observed_in  # noqa: E402

PACKAGE = Path(importlib.util.find_spec("atp").origin).parent
SMALL = ("--device", "cpu", "--small")


def run(*arguments, **environment):
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A run of all parts with a wheel: what it printed, and the file that it wrote."""
    folder = tmp_path_factory.mktemp("complete")
    wheel = folder / "atpnet-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(PACKAGE.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, Path("atp", path.relative_to(PACKAGE)))
        archive.write(PACKAGE.parent / "atp_autoload.py", "atp_autoload.py")
    done = run(*SMALL, "--json", folder / "found.json", wheel)
    assert done.returncode == 0, done.stdout + done.stderr
    return done, folder / "found.json"


def test_report_and_file_have_all_parts(complete):
    done, file = complete
    titles = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert titles == [
        "# CUDA, tried on a processor: this is no result about a device",
        "## Problems",
        "## Bits beside the CPU's",
        "## Order on streams",
        "## Conversion",
        "## Times beside Gloo",
        "## Tests",
    ]
    assert "Not measured" not in done.stdout and "not measured" not in done.stdout
    assert '<!-- provenance: {"revision":' in done.stdout and "| package | atpnet-0-py3-none-any.whl" in done.stdout
    assert "s left] bits: 2 ranks" in done.stderr and "s left] times: 4 ranks" in done.stderr
    results = json.loads(file.read_text())
    assert results["problems"] == results["missing"] == []
    assert {(row["part"], row["ranks"]) for row in results["steps"]} == {
        ("start", 2),
        *((part, ranks) for part in ("bits", "order", "conversion", "times") for ranks in (2, 4)),
    }
    assert results["tests"]["tests"]


def test_hash_that_differs_from_an_earlier_run_is_found(complete, tmp_path):
    results = json.loads(complete[1].read_text())
    row = next(row for row in results["steps"] if row["part"] == "bits" and row["case"] == "actual")
    row["values"][0]["float16 AVG 1000"] = "0" * 64
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(results))
    done = run(*SMALL, "--only", "bits", "--ranks", 2, "--compare", earlier, PACKAGE.parent)
    assert done.returncode == 1, done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if line.startswith("- ")]
    assert found == [f"- bits differ from the earlier run's: float16 AVG 1000, {problems.setting_of(row)}"]
    assert done.stdout.count("Not measured.") == 4


def change_bits_of_the_device(results):
    row = next(row for row in results["steps"] if row["case"] == "actual")
    for values in row["values"]:
        values["int64 SUM 1"] = "0"


def change_bits_of_one_rank(results):
    next(row for row in results["steps"] if row["case"] == "expected")["values"][1]["int64 SUM 1"] = "0"


def change_order(results):
    next(row for row in results["steps"] if row["part"] == "order")["values"][1]["right"] = False


def change_times(results):
    next(row for row in results["steps"] if row["part"] == "times")["values"][0]["4 KB"]["right"] = False


def change_tests(results):
    results["tests"]["tests"][0]["outcome"] = "failure"


def change_step(results):
    row = next(row for row in results["steps"] if row["part"] == "conversion")
    del row["values"]
    row["error"] = "rank 1 ended with exit status -9"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (change_bits_of_the_device, "bits differ from the CPU's: int64 SUM"),
        (change_bits_of_one_rank, "bits differ between ranks: int64 SUM 1"),
        (change_order, "order, 2 ranks, dynamic scaling, in memory, no kernel: rank 1 has"),
        (change_times, "times, 2 ranks, dynamic scaling, in memory, 4 KB: a sum is wrong"),
        (change_tests, "tests: test_"),
        (change_step, "conversion, 2 ranks, dynamic scaling, in memory, float32: rank 1 ended"),
    ],
)
def test_each_kind_of_wrong_result_is_found(complete, change, problem):
    results = json.loads(complete[1].read_text())
    change(results)
    found = problems.found_in(results, "cpu")
    assert len(found) == 1 and found[0].startswith(problem), found


def test_skipped_test_is_a_problem_on_a_device(complete):
    results = json.loads(complete[1].read_text())
    assert len(problems.found_in(results, "cuda")) == len(results["tests"]["tests"])


def test_machine_without_device_is_skipped_with_the_reason():
    done = run(PACKAGE.parent, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 77
    assert "no device: torch " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["missing.whl"], "missing.whl is no wheel"),
        ([TOOLS], "has no package atp"),
        (["--ranks", "0", PACKAGE.parent], "above 0"),
        (["--json", "missing/found.json", PACKAGE.parent], "its folder does not exist"),
        (["--compare", PROGRAM, PACKAGE.parent], "name a file that --json wrote"),
    ],
)
def test_wrong_arguments_are_named(arguments, text):
    done = run(*arguments)
    assert (done.returncode, text in done.stderr) == (2, True), done.stderr


def processes_of_session(session):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


def test_ctrl_c_ends_every_rank():
    command = [sys.executable, str(PROGRAM), *SMALL, "--ranks", "2", "--only", "order", str(PACKAGE.parent)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert any("] order:" in line for line in process.stderr), "no step began"
        os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "order: did not run to its end" in printed
        deadline = time.monotonic() + 30
        while rest := processes_of_session(process.pid):
            assert time.monotonic() < deadline, f"still running: {rest}"
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()


def test_trace_of_the_profiler_names_kernels_and_copies():
    name = "void atp::staging::cuda::(anonymous namespace)::load_integers_kernel<atp::F32>(float const*, unsigned long)"
    copies = [("Memcpy DtoH (Device -> Pinned)", 400), ("Memcpy HtoD (Pinned -> Device)", 100)]
    events = [{"ph": "X", "cat": "kernel", "name": name}, {"ph": "X", "cat": "cpu_op", "name": "aten::abs"}]
    events += [{"cat": "gpu_memcpy", "name": copy, "args": {"bytes": count}} for copy, count in copies]
    observed = observed_in({"traceEvents": events})
    assert observed.kernels == ["1 atp::staging::cuda::load_integers_kernel"]
    assert (observed.to_host, observed.to_device, observed.why_not) == (400, 100, "")
    assert observed_in({}).why_not == "the profiler saw no kernel"


TESTS = """import pytest

@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(("left", "right"), [(1, 1), (1, 2)], ids=["equal", "other"])
def test_equal(number, left, right, record_property):
    record_property("number", number)
    assert left == right

@pytest.mark.skipif(True, reason="never")
def test_never():
    assert False
"""


def test_runner_without_pytest_runs_every_case(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": str(TOOLS / "device_trial/without_pytest")}
    command = [sys.executable, "-m", "pytest", "-v", f"--junitxml={tmp_path}/found.xml", str(tmp_path / "test_it.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    cases = ElementTree.parse(tmp_path / "found.xml").getroot().findall("testcase")
    outcomes = {case.get("name"): next((child.tag for child in case), "passed") for case in cases}
    assert outcomes == {
        "test_equal[equal-1]": "passed",
        "test_equal[equal-2]": "passed",
        "test_equal[other-1]": "failure",
        "test_equal[other-2]": "failure",
        "test_never": "skipped",
    }
