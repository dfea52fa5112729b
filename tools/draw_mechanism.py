#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the diagrams of docs/ and README.md, from the tables at the top of this file.

--check draws nothing and reports pictures that differ. The pictures ask for no font and no other file, and follow the
reader's light or dark scheme.

Exit status: 0 the pictures are up to date, 1 --check found others, 2 bad arguments.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True
from source_tree import parser_of, run  # noqa: E402

FOLDER = Path("docs", "images")

# ---------------------------------------------------------------------------------------------------------------- Data

# The mechanism: racks of workers, in the order of the picture.
RACKS = (("rack switch", ("worker 0", "worker 1", "worker 2")), ("rack switch", ("worker 3", "worker 4", "worker 5")))


@dataclass(frozen=True)
class Step:
    """What happens to one aggregator: the event, who is in the sum after it, and what the switch does."""

    event: tuple[str, ...]
    included: tuple[int, ...]
    state: str
    action: tuple[str, ...]
    sends: str = ""


WORKERS_OF_A_LIFE = 4
LIFE = (
    Step(("no packet yet",), (), "free", ("the entry holds", "nothing")),
    Step(("worker 1's packet", "arrives first"), (1,), "claimed", ("keeps the packet's", "numbers")),
    Step(("worker 3's packet",), (1, 3), "gathering", ("adds it",)),
    Step(("packets of", "workers 0 and 2"), (0, 1, 2, 3), "complete", ("sends one sum up,", "and keeps it"), "sum"),
    Step(("the result passes", "on its way down"), (), "free", ("copies it to all,", "and frees the entry"), "result"),
)

# Two detours over the parameter server. A message: from, to, text, kind. Without `to` it is a note at `from`.
PLACES = ("workers", "switch", "parameter server")
DETOURS = (
    (
        "Collision: another fragment holds the aggregator",
        (
            ("workers", "switch", "packet of worker 0", "packet"),
            ("switch", "", "entry in use: cannot add", "note"),
            ("switch", "parameter server", "passes it on", "packet"),
            ("workers", "switch", "packet of worker 1", "packet"),
            ("switch", "parameter server", "passes it on", "packet"),
            ("parameter server", "", "adds both", "note"),
            ("parameter server", "workers", "result", "result"),
        ),
    ),
    (
        "Loss: one packet never arrives",
        (
            ("workers", "switch", "packet of worker 0", "packet"),
            ("switch", "", "holds worker 0's value", "note"),
            ("workers", "switch", "packet of worker 1", "lost"),
            ("workers", "", "later results arrive", "note"),
            ("workers", "switch", "worker 1 sends again", "packet"),
            ("switch", "parameter server", "sum of both", "packet"),
            ("parameter server", "workers", "result", "result"),
        ),
    ),
)

# A cluster under a scheduler: the switch of each rack, its address, and the nodes with the ranks that run there.
SCHEDULED = (
    ("leaf1", "10.0.1.1:4790", (("node a", "rank 0"), ("node b", "rank 1"))),
    ("leaf2", "10.0.2.1:4790", (("node c", "rank 2"), ("node d", "rank 3"))),
)

# -------------------------------------------------------------------------------------------------------------- Drawing

LETTER = 7.4  # widest mean width of a letter, at the size of the text
LINE = 18
# Fill and stroke of each class: light scheme, dark scheme.
COLOURS = {
    ".paper": ("fill:#ffffff", "fill:#12171d"),
    "text": ("fill:#1c2733", "fill:#e4eaf0"),
    ".soft": ("fill:#52606d", "fill:#a9b6c3"),
    ".worker": ("fill:#e6edf8;stroke:#5b7db8", "fill:#1d2b42;stroke:#7c9bd1"),
    ".switch": ("fill:#dcf2e3;stroke:#3f9161", "fill:#173526;stroke:#62b985"),
    ".server": ("fill:#fcecd4;stroke:#bd7f23", "fill:#3d2c12;stroke:#dba452"),
    ".empty": ("fill:none;stroke:#8796a5", "fill:none;stroke:#738292"),
    ".line": ("fill:none;stroke:#44525f", "fill:none;stroke:#b3bfcb"),
    ".result": ("fill:none;stroke:#bd7f23", "fill:none;stroke:#dba452"),
    ".lost": ("fill:none;stroke:#c43d3d", "fill:none;stroke:#ef7b7b"),
    ".life": ("fill:none;stroke:#b5c0cb", "fill:none;stroke:#4a5763"),
    ".tip": ("fill:#44525f", "fill:#b3bfcb"),
    ".tip-result": ("fill:#bd7f23", "fill:#dba452"),
}
FIXED = (
    "text{font:14px system-ui,-apple-system,sans-serif}.title{font-weight:600}"
    ".line,.result,.lost{stroke-width:1.6}.result{stroke-dasharray:5 4}.life{stroke-dasharray:2 4}"
)


