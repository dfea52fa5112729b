#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`atp top` in a terminal of 80 x 24, which tmux shows: what it says of a running job, and what it leaves behind.

usage: top_test.py FOLDER_OF_PROGRAMS

Exit status: 77 if there is no tmux."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from running_job import Job  # noqa: E402
from running_switch import Switch  # noqa: E402
from serving import wait_until  # noqa: E402

PROGRAMS = Path(sys.argv.pop()).resolve()
ATP = str(PROGRAMS / "atp")
SKIPPED = 77
WIDTH, HEIGHT = 80, 24
INTERVAL_S = 0.3
HEADER_WIDTH = 70  # of the switches
SLOW_RANK = 1
SWITCH_COLUMNS = "number switch in out added/s passed coll. resent drops"
JOB_COLUMNS = "job switch tenant/name members added/s passed coll. resent waits"


class Terminal:
    """A shell in a terminal of tmux, with a server of its own."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="atp-top-")
        self.folder = Path(self._folder.name)
        self._socket = str(self.folder / "tmux")
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "PS1": "$ ", "ENV": "", "HISTFILE": "/dev/null",
                       "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}  # fmt: skip
        environment.pop("TMUX", None)
        subprocess.run(["tmux", "-S", self._socket, "-f", "/dev/null", "new-session", "-d", "-x", str(WIDTH), "-y",
                        str(HEIGHT), "sh"], env=environment, check=True, timeout=60)  # fmt: skip
        self.call("set-option", "-g", "status", "off")
        self.call("resize-window", "-x", str(WIDTH), "-y", str(HEIGHT))

    def call(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words], check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    def close(self) -> None:
        self.call("kill-server")
        self._folder.cleanup()

    def lines(self) -> list[str]:
        return self.call("capture-pane", "-p").splitlines()

    def run(self, line: str) -> None:
        """As typed, without waiting for its end."""
        self.call("send-keys", "-l", line)
        self.call("send-keys", "Enter")

    def press(self, key: str) -> None:
        self.call("send-keys", key)

    def resize(self, width: int, height: int) -> None:
        """Until two looks later. tmux tells its programs only some time after it has changed what it shows itself."""
        self.call("resize-window", "-x", str(width), "-y", str(height))
        tty = self.call("display-message", "-p", "#{pane_tty}").strip()

        def size() -> str:
            return subprocess.run(
                ["stty", "-F", tty, "size"], check=True, capture_output=True, text=True
            ).stdout.strip()

        wait_until(lambda: size() == f"{height} {width}", f"a terminal of {width} x {height}")
        time.sleep(2 * INTERVAL_S)

    def settings(self) -> str:
        """What stty says of the terminal."""
        file = self.folder / "stty"
        file.unlink(missing_ok=True)
        self.run(f"stty -a >{shlex.quote(str(file))}.part; mv {shlex.quote(str(file))}.part {shlex.quote(str(file))}")
        wait_until(file.exists, f"the shell has the terminal: {self.lines()}")
        return file.read_text(encoding="ascii")

    def flags(self) -> tuple[str, str]:
        """Whether the alternate screen is shown, and whether the cursor is."""
        alternate, cursor = self.call("display-message", "-p", "#{alternate_on} #{cursor_flag}").split()
        return alternate, cursor

    def child(self) -> int | None:
        """The process that the shell waits for."""
        shell = self.call("display-message", "-p", "#{pane_pid}").strip()
        found = Path(f"/proc/{shell}/task/{shell}/children").read_text(encoding="ascii").split()
        return int(found[0]) if found else None


class Top(unittest.TestCase):
    def setUp(self) -> None:
        self.root = self.start()
        self.leaf = self.start("--parent", self.root)
        self.terminal = Terminal()
        self.addCleanup(self.terminal.close)
        self.before = self.terminal.settings()
        self.assertRegex(self.before, r"(?<!-)\becho\b")

    def start(self, *flags: str) -> str:
        switch = Switch(ATP, *flags)
        self.addCleanup(switch.stop)
        return switch.address()

    def show(self) -> None:
        """Starts `atp top` and waits until it shows something."""
        self.terminal.run(f"atp top {self.root} {self.leaf} --interval {INTERVAL_S * 1000:.0f}ms; echo ended=$?")
        wait_until(lambda: "2 of 2 switches up" in "".join(self.terminal.lines()[:1]), "atp top shows the switches")

    def assert_restored(self) -> None:
        wait_until(lambda: any(re.fullmatch(r"ended=\d+", line) for line in self.terminal.lines()), "atp top ends")
        lines = self.terminal.lines()
        self.assertIn("ended=0", lines)
        self.assertTrue(any("atp top" in line for line in lines), "the screen that was there before is shown again")
        self.assertEqual(self.terminal.flags(), ("0", "1"))
        self.assertEqual(self.terminal.settings(), self.before)
        self.terminal.run("echo a$((1))b")
        wait_until(lambda: "a1b" in self.terminal.lines(), "the shell goes on")
        self.assertTrue(any("echo a$((1))b" in line for line in self.terminal.lines()), "what is typed is shown")

    def cells(self, names: str, row: str) -> dict[str, str]:
        """The cells of the first line that begins so."""
        columns = names.split()
        found = next(
            (line.split(maxsplit=len(columns) - 1) for line in self.terminal.lines() if re.match(row, line)), []
        )
        return dict(zip(columns, found, strict=False))

    def test_shows_jobs_rates_the_slow_rank_and_drops(self) -> None:
        job = Job(ATP, [self.leaf] * 3, "--server", "switch")
        self.addCleanup(job.end)
        job.wait_until_sums_leave(ATP, self.leaf)
        job.slow(SLOW_RANK)
        self.show()
        self.assertEqual(self.terminal.flags(), ("1", "0"))
        slow = rf"^[0-9a-f]{{8}} .*rank {SLOW_RANK} \d+%$"
        wait_until(lambda: any(re.match(slow, line) for line in self.terminal.lines()), "the slow rank is named", 60)

        def rates() -> bool:
            switch = self.cells(SWITCH_COLUMNS, rf" 2 {self.leaf} ")
            return switch.get("added/s", "0") != "0" and switch.get("in", "0") != "0"

        wait_until(rates, "the rates of the leaf")
        cells = self.cells(JOB_COLUMNS, "[0-9a-f]{8} ")
        self.assertEqual((cells["switch"], cells["members"]), ("2", "3/3"), cells)
        head = next(line for line in self.terminal.lines() if re.match(r" +switch ", line))
        [leaf] = [line for line in self.terminal.lines() if re.match(rf" 2 {self.leaf} ", line)]
        self.assertRegex(leaf[: head.index("drops") + 5], r" \d+(\.\d)?[kMG]?$", "drops stand below their header")
        self.assertLessEqual(max(map(len, self.terminal.lines())), WIDTH)
        self.terminal.press("q")
        self.assert_restored()

    def test_follows_the_size_of_the_terminal(self) -> None:
        self.show()
        for width, height in ((40, 8), (120, 30), (HEADER_WIDTH, HEIGHT), (WIDTH, HEIGHT)):
            self.terminal.resize(width, height)
            wanted = "ATP: 2 of 2 switches up, 0 jobs at switches; q ends"[:width].rstrip()
            wait_until(lambda: self.terminal.lines()[:1] == [wanted], f"the header at {width} columns")  # noqa: B023
            wait_until(lambda: self.terminal.lines()[2:3] == [self.head(width)], "a whole line")  # noqa: B023
        self.terminal.press("q")
        self.assert_restored()

    @staticmethod
    def head(width: int) -> str:
        """The header of the switches, as far as it fits."""
        names = ("in", "out", "added/s", "passed", "coll.", "resent", "drops")
        cells = [f"{name:>{columns}}" for name, columns in zip(names, (5, 5, 7, 6, 5, 6, 5), strict=True)]
        return " ".join(["  ", f"{'switch':<21}", *cells])[:width].rstrip()

    def test_ends_beside_a_switch_that_answers_later_than_the_next_look(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            self.terminal.run(f"atp top {self.root} {address} --interval 100ms --timeout 300ms; echo ended=$?")
            wait_until(lambda: "1 of 2 switches up" in "".join(self.terminal.lines()[:1]), "the other switch")
            self.terminal.press("q")
            self.assert_restored()

    def test_an_interruption_ends_a_question(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            self.terminal.run(f"atp top 127.0.0.1:{silent.getsockname()[1]} --timeout 60s; echo ended=$?")
            self.assertTrue(silent.recv(2048))  # it asks
            self.terminal.press("C-c")
            self.assert_restored()

    def test_needs_a_terminal_that_moves_its_cursor(self) -> None:
        self.terminal.run(f"TERM=dumb atp top {self.root}; echo ended=$?")
        wait_until(lambda: "ended=2" in self.terminal.lines(), "it ends")

    def test_restores_the_terminal_after_an_interruption(self) -> None:
        self.show()
        self.terminal.press("C-c")
        self.assert_restored()

    def test_restores_the_terminal_after_sigterm(self) -> None:
        self.show()
        child = self.terminal.child()
        assert child is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
        self.assert_restored()

    def test_is_not_suspended_with_the_screen_that_it_changed(self) -> None:
        self.show()
        for key in ("C-z", "C-\\", "x"):
            self.terminal.press(key)
        self.terminal.resize(WIDTH - 1, HEIGHT)
        wait_until(lambda: self.terminal.lines()[2:3] == [self.head(WIDTH - 1)], "it goes on")
        self.terminal.resize(WIDTH, HEIGHT)
        self.assertEqual(self.terminal.flags(), ("1", "0"))
        self.terminal.press("q")
        self.assert_restored()


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        print("skipped: no tmux")
        sys.exit(SKIPPED)
    unittest.main()
