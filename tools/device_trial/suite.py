# SPDX-License-Identifier: Apache-2.0
"""Runs tests/python/test_cuda.py with pytest, or without it with the part of pytest in without_pytest."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

WITHOUT_PYTEST = Path(__file__).resolve().parent / "without_pytest"


def run(test: Path, package: Path, longest_s: float, report: Callable[[str], None]) -> dict[str, Any]:
    """Returns `runner`, `tests` and `problem`, which is empty if all tests ended. Calls `report` with each test."""
    has_pytest = importlib.util.find_spec("pytest") is not None
    paths = [str(package)] if has_pytest else [str(WITHOUT_PYTEST), str(package)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ATP_")}
    environment.update(PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="1", ATP_HOST_LEVEL="on")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        flags = ["-v", "-p", "no:cacheprovider", f"--junitxml={results}"]
        command = [sys.executable, "-m", "pytest", *flags, str(test)]
        problem = _execute(command, environment, longest_s, report)
        tests = _read(results) if results.exists() else []
    if not tests and not problem:
        problem = "no test ran"
    return {"runner": "pytest" if has_pytest else "tools/device_trial/without_pytest", "tests": tests,
            "problem": problem}  # fmt: skip


def _execute(command: list[str], environment: dict, longest_s: float, report: Callable[[str], None]) -> str:
    """Returns an empty text, or why the tests did not end. Ends the tests with all their ranks."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    late = threading.Event()

    def end() -> None:
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(max(longest_s, 1), end)
    timer.start()
    last = ""
    try:
        assert process.stdout is not None
        for line in process.stdout:
            last = line.strip() or last
            if any(word in line for word in ("PASSED", "FAILED", "SKIPPED", "ERROR")) and "::" in line:
                report(line.split("::")[-1].strip())
        status = process.wait()
    finally:
        timer.cancel()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    if late.is_set():
        return f"the tests did not end within {longest_s:.0f} s"
    return "" if status in (0, 1) else f"the tests ended with exit status {status}: {last}"


def _read(results: Path) -> list[dict[str, Any]]:
    tests = []
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        found = {child.tag: child.get("message") or "" for child in case}
        outcome = next((tag for tag in ("failure", "error", "skipped") if tag in found), "passed")
        text = found.get(outcome, "").partition("\n")[0][:200]
        tests.append(
            {"name": case.get("name"), "outcome": outcome, "seconds": float(case.get("time") or 0), "text": text}
        )
    return tests
