# SPDX-License-Identifier: Apache-2.0
"""Builds pages of docs/results. A page has parts; a part lists its commands, and its figures with their limits."""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import program

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import draw_results  # noqa: E402  tools/draw_results.py
import provenance  # noqa: E402  tools/provenance.py

CLUSTER = os.path.join(ROOT, "bench/cluster/run")
LIMIT_SECONDS = 900
PICTURES = "figures"  # a folder beside the page
VENV_PYTHON = os.path.join(ROOT, "build/venv/bin/python")
PYTHON = VENV_PYTHON if os.path.exists(VENV_PYTHON) else sys.executable


class Skipped(Exception):
    """Raised if this host cannot measure a part."""


@dataclass
class Finding:
    """One figure with its limits. `least` is the minimum, `most` the maximum; None: no limit. Only --json has `data`."""

    what: str
    value: float
    least: float = None
    most: float = None
    text: str = ""
    data: dict = field(default_factory=dict)

    @property
    def verdict(self):
        if self.least is None and self.most is None:
            return ""
        met = (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)
        return "met" if met else "missed"

    @property
    def bar(self):
        if self.least is not None:
            return f">= {self.least:g}"
        return f"<= {self.most:g}" if self.most is not None else ""


@dataclass
class Part:
    """A section of the page: its commands and their results. `pictures` holds SVG texts by file name."""

    title: str
    commands: list = field(default_factory=list)
    findings: list = field(default_factory=list)
    pictures: dict = field(default_factory=dict)
    skipped: str = ""

    def add(self, *finding, **bars):
        """Adds a Finding with these arguments."""
        self.findings.append(Finding(*finding, **bars))


def run(part, command):
    """Runs a command of the repository, records it in the part, and returns its standard output."""
    part.commands.append(" ".join(command).replace(ROOT + "/", ""))
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip() or done.stdout.strip())
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {' '.join(command)}\n{done.stderr}")
    return done.stdout


def cluster(part, flags, *more):
    """Runs bench/cluster and returns the object that it prints. `flags` are divided at blanks, `more` are not."""
    return json.loads(run(part, [CLUSTER, *flags.split(), *more, "--json"]))


@dataclass
class Page:
    """A program that measures parts and writes a page. `bodies` maps the name of a part to its title and function.
    `in_effect` holds what differs from the defaults in all parts (tools/provenance.py). `repeats` says what a part
    repeats, and is the flag that sets their number; `rounds` is its default."""

    title: str
    program: str
    bodies: dict
    introduction: str = ""
    in_effect: dict = field(default_factory=dict)
    repeats: str = "rounds"
    rounds: int = 5

    def measure(self, name, rounds):
        title, body = self.bodies[name]
        part = Part(title)
        try:
            body(part, rounds)
        except Skipped as reason:
            part.skipped = str(reason)
        return part

    def text(self, parts):
        recorded = provenance.record(Path(ROOT), **self.in_effect)
        head = [
            f"# {self.title}",
            "",
            provenance.line(recorded),
            "",
            f"Written by `{self.program} --write`. {provenance.sentence(recorded)} Each figure is a ratio or a share "
            f"within one run: the median of the {self.repeats}.",
            "",
            *([self.introduction, ""] if self.introduction else []),
        ]
        return "\n".join(head) + "\n" + "\n".join(_table(part) for part in parts)


def _table(part):
    lines = [f"## {part.title}", ""]
    lines += [f"- `{command}`" for command in dict.fromkeys(part.commands)] + [""]
    if part.skipped:
        return "\n".join(lines + [f"Skipped: {part.skipped}", ""])
    lines += ["| what | figure | bar | verdict | |", "|---|---|---|---|---|"]
    for finding in part.findings:
        lines.append(f"| {finding.what} | {finding.value:.2f} | {finding.bar} | {finding.verdict} | {finding.text} |")
    lines += [f"\n![{part.title}]({PICTURES}/{name})" for name in part.pictures]
    return "\n".join(lines + [""])


def _write(page, parts, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.text(parts))
    for name, drawn in ((name, drawn) for part in parts for name, drawn in part.pictures.items()):
        folder = os.path.join(os.path.dirname(path), PICTURES)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(drawn)
    draw_results.draw_page(Path(path))


def _as_json(parts):
    return json.dumps(
        [
            {"part": part.title}
            | {key: getattr(finding, key) for key in ("what", "value", "bar", "verdict", "text")}
            | finding.data
            for part in parts
            for finding in part.findings
        ],
        indent=2,
    )


def make_parser(page, description):
    """The parser of a page's program, which may add arguments of its own."""
    parser = argparse.ArgumentParser(
        prog=page.program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"parts to measure: {', '.join(page.bodies)} [all]")
    repeats = f"{page.repeats} of a system, at least 1; figures are medians [{page.rounds}]"
    parser.add_argument(f"--{page.repeats}", dest="rounds", type=int, default=page.rounds, metavar="N", help=repeats)
    parser.add_argument("--write", metavar="FILE", help="also write the page into this file")
    parser.add_argument("--json", action="store_true", help="print a JSON array of figures instead of the page")
    return parser


def parse(page, parser):
    options = parser.parse_args()
    unknown = [name for name in options.parts if name not in page.bodies]
    if unknown or options.rounds < 1:
        parser.error(
            f"argument PART: {', '.join(unknown)} is unknown; accepted: {', '.join(page.bodies)}"
            if unknown
            else f"argument --{page.repeats}: {options.rounds} is below the minimum of 1"
        )
    return options


def show_progress(text):
    """Replaces the line on a terminal that says what is being measured."""
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def _measure_and_print(page, options):
    parts = []
    for name in options.parts or page.bodies:
        show_progress(f"{name} ...")
        parts.append(page.measure(name, options.rounds))
    show_progress("")
    if options.write:
        _write(page, parts, options.write)
    print(_as_json(parts) if options.json else page.text(parts))
    return 1 if any(finding.verdict == "missed" for part in parts for finding in part.findings) else 0


def execute(page, options):
    """Measures, prints, and returns the exit status of the program."""
    return program.execute(page.program, lambda: _measure_and_print(page, options))


def main(page, description):
    """Parses the arguments of a program that adds none, and executes it."""
    return execute(page, parse(page, make_parser(page, description)))
