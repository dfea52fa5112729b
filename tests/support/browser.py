# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven by its own protocol for debuggers over two pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any

DEADLINE_S = 60
END_S = 15
NAMES = ("chromium", "chromium-browser", "google-chrome")
# Nothing but the page may use the network.
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe")  # fmt: skip


def program() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A browser with one page, until the `with` block ends. `events` keeps what the page did."""

    def __enter__(self) -> Browser:
        self._folder = tempfile.TemporaryDirectory(prefix="atp-browser-")
        ours, theirs = os.pipe(), os.pipe()  # to the browser, from it
        name = program()
        assert name is not None
        # The browser reads from descriptor 3 and writes to 4.
        script = f'exec "$0" "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        home = {"HOME": self._folder.name, "XDG_RUNTIME_DIR": self._folder.name}
        self._process = subprocess.Popen(["bash", "-c", script, name, *FLAGS, f"--user-data-dir={self._folder.name}/data"],
                                         pass_fds=[ours[0], theirs[1]], env={**os.environ, **home},
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        self._to, self._from = ours[1], theirs[0]
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)  # which ends it
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from)
        self._folder.cleanup()

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0, end - time.monotonic()))
            read = os.read(self._from, 1 << 16) if ready else b""
            if not read:
                raise AssertionError("the browser does not answer" if not ready else "the browser has ended")
            self._unread += read
        message, self._unread = self._unread.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._to, rest) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def value_of(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def look_as(self, width: int, height: int, scheme: str) -> None:
        """`scheme`: light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str, **headers: str) -> None:
        self.call("Network.setExtraHTTPHeaders", headers=headers)
        failed = self.call("Page.navigate", url=url).get("errorText")
        assert not failed, f"{url}: {failed}"
        end = time.monotonic() + DEADLINE_S
        while self.value_of("document.readyState + ' ' + location.href") != f"complete {url}":
            assert time.monotonic() < end, f"{url}: not loaded"
            time.sleep(0.05)

    def picture(self) -> bytes:
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(answer["data"])

    def requested(self) -> set[str]:
        """Each address that was asked for."""
        return {
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        }

    def complaints(self) -> list[dict[str, Any]]:
        """Errors and warnings on the console, and exceptions."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if (
                event.get("method") == "Runtime.exceptionThrown"
                or (
                    event.get("method") == "Runtime.consoleAPICalled"
                    and parameters["type"] in ("error", "warning", "assert")
                )
                or (event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"))
            ):
                found.append(parameters)
        return found
