#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a switch tells its service manager. The test is the manager.

usage: notify_test.py FOLDER_OF_PROGRAMS"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from wire_format import LEAST_QUESTION_BYTES, Message, write_message  # noqa: E402

ATP = os.path.join(sys.argv.pop(), "atp")
DEADLINE_S = 20
WATCHDOG_S = 0.6
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


@contextlib.contextmanager
def stopped(thread):
    """While the `with` block runs, this one thread of another process stands still."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_SEIZE, thread, None, None) != 0:
        raise unittest.SkipTest(f"ptrace: {os.strerror(ctypes.get_errno())}")
    libc.ptrace(PTRACE_INTERRUPT, thread, None, None)
    os.waitpid(thread, 0x40000000)  # __WALL
    try:
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, thread, None, None)


class Manager:
    """A manager with one service."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        path = os.path.join(self._folder.name, "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        self._socket.settimeout(DEADLINE_S)
        environment = {**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}
        environment.pop("WATCHDOG_PID", None)
        self.service = subprocess.Popen(
            [ATP, "switch", "--listen", "127.0.0.1:0", "--threads", "2", "--log-level", "off"],
            env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_):
        self.service.kill()
        self.service.wait()
        self.service.stdout.close()
        self._socket.close()
        self._folder.cleanup()

    def next(self):
        return dict(line.split("=", 1) for line in self._socket.recv(4096).decode().split("\n"))

    def next_besides_watchdog(self):
        while True:
            told = self.next()
            if told != {"WATCHDOG": "1"}:
                return told

    def packet_threads(self):
        folder = f"/proc/{self.service.pid}/task"
        names = {}
        for each in os.listdir(folder):
            with open(os.path.join(folder, each, "comm"), encoding="ascii") as file:
                names[int(each)] = file.read().strip()
        found = [thread for thread, name in names.items() if name.startswith("atp-thread")]
        assert len(found) == 2, names
        return found

    def told_within(self, seconds):
        """How often the service was alive."""
        count, end = 0, time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            with contextlib.suppress(TimeoutError):
                count += self.next() == {"WATCHDOG": "1"}
        self._socket.settimeout(DEADLINE_S)
        return count


class Notify(unittest.TestCase):
    def test_ready_when_the_switch_answers_then_reload_and_stop(self):
        with Manager() as manager:
            told = manager.next_besides_watchdog()
            self.assertEqual(told["READY"], "1")
            address = told["STATUS"].split()[-1]
            self.assertTrue(address.startswith("127.0.0.1:"), told)
            subprocess.run([ATP, "stats", address, "--timeout", "1s"], check=True, stdout=subprocess.DEVNULL)
            manager.service.send_signal(signal.SIGHUP)
            told = manager.next_besides_watchdog()
            self.assertEqual(told["RELOADING"], "1")
            self.assertLess(abs(int(told["MONOTONIC_USEC"]) / 1e6 - time.monotonic()), DEADLINE_S)
            self.assertEqual(manager.next_besides_watchdog()["READY"], "1")
            manager.service.terminate()
            self.assertEqual(manager.next_besides_watchdog(), {"STOPPING": "1"})
            self.assertEqual(manager.service.wait(DEADLINE_S), 0)

    def test_a_thread_that_hangs_ends_the_watchdogs_food(self):
        with Manager() as manager:
            self.assertEqual(manager.next_besides_watchdog()["READY"], "1")
            self.assertGreaterEqual(manager.told_within(4 * WATCHDOG_S), 2)
            for thread in manager.packet_threads():
                with stopped(thread):
                    manager.told_within(WATCHDOG_S)  # what was told before
                    self.assertEqual(manager.told_within(3 * WATCHDOG_S), 0)
                self.assertGreaterEqual(manager.told_within(4 * WATCHDOG_S), 1)

    def test_packets_wait_in_the_socket_of_the_manager(self):
        hello = write_message(Message.HELLO, LEAST_QUESTION_BYTES, nonce=7)
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kept,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host,
        ):
            kept.bind(("127.0.0.1", 0))
            host.bind(("127.0.0.1", 0))
            host.settimeout(DEADLINE_S)
            script = f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@" 3<&{kept.fileno()}'
            for _ in range(2):  # a process after the other one
                host.sendto(hello, kept.getsockname())
                with subprocess.Popen(
                    ["bash", "-c", script, ATP, "switch", "--quiet", "--threads", "2", "--log-level", "off"],
                    pass_fds=[kept.fileno()],
                ) as switch:
                    self.assertEqual(host.recvfrom(2048)[1], kept.getsockname())
                    switch.terminate()
                    self.assertEqual(switch.wait(DEADLINE_S), 0)

    def test_listen_that_names_another_address_than_the_socket_is_no_start(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kept:
            kept.bind(("127.0.0.1", 0))
            script = f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@" 3<&{kept.fileno()}'
            done = subprocess.run(
                ["bash", "-c", script, ATP, "switch", "--listen", "127.0.0.1:1"],
                pass_fds=[kept.fileno()], capture_output=True, text=True, timeout=DEADLINE_S, check=False,
            )  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("the socket of the service manager is at 127.0.0.1:", done.stderr)


if __name__ == "__main__":
    unittest.main()
