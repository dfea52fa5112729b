#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw one figure quickly, and compare how far it is from the paper with deviations.json.

A check that holds passes. Another passes while its value is in its recorded interval, or closer to the paper: a figure
that differs may begin to hold without a change here, but may not get worse. --record widens the intervals by this run,
with a margin of 10 %.

Exit status: 0 as recorded, 1 further away or not drawn, 2 bad arguments, 77 the figure was skipped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("deviations.json")
MARGIN = 0.1
SKIPPED = 77
ROOT = Path(__file__).resolve().parents[3]
# These measure the machine that runs the test: they have to be drawn, with any result. So have all figures on real
# packets.
OF_THIS_MACHINE = ("fig19", "switchml-fig8")


def drawn(program: str, figure: str, seed: str, out: str, real: bool) -> dict[str, Any]:
    command = [program, "figure", figure, "--quick", "--json", "--seed", seed, "--out", out]
    if real:
        command += ["--real", "--kept", f"{out}/{figure}-kept", "--again"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT if real else None)
    if not done.stdout:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr}")
    (only,) = json.loads(done.stdout)
    return dict(only)


def is_further(check: dict[str, Any], interval: list[float] | None) -> bool:
    """Outside the recorded interval, on the side away from what the paper says."""
    value = check["value"]
    if value is None or interval is None:
        return True
    too_low = check["least"] is not None and value < check["least"]
    return bool(value < interval[0] if too_low else value > interval[1])


def widened(value: float, interval: list[float] | None) -> list[float]:
    around = sorted(float(f"{value * factor:.4g}") for factor in (1 - MARGIN, 1 + MARGIN))
    return around if interval is None else [min(around[0], interval[0]), max(around[1], interval[1])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("figure")
    parser.add_argument("seed")
    parser.add_argument("out", help="folder for the picture and its points")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--real", action="store_true", help="draw it on real packets; its checks may have any result")
    options = parser.parse_args()

    result = drawn(options.program, options.figure, options.seed, options.out, options.real)
    if result["verdict"] == "skipped":
        print(result["ours"])
        return SKIPPED
    if options.real or options.figure in OF_THIS_MACHINE:
        numbers = [check["value"] for check in result["checks"]]
        return 0 if any(number is not None for number in numbers) else 1
    everything = json.loads(RECORDED.read_text(encoding="utf-8"))
    recorded = everything.get(options.figure, {})
    status = 0
    for check in result["checks"]:
        if check["verdict"] in ("holds", "not judged"):
            continue
        interval = recorded.get(check["what"])
        print(f"{check['what']}: {check['value']} ({check['expected']}), recorded {interval}")
        if options.record and check["value"] is not None:
            recorded[check["what"]] = widened(check["value"], interval)
        elif is_further(check, interval):
            print("  is further from the paper than recorded: find the cause, or run this test with --record")
            status = 1
    if options.record:
        everything[options.figure] = recorded
        kept = {figure: everything[figure] for figure in sorted(everything) if everything[figure]}
        RECORDED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
