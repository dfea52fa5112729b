# SPDX-License-Identifier: Apache-2.0
"""Frameworks train with the backend as they do with Gloo: 20 steps on two ranks, with equal losses.

The scripts run in an environment of their own, build/frameworks, which has the packages of the requirements files of this
folder. The scripts never import atp. Those that take the name of a backend differ in it, and the others run twice without
a difference, once with ATP_AS=gloo.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
ENVIRONMENT = FOLDER.parent.parent / "build" / "frameworks"
PYTHON = ENVIRONMENT / "bin" / "python"
STEPS = 20
DEADLINE_S = 200.0
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")

# ATP rounds each gradient to a multiple of about 2**-30 of its block's sum, Gloo to 24 bits, and 20 steps of these small
# networks hardly amplify that: losses differ in the sixth digit. A gradient that is not averaged, or averaged twice, or
# of one rank only, changes the first or second digit within 20 steps.
TOLERANCE = 1e-4


def have(package: str) -> bool:
    return any(ENVIRONMENT.glob(f"lib/python3*/site-packages/{package}/__init__.py"))


def losses(folder: Path, command: tuple[object, ...], backend: str, **variables: str) -> list[float]:
    """Runs a script. Returns the loss of each step, all of them summed by `backend`."""
    home = ENVIRONMENT / "home"
    home.mkdir(exist_ok=True)
    settings = {
        "HOME": str(home),  # for what frameworks keep, such as a token of Ray
        "HF_HUB_OFFLINE": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # by default 15: its workers would wait for every other program
        "OMP_NUM_THREADS": "1",
        "ATP_TIMEOUT": "60",
    }
    environment = {**os.environ, **settings, **variables}
    finished = subprocess.run(
        [PYTHON, *map(str, command)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    assert finished.returncode == 0, finished.stdout
    found = re.findall(r"step (\d+) loss (\d+\.\d+) backend (\w+)", finished.stdout)
    assert {name for _, _, name in found} == {backend}, finished.stdout
    by_step = {int(step): float(loss) for step, loss, _ in found}  # Ray prints a line twice
    assert len(by_step) == STEPS, finished.stdout
    return [by_step[step] for step in sorted(by_step)]


def compare(folder: Path, package: str, *launcher: str, takes_name: bool) -> None:
    if not have(package):
        pytest.skip(f"build/frameworks lacks {package}: run tests/frameworks/install --all")
    script = FOLDER / f"train_{package}.py"
    if takes_name:
        gloo = losses(folder, (*launcher, script, "gloo"), "gloo")
        atp = losses(folder, (*launcher, script, "atp"), "atp")
    else:
        gloo = losses(folder, (*launcher, script), "gloo")
        atp = losses(folder, (*launcher, script), "atp", ATP_AS="gloo")
    assert gloo[-1] < gloo[0]
    assert atp == pytest.approx(gloo, rel=TOLERANCE)


def test_lightning(tmp_path):
    compare(tmp_path, "lightning", takes_name=True)


def test_accelerate(tmp_path):
    compare(tmp_path, "accelerate", *TORCHRUN, takes_name=False)


def test_transformers(tmp_path):
    compare(tmp_path, "transformers", *TORCHRUN, takes_name=False)


def test_ray(tmp_path):
    compare(tmp_path, "ray", takes_name=True)


def test_deepspeed(tmp_path):
    compare(tmp_path, "deepspeed", *TORCHRUN, takes_name=True)


def test_torchft(tmp_path):
    compare(tmp_path, "torchft", *TORCHRUN, takes_name=True)
