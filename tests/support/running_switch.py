# SPDX-License-Identifier: Apache-2.0
"""`atp switch` as a process of a test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time

DEADLINE_S = 20


class Switch:
    """The process, at a port of its own, and the lines of its output and log."""

    def __init__(self, atp: str, *flags: object, environment: dict[str, str] | None = None,
                 listen: str = "127.0.0.1:0") -> None:  # fmt: skip
        words = [atp, "switch", "--listen", listen, "--memory", "1MB", "--lanes", "64"]
        words += ["--server-memory", "64MB", "--confine", "kill"]
        self.process = subprocess.Popen([*words, *map(str, flags)], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment)  # fmt: skip
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._readers = [threading.Thread(target=self._read, args=(stream,), daemon=True)
                         for stream in (self.process.stdout, self.process.stderr)]  # fmt: skip
        for reader in self._readers:
            reader.start()

    def _read(self, stream) -> None:
        for line in stream:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()

    def line(self, pattern: str) -> str:
        """The first line with this pattern that was not read before, of either stream."""
        with self._changed:
            end = time.monotonic() + DEADLINE_S
            while True:
                for at, line in enumerate(self._lines):
                    if re.search(pattern, line):
                        return self._lines.pop(at)
                if not self._changed.wait(end - time.monotonic()):
                    raise AssertionError(f"no line with {pattern!r} in {self._lines}")

    def address(self) -> str:
        found = re.search(r"127\.0\.0\.1:\d+", self.line("atp switch at"))
        assert found is not None
        return found[0]

    def wait(self) -> int:
        """Returns the status at once when the process ends; Popen.wait() looks only every 50 ms."""
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        return self.process.wait()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(DEADLINE_S)
        for reader in self._readers:
            reader.join(DEADLINE_S)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        return status
