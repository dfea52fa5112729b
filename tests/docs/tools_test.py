#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/prose and tools/check_results with trees that they must reject.

usage: tools_test.py SOURCE_DIR
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
# What tools/provenance.py reads, and the pages.
READ = (
    "src/machines/wire/format.h",
    "src/machines/protocol/channel.h",
    "src/drivers/comm/options.h",
    "examples/tales.py",
)


class Tree(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_tool(self, name: str, *arguments: str) -> tuple[int, list[str]]:
        command = [sys.executable, "-B", ROOT / "tools" / name, "--root", self.root, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, (done.stdout + done.stderr).splitlines()[:-1]


class Prose(Tree):
    def expect(self, name: str, text: str, *complaints: str) -> None:
        self.write(name, text)
        self.assertEqual(self.run_tool("prose", "--check"), (1 if complaints else 0, list(complaints)))

    def test_reports_a_page_that_is_too_long(self) -> None:
        self.expect("docs/a.md", "word " * 1501, "docs/a.md:1: 1501 words, more than 1500: shorten or divide the page")

    def test_gives_kinds_of_pages_their_limits(self) -> None:
        self.write("docs/spec/joining.md", "word " * 4500)
        self.write("docs/develop/a.md", "word " * 3000)
        self.expect(
            "docs/index.md", "word " * 201, "docs/index.md:1: 201 words, more than 200: shorten or divide the page"
        )

    def test_reports_all_pages_that_are_too_long_together(self) -> None:
        for number in range(50):
            self.write(f"docs/{number}.md", "word " * 1500)
        self.write("docs/results/a.md", "# A\n\nWritten by `a`.\n" + "word " * 5000)
        self.expect("README.md", "word\n", "docs: 75000 hand-written words, more than 61300: shorten")

    def test_reports_a_cell_that_refers_to_another(self) -> None:
        text = "| a | the same |\n| `the same` | that of a |\n\nThe same, in prose.\n"
        wrong = [f'docs/a.md:{line}: a cell says "{words}": repeat what it refers to'
                 for line, words in ((1, "the same"), (2, "that of"))]  # fmt: skip
        self.expect("docs/a.md", text, *wrong)

    def test_reports_idioms_outside_of_code(self) -> None:
        text = "It travels as\nint16, no more\nthan `alike`.\n\n```\nlikewise\n```\nNo more.\n"
        wrong = ['docs/a.md:1: "travels as": write is sent as', 'docs/a.md:8: "No more": write no longer']
        self.expect("docs/a.md", text, *wrong)

    def test_skips_what_a_program_writes(self) -> None:
        written = "<!-- tools/write_wire writes the types. -->\n| the same |\n<!-- End of the written part. -->\n"
        self.expect("docs/a.md", written)

    def test_prints_figures_of_a_page(self) -> None:
        self.write("docs/a.md", "# Title\n\nYou send a packet, because it waits. It is the size of the end of it.\n")
        status, lines = self.run_tool("prose")
        self.assertEqual(status, 0)
        self.assertEqual(lines[1].split(), ["docs/a.md", "17", "2", "8.0", "50", "50", "0", "625", "0"])


class Results(Tree):
    def setUp(self) -> None:
        super().setUp()
        for name in READ:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for page in (ROOT / "docs/results").glob("*.md"):
            self.write(f"docs/results/{page.name}", page.read_text(encoding="utf-8"))
        self.assertEqual(self.run_tool("check_results")[0], 0)

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text(encoding="utf-8")
        self.assertIn(old, text)
        self.write(name, text.replace(old, new))

    def test_a_new_default_window_makes_every_page_fail(self) -> None:
        self.replace("src/machines/protocol/channel.h", "256U << 10U", "512U << 10U")
        status, lines = self.run_tool("check_results")
        self.assertEqual(status, 1)
        pages = [page for page in (ROOT / "docs/results").glob("*.md") if page.name != "index.md"]
        # Pages that were measured with a window of 256 fit this trial in that point, but their line is another.
        self.assertEqual(len(lines), len(pages))
        self.assertEqual(self.run_tool("check_results", "--write")[0], 0)
        self.assertIn(
            "default window 128 (now 256)", (self.root / "docs/results/pytorch.md").read_text(encoding="utf-8")
        )

    def test_a_new_header_makes_every_page_fail(self) -> None:
        self.replace("src/machines/wire/format.h", "#define ATP_HEADER_BYTES 56u", "#define ATP_HEADER_BYTES 64u")
        self.assertEqual(self.run_tool("check_results")[0], 1)

    def test_a_page_without_provenance_fails(self) -> None:
        self.write("docs/results/new.md", "# New\n\nWritten by `a`.\n")
        status, lines = self.run_tool("check_results")
        self.assertEqual(status, 1)
        self.assertIn("docs/results/new.md:1: no line of provenance", lines[0])

    def test_what_is_not_recorded_counts_as_older(self) -> None:
        self.write("docs/results/new.md", "# New\n\n<!-- provenance: {} -->\n\nWritten by `a`.\n")
        self.assertEqual(self.run_tool("check_results", "--write")[0], 0)
        text = (self.root / "docs/results/new.md").read_text(encoding="utf-8")
        self.assertIn("\n\n**Measured before** the code changed, at revision not recorded", text)
        self.assertIn("header bytes not recorded (now ", text)

    def test_a_line_that_is_no_longer_true_goes(self) -> None:
        page = "docs/results/pytorch.md"
        text = (self.root / page).read_text(encoding="utf-8")
        self.write(page, text.replace("\n\n", "\n\n**Measured before** the code changed.\n\n", 1))
        self.assertEqual(self.run_tool("check_results")[0], 1)
        self.assertEqual(self.run_tool("check_results", "--write")[0], 0)
        self.assertEqual((self.root / page).read_text(encoding="utf-8"), text)

    def test_a_default_that_moved_is_named(self) -> None:
        self.replace("src/machines/protocol/channel.h", "std::uint32_t bytes", "std::uint32_t most_bytes")
        status, lines = self.run_tool("check_results")
        self.assertEqual(status, 2)


if __name__ == "__main__":
    unittest.main()
