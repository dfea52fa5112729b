#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw one chart for each page of docs/results that has tables of ratios, from these tables.

The chart lies beside the page as figures/PAGE.svg, and a line above the page's first section shows it. Programs that
write such a page call draw_page() afterwards. --check writes nothing and reports charts that are older than their
table. The charts ask for no font and no other file, and follow the reader's light or dark scheme.

Exit status: 0 the charts are up to date, 1 --check found others, 2 bad arguments, or a page without rows to draw.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import provenance  # noqa: E402
from source_tree import Missing, parser_of, run  # noqa: E402

PAGES = Path("docs", "results")
FOLDER = "figures"  # beside the page

# ---------------------------------------------------------------------------------------------------------------- Data


@dataclass(frozen=True)
class Rows:
    """Rows of a page that become bars: those whose first `naming` cells, joined by ": ", match `pattern` as a whole, in
    tables with a column `value`. `label` names the bar and `heading` its group; both may use the pattern's groups, and
    {section}. A cell is a number, "number ± error", or "A and B ...", which stands for A / B."""

    pattern: str
    heading: str = "{section}"
    label: str = "{label}"
    naming: int = 1
    value: str = "figure"


@dataclass(frozen=True)
class Chart:
    """`better` says on which side of 1.0 ATP does better: "above", "below", or "" if neither. The bars begin at `base`."""

    title: str
    axis: str
    rows: tuple[Rows, ...]
    better: str = "above"
    base: float = 0


CHARTS = {
    "real-packets": Chart(
        "Goodput of an all-reduce relative to Gloo",
        "goodput of ATP ÷ goodput of Gloo; above 1 ATP is faster",
        (
            Rows("(?P<label>.*): goodput relative to Gloo"),
            Rows("(?P<label>.*): goodput relative to (?P<peer>Gloo .*)", label="{label}; {peer}"),
        ),
    ),
    "training": Chart(
        "Training steps per second relative to Gloo",
        "steps per second with ATP ÷ with Gloo; above 1 ATP is faster",
        (Rows("(?P<label>.*): steps per second relative to Gloo"),),
    ),
    "xdp": Chart(
        "Processor time of the switch in the kernel, relative to the switch in user space",
        "CPU seconds per GB in the kernel ÷ in user space; below 1 the kernel switch needs less",
        (Rows("(?P<setup>.*): CPU seconds per GB of (?P<label>.*), relative to the switch in user space", "{setup}"),),
        better="below",
    ),
    "agreement": Chart(
        "Sockets relative to the simulator",
        "measured with sockets ÷ simulated; 1 is perfect agreement",
        (
            Rows("(?P<label>[^:]*): relative difference.*", value=""),
            Rows("(?P<label>[^:]*): deviation", value=""),
        ),
        better="",
        base=1,
    ),
    "accuracy": Chart(
        "Sums of integers relative to sums of floats, and to Gloo's sums",
        "steps or error with ATP ÷ those of the reference; below 1 ATP does better",
        (
            Rows("(?P<label>atp.*)", "{section}: steps to the target, relative to floats", value="relative to floats"),
            Rows(
                "(?P<model>.*): (?P<type>.*): (?P<label>atp.*)",
                "{model}, {type}: median error of the sum, relative to Gloo's",
                naming=3,
                value="of Gloo's",
            ),
        ),
        better="below",
    ),
}


class Bar(NamedTuple):
    heading: str
    label: str
    value: float
    error: float
    shown: str


def tables_of(page: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """(title of the section, head of the table, cells) for each row of the page's tables."""
    section, head = "", []
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:]
        if not line.startswith("|"):
            head = []
            continue
        cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
        if not head:
            head = cells
        elif not re.fullmatch(r"[-:| ]+", line):
            yield section, head, cells