def style() -> str:
    light, dark = ("".join(f"{name}{{{of[scheme]}}}" for name, of in COLOURS.items()) for scheme in (0, 1))
    return f"<style>{FIXED}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


@dataclass
class Picture:
    title: str
    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> None:
        shown = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{shown}>{escape(text)}</text>')

    def lines(self, x: float, y: float, lines: tuple[str, ...], kind: str = "") -> None:
        for number, line in enumerate(lines):
            self.text(x, y + number * LINE, line, kind)

    def box(self, x: float, y: float, width: float, height: float, kind: str, *lines: str) -> None:
        """A box with its lines in the middle. A line that would leave the box is an error of the tables."""
        for line in lines:
            if len(line) * LETTER > width:
                raise ValueError(f"{line!r} does not fit a box of {width:g}")
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>')
        self.lines(x + width / 2, y + height / 2 + 5 - (len(lines) - 1) * LINE / 2, lines)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> None:
        tip = "" if kind == "lost" else f' marker-end="url(#{"result" if kind == "result" else "line"})"'
        self.parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{kind}"{tip}/>')

    def cross(self, x: float, y: float) -> None:
        self.parts.append(f'<path d="M{x - 6:g} {y - 6:g}l12 12m0 -12l-12 12" class="lost"/>')

    def svg(self) -> str:
        tips = "".join(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            f' orient="auto" markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z" class="{kind}"/></marker>'
            for name, kind in (("line", "tip"), ("result", "tip-result"))
        )
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img">'
        paper = f'<rect width="{self.width}" height="{self.height}" rx="10" class="paper"/>'
        rows = [
            "<!-- SPDX-License-Identifier: Apache-2.0 -->",
            head,
            f"<title>{escape(self.title)}</title>",
            style(),
            f"<defs>{tips}</defs>",
            paper,
        ]
        return "\n".join([*rows, *self.parts, "</svg>"]) + "\n"


# ------------------------------------------------------------------------------------------------------------- Pictures


def mechanism() -> Picture:
    """Workers at the left, the parameter server at the right; gradients go right, results return below."""
    picture = Picture("Rack switches and a root switch add the packets of six workers on their way up", 920, 370)
    root_y, switch_size, root_x, server_x = 136, (130, 50), 470, 740
    for rack, (name, workers) in enumerate(RACKS):
        top = 24 + rack * 150
        middle = top + len(workers) * 44 / 2 - 4
        for row, worker in enumerate(workers):
            y = top + row * 44
            picture.box(24, y, 100, 34, "worker", worker)
            picture.arrow(124, y + 17, 238, middle + (row - 1) * 12)
        picture.box(240, middle - 25, *switch_size, "switch", name, "adds 3 packets")
        picture.arrow(370, middle, root_x - 2, root_y + 25 + (rack - 0.5) * 20)
        picture.text(408, middle + (-14 if rack == 0 else 24), "1 sum", "soft")
    picture.box(root_x, root_y, *switch_size, "switch", "root switch", "adds 2 sums")
    picture.arrow(root_x + 130, root_y + 25, server_x - 2, root_y + 25)
    picture.text((root_x + 130 + server_x) / 2, root_y + 15, "1 sum", "soft")
    picture.box(server_x, root_y - 12, 156, 74, "server", "parameter server", "adds what no", "switch could")
    picture.parts.append(
        f'<path d="M{server_x + 78} {root_y + 62}V338H74V312" class="result" marker-end="url(#result)"/>'
    )
    picture.text(
        470, 330, "one result, copied by each switch to everyone below it; it is the acknowledgement too", "soft"
    )
    return picture


