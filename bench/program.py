# SPDX-License-Identifier: Apache-2.0
"""The frame of the programs below this folder: signals, errors and exit statuses."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
FAILURES = (OSError, RuntimeError, ValueError, subprocess.SubprocessError)


def execute(name: str, run: Callable[[], int], statuses: Mapping[type[Exception], int] | None = None) -> int:
    """Calls `run` and returns the exit status of the program. A signal that ends a program raises KeyboardInterrupt in
    `run`, so that its `with` blocks end what they started. An error becomes one text on standard error. `statuses`
    gives the exit statuses of further exceptions. If standard output cannot be written, that is an error, too."""
    unwind_on_signals()
    try:
        status = run()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        status = EXIT_INTERRUPTED
    except tuple(statuses or ()) as error:
        status = next(found for kind, found in (statuses or {}).items() if isinstance(error, kind))
        print(f"{name}: {error}", file=sys.stderr)
    except FAILURES as error:
        print(f"{name}: {error}", file=sys.stderr)
        status = EXIT_FAILED
    _discard_unwritten_output()
    return status


def unwind_on_signals() -> None:
    """Makes signals that end a program raise KeyboardInterrupt, except signals ignored at the start (nohup)."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _discard_unwritten_output() -> None:
    """Python writes the rest of standard output at its end. If that fails, it prints a second error and changes the exit
    status."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
