#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of commands in README.md and docs/start as they are printed, in a copy of the tracked files.

A switch and four workers are network namespaces, with the addresses that the pages use. Each node has one shell for each
page, so a block sees the jobs, variables and files of the blocks before it. A block must end with status 0. A comment
before a block may say where it runs; without one, it runs on worker 0:

    <!-- commands: on the switch -->
    <!-- commands: on each worker -->      at once; the variable NODE is the number of the worker, 0 to 3
    <!-- commands: not run, REASON -->

Blocks of ./demo.sh and ./test.sh are left out: they are steps of their own.

usage: commands_test.py [--show] PROGRAMS PACKAGES [PAGE ...]
PROGRAMS is the folder of atp, PACKAGES that of the Python package. --show prints what the commands print.

Exit status: 0 all blocks work, 1 not, 77 this machine lacks something."""

from __future__ import annotations

import argparse
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCES / "bench" / "cluster"))

import network  # noqa: E402
import topology  # noqa: E402

SKIPPED = 77
WORKERS = 4
QUEUE_BYTES = 1 << 20
BLOCK_SECONDS = 300.0  # a quiet machine needs 10
BLOCK = re.compile(r"(?:^<!-- commands: ([^\n]*) -->\n\n?)?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEPS_OF_THEIR_OWN = ("./demo.sh", "./test.sh")
PLACES = {"": range(1), "on each worker": range(WORKERS), "on the switch": None}


class Failed(Exception):
    pass


@dataclass(frozen=True)
class Block:
    place: str  # a key of PLACES
    lines: str
    where: str


def blocks_of(page: str, text: str) -> list[Block]:
    """The blocks that run, in order. Raises Failed for a comment that says nothing known."""
    blocks = []
    for match in BLOCK.finditer(text):
        mark, lines = match[1] or "", match[2]
        where = f"{page}:{text.count(chr(10), 0, match.start(2)) + 1}"
        if re.fullmatch(r"not run, \S.*", mark) or all(
            line.startswith(STEPS_OF_THEIR_OWN) for line in lines.splitlines()
        ):
            continue
        if mark not in PLACES:
            raise Failed(f"{where}: the comment before the block says {mark!r}; known: {', '.join(PLACES)[2:]}")
        blocks.append(Block(mark, lines, where))
    if not blocks:
        raise Failed(f"{page}: no block of commands runs")
    return blocks


class Shell:
    """A shell at one node. It is killed, with all that it started, by end()."""

    def __init__(self, entry: list[str], folder: Path, name: str, variables: dict[str, str]) -> None:
        self._folder, self._name, self._blocks = folder, name, 0
        self._output = folder.parent / f"{name}.out"
        self._done, done = os.pipe()
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [*entry, "bash", "-e"], cwd=folder, env={**os.environ, **variables}, pass_fds=(done,),
                stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        os.close(done)
        self._end_mark = f"echo >&{done}\n"
        self._death = os.pidfd_open(self._process.pid)
        self._shown = 0

    def begin(self, lines: str) -> None:
        """The lines come from a file, because commands would read them from the shell's input."""
        self._blocks += 1
        script = self._folder.parent / f"{self._name}-{self._blocks}.sh"
        script.write_text(lines)
        assert self._process.stdin
        self._process.stdin.write(f"source {script} </dev/null\n{self._end_mark}".encode())
        self._process.stdin.flush()

    def wait(self) -> None:
        """Returns when the block has ended. Raises Failed if it ended the shell or takes too long."""
        ready, _, _ = select.select([self._done, self._death], [], [], BLOCK_SECONDS)
        # The shell's death also ends the pipe, unless a job of it still has the other end.
        if self._done not in ready or not os.read(self._done, 1):
            how = "failed" if ready else f"still runs after {BLOCK_SECONDS:g} s"
            raise Failed(f"{how}, on {self._name}:\n{self.output()}")

    def output(self) -> str:
        """What was printed since the last call."""
        printed = self._output.read_bytes()
        shown, self._shown = self._shown, len(printed)
        return printed[shown:].decode(errors="replace")

    def end(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.communicate()
        os.close(self._done)
        os.close(self._death)


class Site:
    """The network, and the copy of the sources in which commands run."""

    def __init__(self, built: network.Network, options: argparse.Namespace) -> None:
        self._built, self._show = built, options.show
        self._folder = Path(built.folder) / "atp"
        self._folder.mkdir()
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCES, check=True, capture_output=True).stdout
        copy = ["xargs", "--null", "cp", "--parents", "--no-dereference", f"--target-directory={self._folder}"]
        subprocess.run(copy, cwd=SOURCES, input=tracked, check=True)
        programs = (options.programs.resolve(), Path(sys.executable).parent)
        self._variables = {
            "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
            "PYTHONPATH": str(options.packages.resolve()),
            "OMP_NUM_THREADS": "1",
        }

    def run(self, page: str, text: str) -> None:
        blocks = blocks_of(page, text)
        [switch], hosts = self._built.topology.switches, self._built.topology.hosts
        workers = [self._shell(host, page, str(number)) for number, host in enumerate(hosts)]
        of_switch = self._shell(switch, page, "")
        try:
            for block in blocks:
                numbers = PLACES[block.place]
                self._run_block(block, [of_switch] if numbers is None else [workers[number] for number in numbers])
        finally:
            for shell in (*workers, of_switch):
                shell.end()

    def _shell(self, node: topology.Host | topology.Switch, page: str, number: str) -> Shell:
        name = f"{Path(page).stem}-{node.name}"
        return Shell(self._built.entry(node), self._folder, name, {**self._variables, "NODE": number})

    def _run_block(self, block: Block, shells: list[Shell]) -> None:
        began = time.monotonic()
        for shell in shells:
            shell.begin(block.lines)
        try:
            for shell in shells:
                shell.wait()
        except Failed as failed:
            raise Failed(f"{block.where}: {failed}\n{block.lines}") from None
        print(f"{block.where}: works, {time.monotonic() - began:.1f} s", flush=True)
        if self._show:
            print(block.lines + "".join(shell.output() for shell in shells), flush=True)


