# SPDX-License-Identifier: Apache-2.0
"""The logger `atp`: gets the lines that native threads write, in the same words as the log of `atp switch`."""

from __future__ import annotations

import logging
import os
import sys
import threading

from . import _library

logger = logging.getLogger("atp")

# tools/write_events writes the levels and events from src/events.toml.
_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "error": 40, "off": 51}
METRICS_SERVED = "metrics served"
METRICS_UNAVAILABLE = "metrics unavailable"
OPERATION_DELEGATED = "operation delegated"
BACKEND_REPLACED = "backend replaced"
LIBRARY_MISSING = "library missing"
VARIABLE_IGNORED = "variable ignored"
# End of the written part.


class _Process:
    thread: threading.Thread | None = None


def start() -> None:
    """Starts the thread that gives lines to the logger, once in a process."""
    if _Process.thread is not None:
        return
    _configure(os.environ.get("ATP_LOG", ""))
    _Process.thread = threading.Thread(target=_forward, name="atp-log", daemon=True)
    _Process.thread.start()


def stop() -> None:
    """Gives all lines to the logger and ends the thread, before the interpreter ends."""
    _library.close_log_lines()
    if _Process.thread is not None:
        _Process.thread.join()


def _configure(level: str) -> None:
    """With ATP_LOG, the logger has this level, and writes to standard error unless the program has configured it."""
    if level not in _LEVELS:
        return
    logger.setLevel(_LEVELS[level])
    if not logger.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)


def _forward() -> None:
    while True:
        level, line = _library.take_log_line()
        if level == 0:
            return
        logger.log(level, "%s", line)
