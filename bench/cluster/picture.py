# SPDX-License-Identifier: Apache-2.0
"""Lines over time, as SVG."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 32, 44
COLOURS = ("#1f77b4", "#d95f02", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#444444", "#17becf")
TICKS = 5


def lines(title, x_axis, y_axis, series, y_range=None):
    """A chart of lines. `series` maps the name of a line to its points (x, y). The x axis begins at 0. `y_range`: the
    ends of the y axis; by default it begins at 0 and holds all points. Points beyond it lie at its ends."""
    points = [point for line in series.values() for point in line] or [(1.0, 1.0)]
    scale = _Scale(max(x for x, _ in points), *(y_range or (0.0, max(1.0, *(y for _, y in points)))))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 18, title, "start"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_axis, "middle"),
        _text(LEFT, TOP - 2, y_axis, "start", "#555"),
        *scale.axes(),
    ]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(WIDTH - RIGHT, 18 + 14 * number, name, "end", colour))
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    def __init__(self, most_x, least_y, most_y):
        self._most_x = most_x
        self._least_y = least_y
        self._most_y = most_y

    def x(self, value):
        return LEFT + value / self._most_x * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        share = (value - self._least_y) / (self._most_y - self._least_y)
        return HEIGHT - BOTTOM - min(max(share, 0.0), 1.0) * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        """The lines of the grid, each with its value."""
        for step in range(TICKS + 1):
            x = self._most_x * step / TICKS
            y = self._least_y + (self._most_y - self._least_y) * step / TICKS
            yield _line(self.x(x), TOP, self.x(x), HEIGHT - BOTTOM)
            yield _line(LEFT, self.y(y), WIDTH - RIGHT, self.y(y))
            yield _text(self.x(x), HEIGHT - BOTTOM + 16, f"{x:.3g}", "middle")
            yield _text(LEFT - 6, self.y(y) + 4, f"{y:.3g}", "end")


def _line(x1, y1, x2, y2):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x, y, text, anchor, colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
