# SPDX-License-Identifier: Apache-2.0
"""Programs that serve HTTP to a test: `atp switch --http` and `atp metrics`."""

from __future__ import annotations

import http.client
import re
import subprocess
import time

DEADLINE_S = 20


class Serving:
    """A program that prints where it serves, until the `with` block ends."""

    def __init__(self, *words: object) -> None:
        self._words = [str(word) for word in words]

    def __enter__(self) -> Serving:
        self._process = subprocess.Popen(self._words, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.text = ""
        for line in self._process.stdout:
            self.text += line
            found = re.search(r"http://([^/]+)/", line)
            if found:
                self.http = found[1]
            if re.match(r"watch it|metrics at", line):
                return self
        raise AssertionError(f"{self._words}: {self.text}")

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._process.terminate()
        if self._process.wait(DEADLINE_S) != 0:
            raise AssertionError(f"{self._words} ended with {self._process.returncode}")
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def address(self) -> str:
        found = re.search(r"atp switch at (\S+)", self.text)
        assert found is not None
        return found[1]

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        return get(self.http, path, **headers)


def get(host: str, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, timeout=DEADLINE_S)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def wait_until(condition, what: str, seconds: float = DEADLINE_S):
    """What `condition` returns as soon as that is true."""
    end = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
