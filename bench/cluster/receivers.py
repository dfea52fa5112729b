# SPDX-License-Identifier: Apache-2.0
"""Kernel threads that take in what arrives at network devices (threaded NAPI), and the processor time they take."""

import os

PREFIX = "napi/"


def threads():
    """All of this machine: {pid: name of its device, as far as the kernel writes it}."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        name = _name_of(pid)
        if name.startswith(PREFIX):
            found[int(pid)] = name.removeprefix(PREFIX).rpartition("-")[0]
    return found


def cpu_seconds(pids):
    """Of threads that are still there."""
    return sum(_ticks_of(pid) for pid in pids) / os.sysconf("SC_CLK_TCK")


def _name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has just ended


def _ticks_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])  # in user mode, and in the kernel
