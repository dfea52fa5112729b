#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw recordings of terminals, docs/images/*.cast, as SVG beside them, or record a command first.

  tools/draw_session.py                              draw all recordings
  tools/draw_session.py --record NAME -- COMMAND     run COMMAND in a terminal, then draw docs/images/NAME.svg

A recording is an asciicast of version 2: a header, then a line for each output with its time. Nobody edits it. These
rules make it short:

1. While it is recorded, output that leaves the screen as it was is left out, and the path of the repository becomes
   ~/atp.
2. A pause longer than 1 s is drawn as 1 s. If the picture would play longer than 20 s, all times shrink to that.
3. Of a line that is written several times, at most 8 states are drawn, at even distances, and the last one.
4. If all of it would play for less than 3 s, only the last screen is drawn, at its whole length.

The picture plays once and then shows the last screen, as it does at once for readers who prefer no motion. Its text can
be selected; it has no script, asks for no font and no other file, and follows the reader's light or dark scheme.

Exit status: 0 drawn, 1 --check found a picture that differs, 2 bad arguments, or a recording that cannot be drawn.
"""

from __future__ import annotations

import codecs
import datetime
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True
from source_tree import Missing, parser_of, run  # noqa: E402

FOLDER = Path("docs", "images")
SHOWN_ROOT = "~/atp"
LONGEST_PAUSE, LONGEST, STILL = 1.0, 20.0, 3.0  # seconds
MOST_STATES = 8
MOST_BYTES = 60_000  # of a picture
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")

# ------------------------------------------------------------------------------------------------------------- Terminal


class Event(NamedTuple):
    time: float
    text: str


Cell = tuple[str, str]  # letter, classes of its style


class Terminal:
    """The rows that a program wrote, those that left the screen too. It knows what the programs of this repository print:
    letters, CR, LF, backspace, tab, "erase the rest of the line", and colours."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[list[Cell]] = [[]]
        self._row = self._column = 0
        self._style: dict[str, None] = {}
        self._rest = ""  # the begin of a sequence

    def write(self, text: str) -> None:
        text = self._rest + text
        self._rest = ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self._letter(text[at])
                at += 1
            elif match := SEQUENCE.match(text, at):
                self._control(match[2], match[1])
                at = match.end()
            elif re.fullmatch(r"\x1b(\[[0-9;?]*)?", text[at:]):
                self._rest = text[at:]
                return
            else:
                raise Missing(f"the terminal does not know {text[at : at + 8]!r}: teach it to tools/draw_session.py")

    def _letter(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\b":
            self._column = max(self._column - 1, 0)
        elif letter == "\n":
            self._next_row()
        elif letter == "\t":
            self._column = min((self._column // 8 + 1) * 8, self.columns - 1)
        elif letter >= " ":
            if self._column == self.columns:
                self._next_row()
                self._column = 0
            cells = self.rows[self._row]
            cells += [(" ", "")] * (self._column + 1 - len(cells))
            cells[self._column] = (letter, " ".join(self._style))
            self._column += 1

    def _next_row(self) -> None:
        self._row += 1
        if self._row == len(self.rows):
            self.rows.append([])

    def _control(self, name: str, parameters: str) -> None:
        if name == "K" and parameters in ("", "0"):
            del self.rows[self._row][self._column :]
        elif name == "m":
            for each in parameters.split(";"):
                self._colour(int(each or 0))
        elif name not in "hl":
            raise Missing(f"the terminal does not know the sequence {name}: teach it to tools/draw_session.py")

    def _colour(self, code: int) -> None:
        if code in (0, 22, 39):
            self._style.clear()
        elif code == 1:
            self._style["b"] = None
        elif code == 2:
            self._style["d"] = None
        elif 30 <= code % 60 <= 37:
            self._style = {style: None for style in self._style if not style.startswith("c")}
            self._style[f"c{code % 10}"] = None

    def shown(self) -> list[tuple[Cell, ...]]:
        """The rows without what nobody sees."""
        rows = []
        for cells in self.rows:
            last = max((at for at, cell in enumerate(cells, 1) if cell[0] != " "), default=0)
            rows.append(tuple(cells[:last]))
        while rows and not rows[-1]:
            rows.pop()
        return rows


# ------------------------------------------------------------------------------------------------------------ Recording


def outputs_of(command: list[str], columns: int, rows: int) -> Iterator[Event]:
    """Runs the command in a terminal of this size. The last event is its exit status."""
    begin = time.monotonic()
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm"
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and children inherit that
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}")
            os._exit(127)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux's answer after the last writer left
            data = b""
        if not data:
            break
        yield Event(time.monotonic() - begin, decoder.decode(data))
    os.close(terminal)
    yield Event(time.monotonic() - begin, str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])))


