# SPDX-License-Identifier: Apache-2.0
"""Writes the page docs/results/accuracy.md from the figures of the studies."""

import os
import platform

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/results/accuracy.md")

INTRODUCTION = """\
# Accuracy of training with sums of integers

Written by `bench/accuracy/run --write` on {machine}. Four workers in one process train models of `examples/`. The state
machines of ATP or of SwitchML sum their gradients under one switch, in packets of 352 lanes. "float32" adds the
gradients as floats, without a protocol. Other pages report speed.

A form consists of the protocol, the type of a lane, and the scale. The scale is fixed or dynamic; a dynamic scale fits
each packet to the last sum of the same elements ([dynamic scaling](../protocol.md#dynamic-scaling)).
"""


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def number(value):
    if value is None:
        return "never"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def counted(found):
    """The cells "as floats" and "overflowed" of a row. Empty for float32, which no state machine sums."""
    if not found["fragments"]:
        return "", ""
    return f"{found['float_fragments']} of {found['fragments']}", found["overflows"]


def times_floats(found):
    if found["times_floats"] is None:
        return "never"
    error = found["times_floats_error"]
    return f"{found['times_floats']:.3f}" + ("" if error is None else f" ± {error:.3f}")


def steps(figure):
    head = (
        "form",
        f"{figure['y']} at the end",
        "steps to the target",
        "relative to floats",
        "bytes of a step",
        "as floats",
        "overflowed",
    )
    rows = [
        (
            form,
            f"{found['final']:.4f}",
            number(found["steps_to_target"]),
            times_floats(found),
            found["bytes_of_a_step"] or "",
            *counted(found),
        )
        for form, found in figure["found"].items()
    ]
    return f"""\
Scores are means over {figure["seeds"]} seeds and over five neighbouring scores. The target is a {figure["y"]} of {figure["target"]:.4f}, which is 0.05 or
5 % from the final score of floats. The curve still rises there; on its flat part, chance would decide the step.
"relative to floats" is the ratio of the steps to the target, ± one standard error (jackknife over the seeds).
"as floats" counts the fragments sent as floats. "overflowed" counts the fragments whose sum exceeded its integers in
the switch:

{table(head, rows)}"""


def scales(figure):
    of_series = {series["name"]: dict(series["points"]) for series in figure["series"]}
    names = list(of_series)
    points = list(of_series[names[0]])
    rows = [(f"{point:g}", *(f"{of_series[name][point]:.3f}" for name in names)) for point in points]
    found = figure["found"]

    def decades(protocol):
        first, last = found[f"{protocol}_flat_decades"]
        return f"from 10^{first:.0f} to 10^{last:.0f}"

    return (
        f"The largest gradient was {found['largest_gradient']:.3g}. Scores are within 0.03 of floats for scales "
        f"{decades('switchml')} with SwitchML, and {decades('atp')} with ATP. ATP requests values outside its integers "
        "as floats, so large scales do not reduce its accuracy.\n\n" + table(("scale", *names), rows)
    )


def precision(figure):
    head = ("model", "form", "relative error, median", "worst step", "zeros lost", "as floats", "overflowed", "bytes")
    rows = [
        (
            model,
            form,
            f"{loss['relative_error_median']:.1e}",
            f"{loss['relative_error_worst']:.1e}",
            f"{loss['zeros_lost']:.2g}",
            *counted(loss),
            loss["bytes"] or "",
        )
        for model, forms in figure["found"].items()
        for form, loss in forms.items()
    ]
    return (
        "All forms sum the same gradients of a training. The error is the relative error of the whole sum of a step, as a "
        'vector. "zeros lost" is the share of nonzero exact sums that became zero.\n\n' + table(head, rows)
    )


def exponents(figure):
    models = list(figure["found"])
    powers = sorted({int(power) for counts in figure["found"].values() for power in counts if power != "zero"})
    rows = [
        (f"2^{power - 1} to 2^{power}", *(figure["found"][model].get(str(power), 0) for model in models))
        for power in powers
    ]
    rows.append(("all zeros", *(figure["found"][model]["zero"] for model in models)))
    return "Number of packets of the workers by their largest magnitude:\n\n" + table(("magnitude", *models), rows)


SECTIONS = {
    "fig11": ("Accuracy over steps", steps),
    "fig18": ("Accuracy over steps, second model", steps),
    "switchml-fig10": ("Accuracy over scales", scales),
    "precision": ("Precision", precision),
    "exponents": ("Magnitude of gradients", exponents),
}


def write(figures):
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    parts = [INTRODUCTION.format(machine=machine)]
    for figure in figures:
        title, text_of = SECTIONS[figure["id"]]
        model = f" ({figure['model']})" if "model" in figure else ""
        parts.append(f"## {title}{model}\n\n{figure['id']}: {figure['claim']}.\n\n{text_of(figure)}\n")
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write("\n".join(parts))