def ratio_of(cell: str) -> tuple[float, float, str] | None:
    """Value, error, and the text beside the bar."""
    if found := re.match(r"([\d.]+) and ([\d.]+)( |$)", cell):
        value = float(found[1]) / float(found[2])
        return value, 0, f"{value:.4f}"
    if found := re.fullmatch(r"([\d.]+)(?: ± ([\d.]+))?", cell):
        return float(found[1]), float(found[2] or 0), cell
    return None


def bars_of(page: str, chart: Chart) -> list[Bar]:
    bars = []
    for section, head, cells in tables_of(page):
        for rows in chart.rows:
            if rows.value not in head or len(cells) != len(head):
                continue
            match = re.fullmatch(rows.pattern, ": ".join(cells[: rows.naming]))
            ratio = ratio_of(cells[head.index(rows.value)])
            if match and ratio:
                groups = {"section": section, **match.groupdict()}
                bars.append(Bar(rows.heading.format(**groups), rows.label.format(**groups), *ratio))
    return bars


# -------------------------------------------------------------------------------------------------------------- Drawing

WIDTH, LEFT, RIGHT = 880, 400, 790  # of the picture; where the axis begins and ends
ROW, HEADING, TOP, BOTTOM = 22, 30, 44, 84
LETTER = 6.8  # widest mean width of a letter
STYLE = (
    "<style>text{font:13px system-ui,-apple-system,sans-serif;fill:#1c2733}.title{font-size:16px;font-weight:600}"
    ".heading{font-weight:600}.soft{fill:#52606d}.small{font-size:11px;fill:#52606d}.paper{fill:#fff}"
    ".grid{stroke:#dde3e9}.one{stroke:#1c2733;stroke-width:1.6}.error{stroke:#1c2733}"
    ".better{fill:#3f9161}.worse{fill:#cc8a2e}.plain{fill:#5b7db8}"
    "@media(prefers-color-scheme:dark){text{fill:#e4eaf0}.soft,.small{fill:#a9b6c3}.paper{fill:#12171d}"
    ".grid{stroke:#2b3540}.one,.error{stroke:#e4eaf0}.better{fill:#4fa574}.worse{fill:#d2983f}.plain{fill:#6f90cc}}</style>"
)


def ticks_of(least: float, most: float) -> list[float]:
    """About five round numbers; the last is `most` or above it."""
    rough = (most - least) / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    count = math.ceil((most - least) / step - 1e-6)
    return [least + step * number for number in range(count + 1)]


def range_of(bars: list[Bar], chart: Chart) -> list[float]:
    if chart.base == 0:
        return ticks_of(0, max([1.2, *(bar.value + bar.error for bar in bars)]))
    reach = max([0.001, *(abs(bar.value - chart.base) + bar.error for bar in bars)])
    upper = ticks_of(chart.base, chart.base + reach * 1.2)
    return [2 * chart.base - tick for tick in reversed(upper[1:])] + upper


def kind_of(bar: Bar, chart: Chart) -> str:
    if not chart.better:
        return "plain"
    return "better" if bar.value == 1 or (bar.value > 1) == (chart.better == "above") else "worse"


