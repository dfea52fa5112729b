# SPDX-License-Identifier: Apache-2.0
"""Lines over time, as SVG. Needs matplotlib."""

import io


def lines(title, x_axis, y_axis, series, y_range=None):
    """A chart of lines. `series` maps the name of a line to its points (x, y). The x axis begins at 0. `y_range`: the
    ends of the y axis, which cut the lines; by default it begins at 0 and holds all points."""
    try:
        import matplotlib
    except ImportError:
        raise RuntimeError("pictures need matplotlib: run this program with build/venv/bin/python") from None
    # Texts stay texts, and equal series give equal files.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "atp"}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 3.4), layout="constrained")
        axes = figure.subplots()
        for name, points in series.items():
            axes.plot([x for x, _ in points], [y for _, y in points], label=name, gid=f"line {name}", linewidth=1.2)
        axes.set(title=title, xlabel=x_axis, ylabel=y_axis, xlim=(0, None), ylim=y_range or (0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#ddd")
        axes.legend(frameon=False)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()
