# SPDX-License-Identifier: Apache-2.0
"""Sums over reports of switches (`atp stats --json`); docs/reference/counters.md lists the counters."""

from __future__ import annotations

# Outcomes of packets with values to add: a switch added the packet, or forwarded it unchanged.
ADDED = ("claimed", "added", "completed", "single")
NOT_ADDED = ("collisions", "bypassed", "late", "misfits")


def total(reports: list[dict], names: tuple[str, ...]) -> int:
    """Packets with these outcomes, on all threads of all switches."""
    return sum(shard["packets"][name] for report in reports for shard in report["shards"] for name in names)


def share_in_network(reports: list[dict]) -> float | None:
    """Share of the packets to be added that switches added; None if there were no such packets."""
    added, not_added = total(reports, ADDED), total(reports, NOT_ADDED)
    return added / (added + not_added) if added + not_added else None


def additions_of_jobs(reports: list[dict]) -> dict[str, list[int]]:
    """By the number of a job: its packets that switches added, and those with values that they forwarded."""
    jobs: dict[str, list[int]] = {}
    for report in reports:
        for entry in (entry for shard in report["shards"] for entry in shard["jobs"]):
            counts = jobs.setdefault(entry["job"], [0, 0])
            for index, names in enumerate((ADDED, NOT_ADDED)):
                counts[index] += sum(entry["packets"][name] for name in names)
    return jobs
