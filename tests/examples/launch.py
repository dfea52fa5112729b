# SPDX-License-Identifier: Apache-2.0
"""Runs an example on two ranks with the command of its docstring, and returns its output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE_S = 150.0
# Time that torchrun has to end: it first ends its ranks.
ENDING_DEADLINE_S = 40.0


def run_example(name: str, *arguments: object, launcher: tuple[str, ...] = (), **variables: str) -> str:
    """Returns the output of rank 0. If a rank fails, the test fails. `variables`: of the environment."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *launcher]
    process = subprocess.Popen(
        [*torchrun, ROOT / "examples" / name, *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ATP_TIMEOUT": "60", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, complaints = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, complaints = process.communicate(timeout=ENDING_DEADLINE_S)
    assert process.returncode == 0, f"{name} ended with {process.returncode}:\n{output}\n{complaints}"
    return output


def losses_in(output: str) -> list[float]:
    return [float(text) for text in re.findall(r"loss (\d+\.\d+)", output)]


def weights_in(output: str) -> str:
    """The hash of the weights. The test fails if the weights differ between ranks."""
    found = re.search(r"weights of 2 ranks identical bit for bit \((\w+)\)", output)
    assert found, output
    return found[1]
