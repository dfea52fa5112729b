# SPDX-License-Identifier: Apache-2.0
"""Measures the rate of a link with a plain TCP stream. Each end is a separate process.

usage: stream.py receive PORT              prints the rate of the payload in bit/s
       stream.py send ADDRESS PORT SECONDS
"""

import socket
import sys
import time

BLOCK_BYTES = 256 * 1024
WARM_UP_SECONDS = 0.5
PATIENCE_SECONDS = 20.0


def receive(port):
    with socket.create_server(("", port)) as server:
        server.settimeout(PATIENCE_SECONDS)
        connection, _ = server.accept()
    connection.settimeout(PATIENCE_SECONDS)
    buffer = bytearray(BLOCK_BYTES)
    counted = 0
    begin = end = time.monotonic()
    warm_at = begin + WARM_UP_SECONDS
    while received := connection.recv_into(buffer):
        end = time.monotonic()
        if end < warm_at:
            begin = end
        else:
            counted += received
    print(counted * 8 / (end - begin))


def send(address, port, seconds):
    stop_at = time.monotonic() + seconds
    with _connect(address, port) as connection:
        block = bytes(BLOCK_BYTES)
        while time.monotonic() < stop_at:
            connection.sendall(block)


def _connect(address, port):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return socket.create_connection((address, port), timeout=PATIENCE_SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "receive":
        receive(int(arguments[1]))
    elif len(arguments) == 4 and arguments[0] == "send":
        send(arguments[1], int(arguments[2]), float(arguments[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
