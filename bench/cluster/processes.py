# SPDX-License-Identifier: Apache-2.0
"""Runs programs at the nodes of a network, and collects their output and their processor time."""

import os
import shlex
import signal
import subprocess
import time

POLL_SECONDS = 0.01
STOP_SECONDS = 5.0
TAIL_LINES = 5


class Failed(Exception):
    """A program failed, had no valid output, or did not end in time. `status`: its exit status; None: unknown."""

    def __init__(self, text, status=None):
        super().__init__(text)
        self.status = status


class Process:
    """One program that runs at a node. `entry` is the prefix that runs a command at the node. The outputs of the
    program go to two files in `folder`, `name`.out and `name`.err.

    The caller must call wait_all() or stop() in every case: nothing else ends the program.
    """

    def __init__(self, name, entry, command, folder):
        self.name = name
        self.command = command
        self.output_path = os.path.join(folder, f"{name}.out")
        self.errors_path = os.path.join(folder, f"{name}.err")
        self.status = None
        self.cpu_seconds = 0.0
        with open(self.output_path, "wb") as output, open(self.errors_path, "wb") as errors:
            self._child = subprocess.Popen(
                [*entry, *command], stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
            )

    @property
    def pid(self):
        return self._child.pid

    def poll(self):
        """True if the process has ended. The first call that finds this stores the status and the processor time."""
        if self.status is None:
            pid, status, usage = os.wait4(self._child.pid, os.WNOHANG)
            if pid != 0:
                self.status = self._child.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return self.status is not None

    def cpu_seconds_so_far(self):
        """Processor time of the running process, in steps of the kernel's clock."""
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
                user, system = file.read().rpartition(")")[2].split()[11:13]
        except OSError:
            return 0.0
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def signal(self, number):
        if not self.poll():
            os.kill(self._child.pid, number)

    def output(self):
        with open(self.output_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def complaint(self):
        with open(self.errors_path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()[-TAIL_LINES:]
        how = "still running" if self.status is None else f"status {self.status}"
        return "\n    ".join([f"{self.name} ({how}): {shlex.join(self.command)}", *lines])


def output_of(entry, command, seconds=10.0):
    """Runs a command at a node and returns its output. Raises Failed if the command fails or takes too long."""
    try:
        done = subprocess.run(
            [*entry, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"not done after {seconds:.0f} s: {shlex.join(command)}") from error
    if done.returncode != 0:
        text = f"failed with status {done.returncode}: {shlex.join(command)}\n    {done.stderr.strip()}"
        raise Failed(text, done.returncode)
    return done.stdout


def wait_all(processes, seconds, servers=()):
    """Returns when all processes have ended with status 0. Raises Failed if a process fails, if one of `servers` ends,
    or after `seconds`. The caller must then stop the remaining processes."""
    deadline = time.monotonic() + seconds
    while True:
        ended = [process for process in processes if process.poll()]
        bad = [process for process in ended if process.status != 0] + [server for server in servers if server.poll()]
        if bad:
            raise Failed("processes ended early:\n  " + "\n  ".join(process.complaint() for process in bad))
        if len(ended) == len(processes):
            return
        if time.monotonic() > deadline:
            late = [process for process in processes if process.status is None]
            raise Failed(f"not done after {seconds:.0f} s:\n  " + "\n  ".join(process.complaint() for process in late))
        time.sleep(POLL_SECONDS)


def stop(processes):
    """Terminates all processes. Kills processes that have not ended after STOP_SECONDS."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            process.signal(number)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if all([process.poll() for process in processes]):
                return
            time.sleep(POLL_SECONDS)


def require_orderly_end(servers):
    """Raises Failed if a server ended with an error. stop() must have ended all servers."""
    bad = [server for server in servers if server.status not in (0, -signal.SIGTERM)]
    if bad:
        raise Failed("switches failed after SIGTERM:\n  " + "\n  ".join(server.complaint() for server in bad))


def wait_until_bound(process, port, protocol="udp", seconds=10.0):
    """Returns when the process has a socket on the port."""
    deadline = time.monotonic() + seconds
    while not process.poll() and time.monotonic() < deadline:
        if port in _bound_ports(process.pid, protocol):
            return
        time.sleep(POLL_SECONDS)
    raise Failed(f"no socket on {protocol} port {port} after {seconds:.0f} s:\n  {process.complaint()}")


def _bound_ports(pid, protocol):
    ports = set()
    own = _sockets_of(pid)
    for table in (protocol, f"{protocol}6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except FileNotFoundError:
            continue  # a kernel without IPv6, or the process has ended
        ports.update(int(row[1].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in own)
    return ports


def _sockets_of(pid):
    folder = f"/proc/{pid}/fd"
    try:
        return {os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)}
    except FileNotFoundError:
        return set()  # the process ended, or closed a file meanwhile: wait_until_bound() calls again
