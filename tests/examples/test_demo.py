# SPDX-License-Identifier: Apache-2.0
"""Tests ./demo.sh, and tools/train_demo.py, which demo.sh runs at its end, with any build folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launch import DEADLINE_S, ROOT

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


def demo_command(folder: Path, *arguments: object) -> list[str]:
    built = ["--program", os.environ["ATP_PROGRAM"], "--package", os.environ["PYTHONPATH"], "--folder", folder]
    return [sys.executable, *map(str, [ROOT / "tools/train_demo.py", *built, "--workers", 2, *arguments])]


def processes_below(pid: int) -> list[int]:
    """The process ids of all descendants."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def test_all_trainings_are_compared_in_text_and_a_picture(tmp_path):
    file = tmp_path / "figures.json"
    command = demo_command(tmp_path, "--epochs", 2, "--json", file)
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(file.read_text())
    assert 0.9 < figures["share_summed_in_network"] <= 1
    for training in figures["trainings"].values():
        assert training["identical"]
        assert training["losses"][-1] < 0.5 * training["losses"][0]
        assert training["accuracy"] > 0.6
    first = [training["losses"][0] for training in figures["trainings"].values()]
    assert first[0] == pytest.approx(first[1], rel=1e-5)
    assert figures["trainings"]["atp"]["losses"] == figures["trainings"]["switch"]["losses"]
    assert first[2] == pytest.approx(first[1], rel=1e-5)
    assert done.stdout.count("identical bit for bit") == 3
    assert not {character for character in done.stdout if ord(character) < 32} - {"\n"}
    picture = Path(figures["picture"])
    assert str(picture) in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_interrupt_ends_every_started_process(tmp_path):
    command = demo_command(tmp_path, "--epochs", 10_000)
    demo = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        log = tmp_path / "switch.log"
        wait_until(lambda: log.exists() and "epoch 1 of" in log.read_text(), "training did not begin")
        started = processes_below(demo.pid)
        assert len(started) >= 4, "a switch, torchrun and two ranks"
        demo.send_signal(signal.SIGINT)
        _, complaints = demo.communicate(timeout=DEADLINE_S)
    finally:
        demo.terminate()
    assert demo.returncode == 128 + signal.SIGINT
    assert complaints == b"\nstopped\n"
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), f"some of {started} are left")


def test_failed_switch_is_reported_with_its_last_output(tmp_path):
    impostor = tmp_path / "atp"
    impostor.write_text("#!/bin/sh\necho the port is taken >&2\nexit 1\n")
    impostor.chmod(0o755)
    command = demo_command(tmp_path, "--program", impostor)
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1
    assert "the switch did not start" in done.stderr
    assert done.stderr.endswith("the port is taken\n")


def test_failed_training_is_reported_with_its_last_output(tmp_path):
    command = demo_command(tmp_path, "--package", tmp_path, "--workers", 1)
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1
    assert "training with atp failed" in done.stderr
    assert "No module named 'atp'" in done.stderr
    assert "torch.distributed.elastic" not in done.stderr


def test_results_that_cannot_be_written_are_reported_before_the_training(tmp_path):
    command = demo_command(tmp_path, "--json", tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"\n[Errno 21] Is a directory: '{tmp_path}'\n"


@pytest.mark.parametrize(
    "arguments", [["--wrong"], ["--json"], ["--json", "/nowhere/at/all.json"], ["simulate", "more"]]
)
def test_wrong_flags_are_refused_before_any_step(arguments):
    done = subprocess.run([ROOT / "demo.sh", *arguments], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 2
    assert "usage: ./demo.sh" in done.stderr
    assert done.stdout == ""


def test_help_exits_with_status_0():
    done = subprocess.run([ROOT / "demo.sh", "--help"], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0
    assert "usage: ./demo.sh" in done.stdout
