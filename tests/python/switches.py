# SPDX-License-Identifier: Apache-2.0
"""Runs `atp switch` of the tested build as a process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator

_PATIENCE_S = 20.0


class Switch:
    """A running `atp switch`, on the loopback by default."""

    def __init__(self, *flags: str, listen: str = "127.0.0.1:0", through: tuple[str, ...] = ()) -> None:
        program = "ATP_LAB_COMMAND" if "--loss" in flags else "ATP_COMMAND"  # only the laboratory's program has --loss
        command = [*through, os.environ[program], "switch", "--listen", listen, "--json", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address: str = json.loads(self.process.stdout.readline())["address"]

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def report(self) -> dict:
        """Returns the report of `atp stats`."""
        command = [os.environ["ATP_COMMAND"], "stats", self.address, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE_S)
        return json.loads(done.stdout)


@contextlib.contextmanager
def running_switch(*flags: str, **where) -> Iterator[Switch]:
    switch = Switch(*flags, **where)
    try:
        yield switch
    finally:
        switch.stop()
