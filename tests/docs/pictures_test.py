#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/draw_results.py and bench/page.py with pages whose chart they must draw or reject.

usage: pictures_test.py SOURCE_DIR
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import draw_results  # noqa: E402  tools/draw_results.py
import page as results_page  # noqa: E402  bench/page.py

SVG = "{http://www.w3.org/2000/svg}"


class Tree(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()

    def run_tool(self, name: str, *arguments: str | Path) -> tuple[int, list[str]]:
        command = [sys.executable, "-B", ROOT / "tools" / name, "--root", self.root, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, (done.stdout + done.stderr).splitlines()


class Charts(Tree):
    def setUp(self) -> None:
        super().setUp()
        self.pages = self.root / "docs/results"
        (self.pages / "figures").mkdir(parents=True)
        for name in draw_results.CHARTS:
            for file in (f"{name}.md", f"figures/{name}.svg"):
                shutil.copy(ROOT / "docs/results" / file, self.pages / file)

    def replace(self, old: str, new: str, count: int = 1) -> None:
        page = self.pages / "real-packets.md"
        text, replaced = re.subn(old, new, page.read_text(encoding="utf-8"), count=count)
        self.assertTrue(replaced, old)
        page.write_text(text, encoding="utf-8")

    def expect_fixed(self, complaint: str) -> None:
        status, lines = self.run_tool("draw_results.py", "--check")
        self.assertEqual((status, lines[:-1]), (1, [complaint]))
        self.assertEqual(self.run_tool("draw_results.py")[0], 0)
        self.assertEqual(self.run_tool("draw_results.py", "--check")[0], 0)

    def test_a_chart_older_than_its_table_fails(self) -> None:
        self.replace(r"(goodput relative to Gloo \| )[\d.]+", r"\g<1>4.56")
        svg = "docs/results/figures/real-packets.svg"
        self.expect_fixed(f"{svg}: differs from the tables of real-packets.md: run tools/draw_results.py")
        self.assertIn(">4.56</text>", (self.root / svg).read_text(encoding="utf-8"))

    def test_a_chart_of_an_older_revision_fails(self) -> None:
        self.replace('"revision": "', '"revision": "0')
        self.assertEqual(self.run_tool("draw_results.py", "--check")[0], 1)

    def test_a_page_that_does_not_show_its_chart_fails(self) -> None:
        self.replace("figures/real-packets.svg", "figures/other.svg")
        complaint = "docs/results/real-packets.md: does not show its chart: run tools/draw_results.py"
        self.expect_fixed(complaint)

    def test_a_page_without_rows_is_an_error(self) -> None:
        self.replace("goodput relative to Gloo", "goodput beside Gloo", count=0)
        self.assertEqual(self.run_tool("draw_results.py", "--check")[0], 2)

    def test_charts_have_a_bar_for_each_row_and_load_nothing(self) -> None:
        for name in draw_results.CHARTS:
            text = (self.pages / f"figures/{name}.svg").read_text(encoding="utf-8")
            drawing = xml.etree.ElementTree.fromstring(text)
            bars = draw_results.bars_of(
                (self.pages / f"{name}.md").read_text(encoding="utf-8"), draw_results.CHARTS[name]
            )
            self.assertGreater(len(bars), 4, name)
            self.assertEqual(len(drawing.findall(f"{SVG}rect")), len(bars) + 1, name)
            for loader in ("<script", "<image", "@import", "url(", "href"):
                self.assertNotIn(loader, text)

    def test_cells_give_ratios(self) -> None:
        self.assertEqual(draw_results.ratio_of("1.47"), (1.47, 0, "1.47"))
        self.assertEqual(draw_results.ratio_of("0.983 ± 0.010"), (0.983, 0.01, "0.983 ± 0.010"))
        self.assertEqual(draw_results.ratio_of("3.0 and 2.0 MB"), (1.5, 0, "1.5000"))
        self.assertIsNone(draw_results.ratio_of("never"))

    def test_ticks_are_round_and_cover_the_bars(self) -> None:
        self.assertEqual(draw_results.ticks_of(0, 4.88), [0, 1, 2, 3, 4, 5])
        self.assertEqual(draw_results.ticks_of(0, 1.2), [0, 0.5, 1, 1.5])

    def test_a_program_that_writes_a_page_draws_its_chart(self) -> None:
        part = results_page.Part("Links")
        for workers in (4, 8):
            part.add(f"{workers} workers: steps per second relative to Gloo", 1.5)
        written = self.root / "training.md"
        results_page._write(results_page.Page("Training", "bench/training_bars", {}), [part], written)
        text = written.read_text(encoding="utf-8")
        self.assertIn("\n\n![Training steps per second relative to Gloo](figures/training.svg)\n\n## Links\n", text)
        chart = (self.root / "figures/training.svg").read_text(encoding="utf-8")
        self.assertEqual(chart, draw_results.drawn(text, "training"))
        results_page._write(results_page.Page("Notes", "bench/notes", {}), [part], self.root / "notes.md")
        self.assertFalse((self.root / "figures/notes.svg").exists())


if __name__ == "__main__":
    unittest.main()
