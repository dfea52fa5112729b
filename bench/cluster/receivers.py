# SPDX-License-Identifier: Apache-2.0
"""Kernel threads that receive packets of network devices (threaded NAPI), and their processor time."""

import os

PREFIX = "napi/"


def threads():
    """All these threads of this host: {pid: name of the device}. The kernel may cut the name of the device."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        name = _name_of(pid)
        if name.startswith(PREFIX):
            found[int(pid)] = name.removeprefix(PREFIX).rpartition("-")[0]
    return found


def cpu_seconds(pids):
    """Processor time of the threads. All of them must still exist."""
    return sum(_ticks_of(pid) for pid in pids) / os.sysconf("SC_CLK_TCK")


def _name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # the thread has ended


def _ticks_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])  # user and kernel time