def lines_of(bars: list[Bar], chart: Chart, source: str) -> Iterator[str]:
    ticks = range_of(bars, chart)
    digits = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    headings = list(dict.fromkeys(bar.heading for bar in bars))
    floor = TOP + len(headings) * HEADING + len(bars) * ROW + 8
    at = lambda value: LEFT + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (RIGHT - LEFT)  # noqa: E731

    def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
        return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'

    yield "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {floor + BOTTOM}" role="img">'
    yield f"<title>{escape(chart.title)}</title>"
    yield STYLE
    yield f'<rect width="{WIDTH}" height="{floor + BOTTOM}" rx="10" class="paper"/>'
    yield text(20, 28, chart.title, "title")
    for tick in ticks:
        yield f'<path d="M{at(tick):.1f} {TOP + 8}V{floor}" class="grid"/>'
        yield text(round(at(tick), 1), floor + 18, f"{tick:.{digits}f}", "soft", "middle")
    y = TOP
    for heading in headings:
        y += HEADING
        yield text(20, y - 8, heading, "heading")
        for bar in (each for each in bars if each.heading == heading):
            begin, end = sorted((at(chart.base), at(bar.value)))
            yield text(LEFT - 10, y + 12, bar.label, "soft", "end")
            yield (f'<rect x="{begin:.1f}" y="{y + 1}" width="{end - begin:.1f}" height="{ROW - 7}" '
                   f'class="{kind_of(bar, chart)}"/>')  # fmt: skip
            if bar.error:
                yield f'<path d="M{at(bar.value - bar.error):.1f} {y + 8}H{at(bar.value + bar.error):.1f}" class="error"/>'
            right = max(end, at(bar.value + bar.error), at(1) if chart.base == 0 else 0)
            yield text(round(right + 6, 1), y + 12, bar.shown, "")
            y += ROW
    yield f'<path d="M{at(1):.1f} {TOP + 8}V{floor}" class="one"/>'
    middle = min((LEFT + RIGHT) / 2, WIDTH - 20 - len(chart.axis) * LETTER / 2)
    yield text(middle, floor + 40, chart.axis, "soft", "middle")
    yield text(20, floor + 70, source, "small")
    yield "</svg>"


def drawn(page: str, name: str) -> str:
    """The chart of a page as SVG. Empty if the page has none of its rows."""
    chart = CHARTS[name]
    bars = bars_of(page, chart)
    if not bars:
        return ""
    for bar in bars:
        if len(bar.label) * LETTER > LEFT - 16:
            raise Missing(f"{name}: {bar.label!r} is too long for the chart: shorten it or widen LEFT")
    recorded = provenance.read(page) or {}
    revision, date = (recorded.get(key, provenance.UNKNOWN) for key in ("revision", "date"))
    source = f"Measured at revision {revision} on {date}. Drawn from the tables of docs/results/{name}.md."
    return "\n".join([*lines_of(bars, chart, source), ""])


def with_image(page: str, name: str) -> str:
    """The page with the line that shows the chart, above its first section."""
    line = f"![{CHARTS[name].title}]({FOLDER}/{name}.svg)\n\n"
    plain = re.sub(rf"^!\[[^\]]*\]\({FOLDER}/{re.escape(name)}\.svg\)\n\n", "", page, flags=re.MULTILINE)
    head, section, rest = plain.partition("\n## ")
    return f"{head}\n{line}## {rest}" if section else plain


def draw_page(path: Path) -> None:
    """Draws the chart of a page that was just written, and adds its line. Other pages, and pages of which only parts
    without a row of the chart were measured, stay as they are."""
    name = path.stem
    page = path.read_text(encoding="utf-8")
    chart = drawn(page, name) if name in CHARTS else ""
    if not chart:
        return
    path.write_text(with_image(page, name), encoding="utf-8")
    (path.parent / FOLDER).mkdir(exist_ok=True)
    (path.parent / FOLDER / f"{name}.svg").write_text(chart, encoding="utf-8")


def main(arguments) -> list[str]:
    violations = []
    for name in CHARTS:
        path = arguments.root / PAGES / f"{name}.md"
        if not path.exists():
            raise Missing(f"{path} is missing: name the repository with --root")
        page = path.read_text(encoding="utf-8")
        chart = drawn(page, name)
        if not chart:
            raise Missing(f"{PAGES / path.name} has no row for its chart: correct CHARTS in tools/draw_results.py")
        if not arguments.check:
            draw_page(path)
            continue
        picture = path.parent / FOLDER / f"{name}.svg"
        if not picture.exists() or picture.read_text(encoding="utf-8") != chart:
            violations.append(f"{PAGES / FOLDER / picture.name}: differs from the tables of {path.name}: "
                              "run tools/draw_results.py")  # fmt: skip
        if page != with_image(page, name):
            violations.append(f"{PAGES / path.name}: does not show its chart: run tools/draw_results.py")
    return violations


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("--check", action="store_true", help="report charts that differ; write nothing")
    sys.exit(run(main, parser))
