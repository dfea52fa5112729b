#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/draw_results.py, bench/page.py and tools/draw_session.py with what they must draw or reject.

usage: pictures_test.py SOURCE_DIR
"""

import json
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
import draw_session  # noqa: E402  tools/draw_session.py
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


class Sessions(Tree):
    def setUp(self) -> None:
        super().setUp()
        self.folder = self.root / "docs/images"
        self.folder.mkdir(parents=True)

    def recording(self, *events: tuple[float, str], width: int = 20, height: int = 4) -> str:
        header = {"width": width, "height": height, "command": "./a", "duration": events[-1][0]}
        header |= {"revision": "0123abcd", "date": "2026-11-27"}
        return "\n".join([json.dumps(header), *(json.dumps([at, "o", text]) for at, text in events)])

    def texts_of(self, picture: str) -> list[str]:
        """The lines of the terminal in all of their states."""
        terminal = xml.etree.ElementTree.fromstring(picture).find(f"{SVG}svg")
        assert terminal is not None
        return ["".join(text.itertext()) for text in terminal.iter(f"{SVG}text")]

    def test_terminal_wraps_rewrites_and_colours(self) -> None:
        terminal = draw_session.Terminal(6)
        for text in ("abcdefgh\r\n", "12345\r9\x1b[K\n", "\rx\ty\b\b\bz\r\n", "\x1b[1;3", "1mr\x1b[0m."):
            terminal.write(text)
        rows = terminal.shown()
        self.assertEqual(
            ["".join(letter for letter, _ in row) for row in rows], ["abcdef", "gh", "9", "x  z y"[:6], "r."]
        )
        self.assertEqual(rows[-1], (("r", "b c1"), (".", "")))

    def test_terminal_refuses_what_it_does_not_know(self) -> None:
        for text in ("\x1b[2A", "\x1b]0;title\x07"):
            with self.assertRaises(draw_session.Missing):
                draw_session.Terminal(80).write(text)

    def test_pauses_are_shortened_and_then_the_whole(self) -> None:
        times = [
            event.time for event in draw_session.shortened([draw_session.Event(at, "") for at in (0.5, 60, 60.25)])
        ]
        self.assertEqual(times, [0.5, 1.5, 1.75])
        long = draw_session.shortened([draw_session.Event(float(at), "") for at in range(41)])
        self.assertEqual([long[20].time, long[40].time], [10, 20])

    def test_a_line_that_is_rewritten_keeps_few_states_and_the_last(self) -> None:
        row = draw_session.Row([draw_session.State(at, ((str(at), ""),)) for at in range(100)])
        row.thin()
        self.assertEqual([state.time for state in row.states], [0, 14, 28, 42, 56, 70, 84, 98, 99])

    def test_a_short_session_is_drawn_still_and_whole(self) -> None:
        picture = draw_session.drawn(self.recording((0.1, "\rwait"), (0.2, "\r\x1b[K1\r\n2\r\n3\r\n4\r\n5\r\n")))
        self.assertEqual(self.texts_of(picture), ["$ ./a", "1", "2", "3", "4", "5"])
        self.assertNotIn("animation", picture)

    def test_a_long_session_moves_and_ends_with_the_last_screen(self) -> None:
        events = [(float(at), f"\r\x1b[Kstep {at}") for at in range(3)]
        picture = draw_session.drawn(self.recording(*events, (3.0, "\r\x1b[K"), (4.0, "1\r\n2\r\n3\r\n4\r\n")))
        self.assertEqual(self.texts_of(picture), ["$ ./a", "step 0", "step 1", "step 2", "1", "2", "3", "4"])
        # What vanished is hidden and the rows are scrolled, also where nothing moves.
        self.assertEqual(picture.count('class="g"'), 3)
        self.assertIn(f".s{{transform:translateY(-{draw_session.LINE}px)", picture)
        self.assertIn("prefers-reduced-motion", picture)
        self.assertIn("prefers-color-scheme", picture)

    def test_records_a_command_with_its_size_and_without_the_path_of_the_repository(self) -> None:
        (self.root / "a.sh").write_text('stty size\necho "in $PWD/b"\necho done >&2\nexit 3\n')
        command = ["sh", "-c", f"cd {self.root} && sh a.sh"]
        flags = ["--record", "a", "--columns", "60", "--rows", "9", "--", *command]
        self.assertEqual(self.run_tool("draw_session.py", *flags)[0], 0)
        recording = (self.folder / "a.cast").read_text(encoding="utf-8")
        self.assertNotIn(str(self.root), recording)
        self.assertEqual(json.loads(recording.partition("\n")[0])["exit_status"], 3)
        picture = (self.folder / "a.svg").read_text(encoding="utf-8")
        shown = ["$ sh -c 'cd ~/atp && sh a.sh'", "9 60", "in ~/atp/b", "done"]
        self.assertEqual(self.texts_of(picture), shown)

    def test_a_picture_that_differs_from_its_recording_fails(self) -> None:
        (self.folder / "a.cast").write_text(self.recording((0.1, "b\r\n")), encoding="utf-8")
        complaint = "docs/images/a.svg: differs from a.cast: run tools/draw_session.py"
        self.assertEqual(self.run_tool("draw_session.py", "--check")[1][:-1], [complaint])
        self.assertEqual(self.run_tool("draw_session.py")[0], 0)
        self.assertEqual(self.run_tool("draw_session.py", "--check")[0], 0)

    def test_a_recording_that_cannot_be_read_is_an_error(self) -> None:
        (self.folder / "a.cast").write_text("{}\n", encoding="utf-8")
        self.assertEqual(self.run_tool("draw_session.py", "--check")[0], 2)

    def test_pictures_are_small_and_load_nothing(self) -> None:
        for recording in (ROOT / "docs/images").glob("*.cast"):
            picture = recording.with_suffix(".svg").read_text(encoding="utf-8")
            self.assertLess(len(picture.encode()), draw_session.MOST_BYTES)
            for loader in ("<script", "<image", "@import", "url(", "href", "@font-face"):
                self.assertNotIn(loader, picture)


if __name__ == "__main__":
    unittest.main()
