# SPDX-License-Identifier: Apache-2.0
"""What is wrong in the results of a trial, as texts. Nothing: all right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]


def setting_of(row: Row) -> str:
    return f"{row['ranks']} ranks, {row['scaling']} scaling, {row['path']}"


def of_part(rows: list[Row], part: str) -> list[Row]:
    """Rows of a part that have values."""
    return [row for row in rows if row["part"] == part and "values" in row]


def found_in(results: dict[str, Any], device: str) -> list[str]:
    rows = results["steps"]
    found = [f"{row['part']}, {setting_of(row)}, {row['case']}: {row['error'].splitlines()[0]}"
             for row in rows if "error" in row]  # fmt: skip
    found += [f"{part}: did not run to its end" for part in results["missing"]]
    found += _between_ranks(rows)
    found += [f"bits differ from the CPU's: {key}" for key, cell in cells_of(rows).items() if cell["differing"]]
    found += [
        f"order, {setting_of(row)}, {row['case']}: rank {rank} has {value['seen']}"
        for row in of_part(rows, "order")
        for rank, value in enumerate(row["values"])
        if not value["right"]
    ]
    for row in of_part(rows, "times"):
        for size, measured in row["values"][0].items():
            if not measured["right"]:
                found.append(f"times, {setting_of(row)}, {size}: a sum is wrong")
            if "atp" in measured["refused"]:
                found.append(f"times, {setting_of(row)}, {size}: {measured['refused']['atp']}")
    if results.get("tests"):
        found += _in_tests(results["tests"], device)
    return found


def _between_ranks(rows: list[Row]) -> Iterator[str]:
    for row in of_part(rows, "bits"):
        for key, value in row["values"][0].items():
            if any(other[key] != value for other in row["values"]):
                yield f"bits differ between ranks: {key}, {setting_of(row)}, {row['device']}"


def _in_tests(tests: dict[str, Any], device: str) -> Iterator[str]:
    if tests["problem"]:
        yield f"tests: {tests['problem']}"
    for test in tests["tests"]:
        is_wrong = test["outcome"] in ("failure", "error") or (test["outcome"] == "skipped" and device == "cuda")
        if is_wrong:
            yield f"tests: {test['name']}: {test['outcome']}: {test['text']}"


def bits_by_setting(rows: list[Row], role: str) -> dict[str, dict[str, str]]:
    """The results of rank 0 by setting: `role` is `expected` (on the CPU) or `actual` (on the device)."""
    return {setting_of(row): row["values"][0] for row in of_part(rows, "bits") if row["case"] == role}


def cells_of(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """By type and operation: all `hashes` of the device, and the settings and sizes of `differing` ones."""
    expected, actual = bits_by_setting(rows, "expected"), bits_by_setting(rows, "actual")
    cells: dict[str, dict[str, Any]] = {}
    for setting in sorted(actual):
        if setting not in expected:
            continue
        for key, value in actual[setting].items():
            dtype_and_operation, _, count = key.rpartition(" ")
            cell = cells.setdefault(dtype_and_operation, {"hashes": [], "differing": []})
            cell["hashes"].append(value)
            if value != expected[setting].get(key):
                cell["differing"].append(f"{count} elements, {setting}")
    return cells


def beside(rows: list[Row], earlier: list[Row]) -> list[str]:
    """Compares the bits with those of an earlier run, where both have a result."""
    ours, theirs = bits_by_setting(rows, "actual"), bits_by_setting(earlier, "actual")
    shared = [
        (setting, key) for setting in ours if setting in theirs for key in ours[setting] if key in theirs[setting]
    ]
    if not shared:
        return ["the earlier run has no result that this run has"]
    return [
        f"bits differ from the earlier run's: {key}, {setting}"
        for setting, key in shared
        if ours[setting][key] != theirs[setting][key]
    ]