def fragment() -> Picture:
    """The life of an aggregator, one column for each step."""
    column, cell = 184, 30
    picture = Picture("An aggregator is claimed, added to, complete, and freed by the result", column * len(LIFE), 300)
    for number, step in enumerate(LIFE):
        middle = column * (number + 0.5)
        picture.text(middle, 32, f"{number + 1}", "soft")
        picture.lines(middle, 56, step.event, "title")
        picture.box(middle - 76, 100, 152, 92, "switch" if step.included else "empty")
        picture.text(middle, 122, step.state)
        for worker in range(WORKERS_OF_A_LIFE):
            kind = "worker" if worker in step.included else "empty"
            picture.box(middle - 2 * cell + worker * cell + 1, 136, cell - 2, cell, kind, str(worker))
        picture.text(middle, 184, "in the sum", "soft")
        picture.lines(middle, 218, step.action)
        if step.sends:
            picture.text(middle, 268, f"→ {step.sends}", "soft")
        if number:
            picture.arrow(middle - column + 80, 146, middle - 80, 146)
    return picture


def detours() -> Picture:
    """Two exchanges side by side, time downwards."""
    width, row, top = 460, 34, 92
    picture = Picture("A packet that no switch adds is added by the parameter server", width * len(DETOURS), 400)
    for number, (title, messages) in enumerate(DETOURS):
        left = number * width
        at = {name: left + x for name, x in zip(PLACES, (62, 222, 384))}
        picture.text(left + width / 2, 28, title, "title")
        for name, kind in zip(PLACES, ("worker", "switch", "server")):
            half = len(name) * LETTER / 2 + 8
            picture.box(at[name] - half, 44, 2 * half, 30, kind, name)
            picture.parts.append(f'<path d="M{at[name]:g} 76V384" class="life"/>')
        for index, (origin, goal, text, kind) in enumerate(messages):
            y = top + row * (index + 0.6) + index * 7
            if not goal:
                side = -8 if origin == PLACES[-1] else 8
                picture.text(at[origin] + side, y, text, "soft", "end" if side < 0 else "start")
                continue
            start, end = at[origin], at[goal]
            picture.text((start + end) / 2, y - 7, text)
            if kind == "lost":
                picture.arrow(start + 3, y, (start + end) / 2, y, "lost")
                picture.cross((start + end) / 2 + 8, y)
                continue
            side = 3 if end > start else -3
            picture.arrow(start + side, y, end - side, y, "result" if kind == "result" else "line")
    return picture


def schedulers() -> Picture:
    """The scheduler at the left, nodes of two racks, their switches, and the root at the right."""
    picture = Picture("A scheduler places ranks, and each node names the switch of its rack", 920, 356)
    node_height, rack_height, middle = 56, 152, 164
    picture.box(24, middle - 25, 124, 50, "empty", "scheduler", "places ranks")
    picture.box(776, middle - 25, 120, 50, "switch", "root switch")
    for rack, (switch, address, nodes) in enumerate(SCHEDULED):
        top = 22 + rack * rack_height
        rack_middle = top + node_height + 6
        for row, (node, rank) in enumerate(nodes):
            y = top + row * (node_height + 12)
            picture.arrow(148, middle + (2 * rack + row - 1.5) * 10, 236, y + node_height / 2)
            picture.box(238, y, 236, node_height, "worker", f"{node}: {rank}", f"ATP_SWITCH={address}")
            picture.arrow(474, y + node_height / 2, 556, rack_middle + (row - 0.5) * 20)
        picture.box(558, rack_middle - 25, 132, 50, "switch", switch, address)
        picture.arrow(690, rack_middle, 774, middle + (rack - 0.5) * 20)
    picture.text(460, 338, "The job names no switch: the node's prolog, or its pod, does.", "soft")
    return picture


PICTURES = {
    "mechanism.svg": mechanism,
    "fragment.svg": fragment,
    "detours.svg": detours,
    "schedulers.svg": schedulers,
}


def main(arguments) -> list[str]:
    violations = []
    for name, draw in PICTURES.items():
        path, text = arguments.root / FOLDER / name, draw().svg()
        if path.exists() and path.read_text() == text:
            continue
        if arguments.check:
            violations.append(f"{FOLDER / name}: differs from its data: run tools/draw_mechanism.py")
        else:
            path.write_text(text)
    return violations


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("--check", action="store_true", help="report pictures that differ; write nothing")
    sys.exit(run(main, parser))
