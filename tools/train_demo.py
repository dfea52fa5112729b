#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a CNN in shared memory, through a switch and with Gloo, and compare them. ./demo.sh builds the programs and runs this."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NoReturn

from draw_training import draw
from switch_report import share_in_network

ROOT = Path(__file__).resolve().parent.parent
TRAINING_DEADLINE_S = 600.0
# torchrun gives its ranks 30 s to end before it kills them.
ENDING_DEADLINE_S = 40.0
BAR_COLUMNS = 30
LAST_LINES = 20


class Failed(Exception):
    """The demo cannot continue. The text is for the user."""


class Stopped(BaseException):
    """A signal requested the end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_status = 128 + number


def stop_on_signals() -> None:
    def stop(number: int, _) -> None:
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)  # the end is already in progress
        raise Stopped(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


class Process:
    """A process that ends with its block, and whose output goes to a file.

    It has a session of its own, so Ctrl-C reaches it only through this program, which ends processes one by one.
    """

    def __init__(self, command: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        with open(log, "w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_) -> None:
        if self.exit_status() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(ENDING_DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def exit_status(self) -> int | None:
        return self._process.poll()

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def fail(self, what: str) -> NoReturn:
        # torchrun's own report of failed ranks follows the ranks' output, and is longer.
        of_ranks, *_ = re.split(
            r"^[WE]\d{4} .*torch/distributed/elastic", self.output(), maxsplit=1, flags=re.MULTILINE
        )
        last = "\n".join((of_ranks or self.output()).splitlines()[-LAST_LINES:])
        raise Failed(f"{what}; last lines of {self.log}:\n{last}")


class Progress:
    """A line that is redrawn; no output without a terminal."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._drawn = sys.stdout.isatty()

    def show(self, done: int, total: int, remark: str) -> None:
        if self._drawn:
            filled = BAR_COLUMNS * done // total
            bar = "█" * filled + "░" * (BAR_COLUMNS - filled)
            print(f"\r\x1b[K{self._title:<7}{bar} {remark}", end="", flush=True)

    def end(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", flush=True)


def wait_for_address(switch: Process) -> str:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and switch.exit_status() is None:
        first, newline, _ = switch.output().partition("\n")
        if newline:
            return json.loads(first)["address"]
        time.sleep(0.05)
    switch.fail("the switch did not start")


def share_summed(program: Path, address: str) -> float:
    """Of the packets with values to sum, the share that the switch added; it forwarded the others."""
    command = [program, "stats", address, "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=30).stdout)
    return share_in_network([report]) or 0.0


def train(name: str, backend: str, arguments: argparse.Namespace, environment: dict[str, str]) -> dict:
    """The figures that the example writes."""
    figures = arguments.folder / f"{name}.json"
    figures.unlink(missing_ok=True)
    script = ["examples/train_cnn.py", "--backend", backend, "--epochs", str(arguments.epochs)]
    launcher = ["--standalone", "--nproc-per-node", str(arguments.workers)]
    shown = [f"{name}={value}" for name, value in environment.items()] + ["torchrun", *launcher, *script]
    print(f"$ {shlex.join(shown)}", flush=True)
    command = [sys.executable, "-m", "torch.distributed.run", *launcher, *script, "--json", str(figures)]
    common = {"PYTHONPATH": str(arguments.package), "OMP_NUM_THREADS": "1", "ATP_TIMEOUT": "60"}
    progress = Progress(name)
    deadline = time.monotonic() + TRAINING_DEADLINE_S
    with Process(command, arguments.folder / f"{name}.log", {**common, **environment}) as training:
        while training.exit_status() is None and time.monotonic() < deadline:
            epochs = re.findall(r"^epoch (\d+) of \d+: (.*)$", training.output(), re.MULTILINE)
            done, remark = epochs[-1] if epochs else (0, "starting")
            progress.show(int(done), arguments.epochs, remark)
            time.sleep(0.2)
        progress.end()
        if training.exit_status() is None:
            training.fail(f"training with {backend} did not end within {TRAINING_DEADLINE_S:.0f} s")
        if training.exit_status() != 0:
            training.fail(f"training with {backend} failed")
    return json.loads(figures.read_text(encoding="utf-8"))


def train_through_switch(arguments: argparse.Namespace) -> tuple[dict, float]:
    """The figures, and the share of packets that the network summed."""
    command = [str(arguments.program), "switch", "--listen", "127.0.0.1:0", "--json"]
    print(f"$ {shlex.join(['atp', *command[1:]])} &", flush=True)
    with Process(command, arguments.folder / "daemon.log") as switch:
        address = wait_for_address(switch)
        figures = train("switch", "atp", arguments, {"ATP_SWITCH": address, "ATP_HOST_LEVEL": "off"})
        return figures, share_summed(arguments.program, address)


def table(figures: dict) -> str:
    trainings = figures["trainings"]

    def row(title: str, cells) -> str:
        return f"{title:<34}" + "".join(f"{cell:<26}" for cell in cells).rstrip()

    def last_epoch(training: dict) -> list[float]:
        return training["losses"][-len(training["losses"]) // len(training["steps_per_s"]) :]

    of_all = trainings.values()
    verdicts = {True: "identical bit for bit", False: "NOT IDENTICAL"}
    return "\n".join(
        [
            row("", ["atp, shared memory", "atp, through the switch", "gloo"]),
            row("loss, mean of the last epoch", [f"{sum(last_epoch(t)) / len(last_epoch(t)):.4f}" for t in of_all]),
            row("accuracy on unseen digits", [f"{training['accuracy']:.1%}" for training in of_all]),
            row("steps/s, median of the epochs", [f"{median(training['steps_per_s']):.1f}" for training in of_all]),
            row("share summed in the network", ["none", f"{figures['share_summed_in_network']:.1%}", "none"]),
            row(f"weights of the {figures['workers']} workers", [verdicts[t["identical"]] for t in of_all]),
        ]
    )


def demonstrate(arguments: argparse.Namespace) -> bool:
    """True if all workers ended with the same weights."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{arguments.workers} workers train examples/train_cnn.py on scikit-learn's handwritten digits\n")
    through_switch, share = train_through_switch(arguments)
    in_memory = train("atp", "atp", arguments, {})
    trainings = {"atp": in_memory, "switch": through_switch, "gloo": train("gloo", "gloo", arguments, {})}
    figures = {
        "workers": arguments.workers,
        "epochs": arguments.epochs,
        "cores": len(os.sched_getaffinity(0)),
        "gradient_bytes": through_switch["gradient_bytes"],
        "share_summed_in_network": share,
        "trainings": trainings,
        "picture": str(arguments.folder / "training.png"),
    }
    print(f"\n{table(figures)}\n")
    print(
        f"All workers and the switch run on the {figures['cores']} cores of this host and use no network links, "
        "so steps/s compares only the software.\n"
        "ATP has the same losses in both ways; Gloo rounds its sums differently. Gain of a switch on limited links: "
        "docs/results/real-packets.md"
    )
    draw(figures, figures["picture"])
    print(f"picture: {figures['picture']}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(f"results: {arguments.json}")
    return all(training["identical"] for training in trainings.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--program", type=Path, default=ROOT / "build/release/bin/atp", help="program `atp` [%(default)s]"
    )
    parser.add_argument(
        "--package",
        type=Path,
        default=ROOT / "build/release/python",
        help="folder with the Python package `atp` [%(default)s]",
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build/demo", help="folder for logs and the picture [%(default)s]"
    )
    parser.add_argument("--workers", type=int, default=4, help="number of workers, at least 1 [%(default)s]")
    parser.add_argument("--epochs", type=int, default=20, help="number of epochs, at least 1 [%(default)s]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    arguments = parser.parse_args()
    stop_on_signals()
    try:
        if arguments.json:
            arguments.json.open(
                "a", encoding="utf-8"
            ).close()  # a file that cannot be written is found before the training
        return 0 if demonstrate(arguments) else 1
    except (Failed, OSError, subprocess.SubprocessError) as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        print("\nstopped", file=sys.stderr)
        return stopped.exit_status


if __name__ == "__main__":
    sys.exit(main())
