#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live page in headless Chromium: a root and two leaves, a job of two racks with a slow rank, and one of a rack.

usage: page_test.py FOLDER_OF_PROGRAMS [--pictures FOLDER] [--install]

  --pictures FOLDER   also write what it looks like, as FOLDER/page-WIDTH-SCHEME.png; with pngquant, much smaller
  --install           first install Debian's chromium and pngquant if this machine has no browser

docs/operate/monitor.md shows the pictures: tests/metrics/page_test.py build/release/bin --install --pictures docs/images

Exit status: 0 the page is right, 1 it is not, 77 there is no browser."""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import browser  # noqa: E402
from running_job import Job  # noqa: E402
from serving import Serving, wait_until  # noqa: E402

SKIPPED = 77
WIDTHS = {400: 860, 1400: 900}  # and heights of the window
SCHEMES = ("light", "dark")
KEY = "correct horse battery"
TEAMS = ("speech", "vision")
SLOW_RANK = 2
MINUTE_S = 75  # until the sparklines are full


class Site:
    """Keys of two teams and a fabric, a root, two leaves, `atp metrics` for all of them, and jobs."""

    def __init__(self, running: contextlib.ExitStack) -> None:
        self._running = running
        self.folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="atp-page-")))
        self._secret("operator.key", KEY + "\n")
        for team in (*TEAMS, "fabric"):
            self._atp("key", "new", f"{team}.key", "--tenant", team)
        self.root = self._switch("root", 'name = "fabric"\nkeys = ["fabric-root.key"]\nfabric = true\n')
        above = ("--parent", self.root, "--parent-key", str(self.folder / "fabric-root.key"))
        self.leaves = [self._switch(f"leaf-{number}", "", *above) for number in (1, 2)]
        self.exporter = running.enter_context(Serving(ATP, "metrics", self.root, *self.leaves, "--http", "127.0.0.1:0",
                                                      "--http-key", self.folder / "operator.key"))  # fmt: skip

    def _atp(self, *words: str) -> None:
        subprocess.run([ATP, *words], cwd=self.folder, check=True, capture_output=True, timeout=60)

    def _secret(self, name: str, text: str) -> None:
        with open(os.open(self.folder / name, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(text)

    def _switch(self, name: str, further: str, *flags: str) -> str:
        tenants = f"[[tenant]]\n{further}\n" if further else ""
        for team, weight in zip(TEAMS, (1, 2), strict=True):
            self._atp("key", "for", name, f"{team}-{name}.key", "--from", f"{team}.key")
            tenants += f'[[tenant]]\nname = "{team}"\nkeys = ["{team}-{name}.key"]\nweight = {weight}\n'
        if further:
            self._atp("key", "for", name, f"fabric-{name}.key", "--from", "fabric.key")
        self._secret(f"{name}.toml", tenants)
        serving = Serving(ATP, "switch", "--listen", "127.0.0.1:0", "--log-level", "off", "--memory", "400kB", "--lanes", "352",
                          "--server-memory", "256MB", "--tenants", self.folder / f"{name}.toml", *flags)  # fmt: skip
        return self._running.enter_context(serving).address

    def job(self, team: str, switches: list[str], *flags: object) -> Job:
        ranks = Job(
            ATP,
            switches,
            "--server",
            "switch",
            "--job-name",
            f"{team}-net",
            *flags,
            size="1MB",
            key_file=str(self.folder / f"{team}.key"),
        )
        self._running.callback(ranks.end)
        wait_until(lambda: not ranks.runs or self.row(team), f"the job of {team}", 60)
        assert ranks.runs, ranks.outputs()
        return ranks

    def row(self, team: str) -> bool:
        return f'tenant="{team}"' in self.exporter.get("/metrics", Authorization=f"Bearer {KEY}")[1]


class Page(unittest.TestCase):
    def setUp(self) -> None:
        running = contextlib.ExitStack()
        self.addCleanup(running.close)
        self.site = Site(running)
        vision = self.site.job("vision", [self.site.leaves[0]] * 2 + [self.site.leaves[1]] * 2, "--window", 128)
        vision.slow(SLOW_RANK)
        self.site.job("speech", [self.site.leaves[1]] * 3, "--window", 128).slow(0, 0.01, 0.01)
        self.browser = running.enter_context(browser.Browser())

    def text(self) -> str:
        return self.browser.value_of("document.body.innerText")

    def rows(self) -> list[dict[str, str]]:
        """Cells of the table of jobs."""
        return self.browser.value_of("[...document.querySelectorAll('#jobs tbody tr')].map(row => Object.fromEntries("
                                     "[...row.cells].map(cell => [cell.dataset.name, cell.innerText])))")  # fmt: skip

    def open(self) -> None:
        basic = base64.b64encode(f"operator:{KEY}".encode()).decode()
        self.browser.open(f"http://{self.site.exporter.http}/", Authorization=f"Basic {basic}")

    def names_the_slow_rank(self) -> bool:
        """At its leaf, which in other seconds names the whole rack."""
        return any(
            row["tenant"] == "vision"
            and row["switch"] == self.site.leaves[1]
            and f"rank {SLOW_RANK}," in row["waits for"]
            for row in self.rows()
        )

    def assert_content(self) -> None:
        """The tree, and what each job and switch must show."""
        addresses = [self.site.root, *self.site.leaves]
        names = "[...document.querySelectorAll('{}')].map(node => node.innerText)"
        self.assertEqual(self.browser.value_of(names.format("#tree .name")), addresses)
        self.assertEqual(self.browser.value_of(names.format("#tree .kids .name")), self.site.leaves)
        rows = self.rows()
        self.assertEqual(sorted((row["tenant"], row["switch"]) for row in rows),
                         sorted([("vision", address) for address in addresses] + [("speech", self.site.leaves[1])]))  # fmt: skip
        for row in rows:
            self.assertRegex(row["job"], rf"^{row['tenant']}-net [0-9a-f]{{8}}$")
            self.assertRegex(row["members"], r"([23]) of \1$")
            self.assertRegex(row["added"], r"^[1-9][\d.]*( [kM])?/s$")
        wait_until(self.names_the_slow_rank, "the slow rank is named", 60)
        self.assertIn("3 of 3\nswitches up", self.text())
        tree = self.browser.value_of("document.querySelector('#tree').innerText")
        for word in ("collisions", "resends", "drops", "added here", "passed on", "vision", "in use"):
            self.assertGreaterEqual(len(re.findall(rf"\b{word}\b", tree)), 3, word)
        self.assertEqual(self.browser.value_of("document.querySelectorAll('#tree .cells rect').length"), 3 * 160)

    def test_page_shows_switches_and_jobs_at_each_width_and_scheme(self) -> None:
        self.open()
        wait_until(self.names_the_slow_rank, "the slow rank is named", 60)
        if OPTIONS.pictures is not None:
            wait_until(lambda: self.browser.value_of("Math.min(...[...history.values()].map(each => each.length))") >= 60,
                       "the sparklines of a minute", MINUTE_S)  # fmt: skip
        grounds = set()
        for width, height in WIDTHS.items():
            for scheme in SCHEMES:
                self.browser.look_as(width, height, scheme)
                wait_until(lambda: self.browser.value_of("innerWidth") == width, f"the window is {width} wide")  # noqa: B023
                self.assert_content()
                over = self.browser.value_of("document.documentElement.scrollWidth - innerWidth")
                self.assertLessEqual(over, 0, f"at {width} pixels")
                inner = self.browser.value_of("[...document.querySelectorAll('.card')].filter(card => "
                                              "card.scrollWidth > card.clientWidth + 1).map(card => card.innerText)")  # fmt: skip
                self.assertEqual(inner, [], f"cards that are too narrow at {width} pixels")
                grounds.add(self.browser.value_of("getComputedStyle(document.body).backgroundColor"))
                if OPTIONS.pictures is not None:
                    keep(OPTIONS.pictures / f"page-{width}-{scheme}.png", self.browser.picture())
        self.assertEqual(len(grounds), 2, "light and dark differ")
        self.assertEqual(self.browser.complaints(), [])
        origin = f"http://{self.site.exporter.http}/"
        asked = {address for address in self.browser.requested() if not address.startswith("data:")}
        self.assertIn(f"{origin}reports", asked)
        self.assertEqual([address for address in asked if not address.startswith(origin)], [])

    def test_page_says_that_nobody_answers(self) -> None:
        self.open()
        wait_until(lambda: "3 of 3\nswitches up" in self.text(), "the page shows the switches", 60)
        self.site.exporter.stop()
        wait_until(lambda: "no answer:" in self.text(), "the page says that nobody answers")


def keep(path: Path, picture: bytes) -> None:
    if shutil.which("pngquant"):
        picture = subprocess.run(["pngquant", "--speed=1", "--strip", "96", "-"], input=picture, capture_output=True,
                                 check=True, timeout=60).stdout  # fmt: skip
    path.write_bytes(picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=Path)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--install", action="store_true")
    OPTIONS = parser.parse_args()
    ATP = str(OPTIONS.programs.resolve() / "atp")
    if OPTIONS.install and browser.program() is None:
        subprocess.run([str(ROOT / "tools/setup.sh"), "--switch", "chromium", "pngquant"], check=False)
    if browser.program() is None:
        print("skipped: no chromium; tools/setup.sh --switch chromium installs it")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], "-v"])