def require_that_failures_are_noticed(site: Site) -> None:
    for name, text in (
        ("failing command", "```sh\nsleep 1000 &\nfalse\ntrue\n```\n"),
        ("unknown place", "<!-- commands: on the moon -->\n```sh\ntrue\n```\n"),
        ("page without commands", "none\n"),
    ):
        try:
            site.run(name, text)
        except Failed:
            continue
        raise Failed(f"{name}: is not noticed")


def skip(reason: str) -> int:
    print(f"skipped: {reason}")
    return SKIPPED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print what the commands print")
    parser.add_argument("programs", type=Path, metavar="PROGRAMS")
    parser.add_argument("packages", type=Path, metavar="PACKAGES")
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    options = parser.parse_args()
    for program in ("git", "bash", "xargs"):
        if shutil.which(program) is None:
            return skip(f"{program} is not installed")
    if not (SOURCES / ".git").exists():
        return skip("the sources are no git repository")
    needs = [sys.executable, "-c", "import torch, atp"]
    if subprocess.run(needs, env={**os.environ, "PYTHONPATH": str(options.packages)}, capture_output=True).returncode:
        return skip(f"{sys.executable} cannot import torch and atp")
    start = sorted(str(page.relative_to(SOURCES)) for page in (SOURCES / "docs" / "start").glob("*.md"))
    try:
        with network.build(topology.parse(f"star:{WORKERS}"), network.Links(None, None, QUEUE_BYTES)) as built:
            site = Site(built, options)
            require_that_failures_are_noticed(site)
            for page in options.pages or ["README.md", *start]:
                site.run(page, (SOURCES / page).read_text())
    except network.Unavailable as error:
        return skip(str(error))
    except Failed as failed:
        print(failed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
