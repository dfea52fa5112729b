# SPDX-License-Identifier: Apache-2.0
"""The report of a trial as a page of docs/results."""

from __future__ import annotations

import hashlib
import statistics
from typing import Any

import provenance
from device_trial.plan import OPERATIONS
from device_trial.problems import cells_of, of_part

KERNEL = "load_integers_kernel"


def text_of(results: dict[str, Any]) -> str:
    parts = [_head(results), _outcome(results), _bits(results), _order(results), _conversion(results), _times(results),
             _tests(results)]  # fmt: skip
    return "\n".join(parts)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def _section(title: str, text: str, rows: list[list[str]], head: list[str]) -> str:
    return f"## {title}\n\n" + (f"{text}\n\n{_table(head, rows)}" if rows else "Not measured.\n")


def _head(results: dict[str, Any]) -> str:
    machine, recorded = results["machine"], results["provenance"]
    title = "CUDA" if results["device"] == "cuda" else "CUDA, tried on a processor: this is no result about a device"
    facts = [[name, str(value)] for name, value in machine.items()]
    return (
        f"# {title}\n\n{provenance.line(recorded)}\n\n"
        "With this page you can see what was tried with tensors of a CUDA device, and how long it took.\n\n"
        f"Written by `{results['command']}`. {provenance.sentence(recorded)} The revision is "
        f"of that program. All ranks run on one machine and share its devices. The run took {results['seconds']:.0f} s.\n\n{_table(['what', 'value'], facts)}"
    )


def _outcome(results: dict[str, Any]) -> str:
    problems = results["problems"]
    text = "".join(f"- {problem}\n" for problem in problems) or "Everything that ran is right.\n"
    return f"## Problems\n\n{text}"


def _bits(results: dict[str, Any]) -> str:
    cells = cells_of(results["steps"])
    types = list(dict.fromkeys(key.split(" ")[0] for key in cells))
    rows = [[dtype, *(_cell(cells.get(f"{dtype} {operation}")) for operation in OPERATIONS)] for dtype in types]
    settings = len({(row["ranks"], row["path"], row["scaling"]) for row in of_part(results["steps"], "bits")})
    sizes = next((row["arguments"]["sizes"] for row in of_part(results["steps"], "bits")), [])
    text = (
        "All-reduces of the device's tensors, and of the same numbers on the CPU. A cell is the hash of all results of "
        f"the device: {len(sizes)} sizes ({', '.join(f'{size:,}' for size in sizes)} elements) in {settings} settings of "
        "ranks, scaling and path. It has \u2260 if a result differs from the CPU's. *Refused*: both raise an exception."
    )
    return _section("Bits beside the CPU's", text, rows, ["type", *OPERATIONS])


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "not measured"
    if cell["differing"]:
        return f"\u2260 in {len(cell['differing'])} of {len(cell['hashes'])}"
    if all(value.startswith("refused") for value in cell["hashes"]):
        return "refused"
    return f"`{hashlib.sha256(' '.join(cell['hashes']).encode()).hexdigest()[:8]}`"


def _order(results: dict[str, Any]) -> str:
    rows = []
    for row in of_part(results["steps"], "order"):
        slowest = max(row["values"], key=lambda value: value["call_ms"] + value["wait_ms"])
        busy = row["arguments"]["busy_ms"]
        rows.append([
            str(row["ranks"]), row["scaling"], row["case"], f"{busy:.0f}", f"{slowest['call_ms']:.1f}",
            _while_kernel(slowest["runs_after_call"], busy), f"{slowest['wait_ms']:.1f}",
            _while_kernel(slowest["runs_after_wait"], busy),
            "yes" if all(value["right"] for value in row["values"]) else "**no**",
        ])  # fmt: skip
    text = (
        "A long kernel ends by writing a tensor, whose all-reduce follows with `async_op=True`. Times are of the rank "
        "that waits longest. Where `wait()` returns while the kernel still runs, it lets a stream wait; otherwise it "
        "blocks the CPU for the time in its column. The sum, and that of a later write, must be right."
    )
    head = ["ranks", "scaling", "case", "kernel, about ms", "call ms", "call returns while the kernel runs", "wait() ms",
            "wait() returns while the kernel runs", "right"]  # fmt: skip
    return _section("Order on streams", text, rows, head)


def _while_kernel(runs: bool, busy_ms: float) -> str:
    if not busy_ms:
        return "\u2013"
    return "yes" if runs else "no"


def _conversion(results: dict[str, Any]) -> str:
    rows = []
    for row in of_part(results["steps"], "conversion"):
        seen = row["values"][0]
        slowest = max(value["ms"] for value in row["values"])
        copied = "\u2013" if seen["why_not"] else f"{seen['to_host'] / 1e6:.1f}, {seen['to_device'] / 1e6:.1f}"
        size = row["arguments"]["count"] * (4 if row["case"] == "float32" else 2) / 1e6
        rows.append([str(row["ranks"]), row["path"], row["scaling"], row["case"], f"{size:.1f}", _converter(seen), copied,
                     f"{slowest:.2f}"])  # fmt: skip
    kernels = "has" if results["has_kernels"] else "was built without nvcc and lacks"
    text = (
        f"Who converts floats to integers and back: the device if the profiler sees `{KERNEL}`, otherwise the CPU. This "
        f"package {kernels} the kernels for it. Times are medians of the slowest rank."
    )
    head = ["ranks", "path", "scaling", "type", "MB", "converts", "MB copied to the host, to the device", "ms"]
    return _section("Conversion", text, rows, head)


def _converter(seen: dict[str, Any]) -> str:
    if seen["why_not"]:
        return f"not observed: {seen['why_not']}"
    return "device" if any(KERNEL in name for name in seen["kernels"]) else "CPU"


def _times(results: dict[str, Any]) -> str:
    rows = []
    for row in of_part(results["steps"], "times"):
        for size, measured in row["values"][0].items():
            rows.append([str(row["ranks"]), row["path"], size, *_times_cells(measured)])
    text = (
        "All-reduces of float32 of the device, `atp` and Gloo in turns: medians of the rounds, of the slowest rank. "
        "Above 1, `atp` is faster."
    )
    head = ["ranks", "path of `atp`", "size", "`atp` ms", "Gloo ms", "Gloo \u00f7 `atp`", "rounds"]
    return _section("Times beside Gloo", text, rows, head)


def _times_cells(measured: dict[str, Any]) -> list[str]:
    medians = {name: statistics.median(values) for name, values in measured["ms"].items() if values}
    cells = [f"{medians[name]:.3f}" if name in medians else measured["refused"].get(name, "not measured")
             for name in ("atp", "gloo")]  # fmt: skip
    ratio = f"{medians['gloo'] / medians['atp']:.2f}" if len(medians) == 2 else "\u2013"
    return [*cells, ratio, str(min((len(values) for values in measured["ms"].values() if values), default=0))]


def _tests(results: dict[str, Any]) -> str:
    tests = results.get("tests") or {"runner": "", "tests": []}
    rows = [[f"`{test['name']}`", test["outcome"], f"{test['seconds']:.1f}", test["text"]] for test in tests["tests"]]
    text = f"`tests/python/test_cuda.py`, run by {tests['runner']}."
    return _section("Tests", text, rows, ["test", "outcome", "s", ""])