def record(root: Path, command: list[str], columns: int, rows: int) -> str:
    """The text of a recording."""
    terminal = Terminal(columns)
    events: list[Event] = []
    *outputs, end = outputs_of(command, columns, rows)
    pending = ""
    for output in outputs:
        pending += output.text
        before = terminal.shown()
        # A path that is not complete yet waits for its rest.
        if (
            any(pending.endswith(str(root)[:length]) for length in range(1, len(str(root))))
            and output is not outputs[-1]
        ):
            continue
        text, pending = pending.replace(str(root), SHOWN_ROOT), ""
        terminal.write(text)
        if terminal.shown() != before or "\n" in text:
            events.append(Event(round(output.time, 2), text))
    revision = subprocess.run(["git", "-C", root, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True,
                              check=False).stdout.strip()  # fmt: skip
    header = {
        "version": 2,
        "width": columns,
        "height": rows,
        "command": shlex.join(command).replace(str(root), SHOWN_ROOT),
        "exit_status": int(end.text),
        "duration": round(end.time, 1),
        "revision": revision,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    lines = [json.dumps(header), *(json.dumps([each.time, "o", each.text], ensure_ascii=False) for each in events)]
    return "\n".join([*lines, ""])


# --------------------------------------------------------------------------------------------------------------- Timing


def shortened(events: list[Event]) -> list[Event]:
    """The events with the times of the picture."""
    times, before, now = [], 0.0, 0.0
    for event in events:
        now += min(event.time - before, LONGEST_PAUSE)
        before = event.time
        times.append(now)
    factor = min(1.0, LONGEST / now) if now else 1.0
    return [Event(round(at * factor, 2), event.text) for at, event in zip(times, events)]


class State(NamedTuple):
    time: float
    cells: tuple[Cell, ...]


@dataclass
class Row:
    states: list[State] = field(default_factory=list)

    def add(self, at: float, cells: tuple[Cell, ...]) -> None:
        if self.states and self.states[-1].time == at:
            self.states.pop()
        if (self.states[-1].cells if self.states else ()) != cells:
            self.states.append(State(at, cells))

    def thin(self) -> None:
        """Keeps MOST_STATES states at even distances, and the last one."""
        count = len(self.states) - 1
        if count > MOST_STATES:
            kept = sorted({round(number * (count - 1) / (MOST_STATES - 1)) for number in range(MOST_STATES)})
            self.states = [*(self.states[number] for number in kept), self.states[-1]]


def rows_of(events: list[Event], columns: int) -> tuple[list[Row], list[tuple[float, int]]]:
    """The rows with their states, and how many rows there are from which time on."""
    terminal = Terminal(columns)
    rows: list[Row] = []
    counts: list[tuple[float, int]] = []
    for event in events:
        terminal.write(event.text)
        shown = terminal.shown()
        rows += [Row() for _ in range(len(shown) - len(rows))]
        for number, row in enumerate(rows):
            row.add(event.time, shown[number] if number < len(shown) else ())
        if not counts or counts[-1][1] < len(shown):
            counts.append((event.time, len(shown)))
    for row in rows:
        row.thin()
    while rows and (not rows[-1].states or not rows[-1].states[-1].cells):
        counts = [(at, min(count, len(rows) - 1)) for at, count in counts]
        rows.pop()
    return rows, counts


# -------------------------------------------------------------------------------------------------------------- Drawing

LETTER, LINE, EDGE, HEAD = 7.83, 18, 16, 36
# Light scheme, dark scheme. c1 to c7 are the terminal's colours.
COLOURS = {
    ".paper": ("fill:#ffffff;stroke:#d5dce3", "fill:#12171d;stroke:#2b3540"),
    ".rule": ("stroke:#d5dce3", "stroke:#2b3540"),
    "text": ("fill:#1c2733", "fill:#e4eaf0"),
    ".soft,.d": ("fill:#52606d", "fill:#a9b6c3"),
    ".c1": ("fill:#b3261e", "fill:#ff8f85"),
    ".c2": ("fill:#1a7338", "fill:#6fd08c"),
    ".c3": ("fill:#8a5a00", "fill:#e5b567"),
    ".c4": ("fill:#2453a8", "fill:#8ab4f8"),
    ".c5": ("fill:#8128a0", "fill:#d7a1ec"),
    ".c6": ("fill:#00697a", "fill:#6cc7d6"),
    ".c7": ("fill:#52606d", "fill:#a9b6c3"),
}


def style_of(scrolls: list[tuple[float, int]], length: float) -> str:
    light, dark = ("".join(f"{name}{{{of[scheme]}}}" for name, of in COLOURS.items()) for scheme in (0, 1))
    fixed = "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}.b{font-weight:700}"
    motion = ""
    if length:
        motion = (
            "@keyframes a{from,to{visibility:hidden}}@keyframes g{from,to{visibility:visible}}"
            ".a{animation:a 1ms backwards}.g{visibility:hidden}"
        )
        if scrolls:
            steps = "".join(f"{at / length:.2%}{{transform:translateY({-lines * LINE}px)}}" for at, lines in scrolls)
            motion += (f"@keyframes s{{0%{{transform:none}}{steps}}}"
                       f".s{{transform:translateY({-scrolls[-1][1] * LINE}px);animation:s {length:g}s step-end}}")  # fmt: skip
        motion += "@media(prefers-reduced-motion:reduce){.a,.s{animation:none}.g{display:none}}"
    return f"<style>{fixed}{light}{motion}@media(prefers-color-scheme:dark){{{dark}}}</style>"


def marked(cells: tuple[Cell, ...]) -> str:
    pieces: list[list[str]] = []
    for letter, style in cells:
        if not pieces or pieces[-1][1] != style:
            pieces.append(["", style])
        pieces[-1][0] += letter
    return "".join(
        f'<tspan class="{style}">{escape(text)}</tspan>' if style else escape(text) for text, style in pieces
    )


def texts_of(row: Row, y: int, moves: bool) -> Iterator[str]:
    """A text for each state. All but the last vanish when the next begins."""
    for number, state in enumerate(row.states):
        last = number == len(row.states) - 1
        if not state.cells or not (moves or last):
            continue
        how = ""
        if moves and not last:
            shown = row.states[number + 1].time - state.time
            how = f' class="g" style="animation:g {shown:.2f}s {state.time:.2f}s"'
        elif moves and state.time > 0:
            how = f' class="a" style="animation-delay:{state.time:.2f}s"'
        yield f'<text y="{y}"{how}>{marked(state.cells)}</text>'


def drawn(recording: str) -> str:
    """The picture of a recording."""
    try:
        header, *lines = [json.loads(line) for line in recording.splitlines()]
        columns, height = int(header["width"]), int(header["height"])
        outputs = [Event(at, text) for at, kind, text in lines if kind == "o"]
    except (ValueError, KeyError, TypeError) as error:
        raise Missing(f"no recording of version 2: {error!r}") from None
    prompt = Event(0, f"\x1b[2m$ \x1b[0m\x1b[1m{header['command']}\x1b[0m\r\n")
    events = [prompt, *shortened(outputs)]
    rows, counts = rows_of(events, columns)
    moves = events[-1].time >= STILL
    height = min(height, len(rows)) if moves else len(rows)
    scrolls = [(at, count - height) for at, count in counts if count > height] if moves else []
    return "\n".join([*picture_of(header, rows, scrolls, height, events[-1].time if moves else 0), ""])


def picture_of(header: dict[str, Any], rows: list[Row], scrolls: list, height: int, length: float) -> Iterator[str]:
    width, tall = round(header["width"] * LETTER) + 2 * EDGE, HEAD + height * LINE + EDGE + 8
    took = f"{header['duration']:g} s" + (f", shown in {length:.0f} s" if length else "")
    caption = f"recorded {header['date']} at revision {header['revision']}, took {took}"
    yield "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" role="img">'
    yield f"<title>A terminal that ran {escape(header['command'])}, {caption}</title>"
    yield style_of(scrolls, length)
    yield f'<rect x=".5" y=".5" width="{width - 1}" height="{tall - 1}" rx="10" class="paper"/>'
    yield f'<path d="M1 {HEAD - 8}H{width - 1}" class="rule"/>'
    yield f'<text x="{EDGE}" y="19" class="soft">{escape(caption)}</text>'
    yield (f'<svg x="{EDGE}" y="{HEAD}" width="{width - 2 * EDGE}" height="{height * LINE + 6}" '
           'xml:space="preserve"><g class="s">')  # fmt: skip
    for number, row in enumerate(rows):
        yield from texts_of(row, (number + 1) * LINE - 4, length > 0)
    yield "</g></svg>"
    yield "</svg>"


def main(arguments) -> list[str]:
    folder: Path = arguments.root / FOLDER
    if bool(arguments.record) != bool(arguments.command):
        raise Missing("--record NAME needs a COMMAND behind --, and the other way round")
    if arguments.record:
        text = record(arguments.root, arguments.command, arguments.columns, arguments.rows)
        (folder / f"{arguments.record}.cast").write_text(text, encoding="utf-8")
    violations = []
    for recording in sorted(folder.glob("*.cast")):
        picture = recording.with_suffix(".svg")
        text = drawn(recording.read_text(encoding="utf-8"))
        if len(text.encode()) > MOST_BYTES:
            raise Missing(f"{FOLDER / picture.name} would have {len(text.encode())} bytes, more than {MOST_BYTES}")
        if picture.exists() and picture.read_text(encoding="utf-8") == text:
            continue
        if arguments.check:
            violations.append(f"{FOLDER / picture.name}: differs from {recording.name}: run tools/draw_session.py")
        else:
            picture.write_text(text, encoding="utf-8")
    return violations


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("--check", action="store_true", help="report pictures that differ; write nothing")
    parser.add_argument("--record", metavar="NAME", help="run COMMAND and write docs/images/NAME.cast first")
    parser.add_argument("--columns", type=int, default=100, help="columns of the terminal [100]")
    parser.add_argument("--rows", type=int, default=24, help="rows of the terminal [24]")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="what to run, behind --")
    sys.exit(run(main, parser))
