# SPDX-License-Identifier: Apache-2.0
"""Serves the counters of this process to Prometheus, at the address in ATP_METRICS."""

from __future__ import annotations

import functools
import os
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import _library, _log
from ._log import logger

MOST_PORTS = 64  # each rank of a host is a process of its own, and takes the first free one
_OPEN = "application/openmetrics-text"
_SILENT_S = 30  # a client that sends nothing for so long is disconnected


class _Handler(BaseHTTPRequestHandler):
    timeout = _SILENT_S
    server_version = "atp"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.split("?")[0] != "/metrics":
            self.send_error(404, "a rank has /metrics")
            return
        is_open = _OPEN in self.headers.get("Accept", "")
        body = _library.metrics(is_open)
        kind = f"{_OPEN}; version=1.0.0" if is_open else "text/plain; version=0.0.4"
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """A scrape is nothing to log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_port = False  # another rank of this host may have the port

    def __init__(self, family: int, address: tuple[str, int]) -> None:
        self.address_family = socket.AddressFamily(family)
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Without the name of the host, for which the base class may wait."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


@functools.cache
def serve() -> None:
    """Serves, once in a process, if ATP_METRICS is set. Without a server for them, a job runs as well."""
    asked = os.environ.get("ATP_METRICS", "").strip()
    if not asked:
        return
    try:
        server = _bind(asked)
    except (OSError, ValueError) as error:
        logger.warning('%s reason="ATP_METRICS=%s: %s"', _log.METRICS_UNAVAILABLE, asked, error)
        return
    threading.Thread(target=server.serve_forever, name="atp-metrics", daemon=True).start()
    host, port = str(server.server_address[0]), server.server_address[1]
    logger.info("%s address=%s", _log.METRICS_SERVED, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _bind(asked: str) -> _Server:
    host, colon, text = asked.rpartition(":")
    if not colon or not text.isdigit() or not 0 <= int(text) < 1 << 16:
        raise ValueError("use host:port")
    first = int(text)
    family, *_, place = socket.getaddrinfo(host.strip("[]"), first, type=socket.SOCK_STREAM)[0]
    last = first if first == 0 else min(first + MOST_PORTS, 1 << 16) - 1
    for port in range(first, last + 1):
        try:
            return _Server(family, (str(place[0]), port))
        except OSError:
            if port == last:
                raise
    raise AssertionError
