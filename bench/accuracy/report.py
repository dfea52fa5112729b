# SPDX-License-Identifier: Apache-2.0
"""Writes the page docs/results/accuracy.md from the figures of the studies."""

import os
import statistics
import sys
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "bench/cluster"), os.path.join(ROOT, "tools")]

import draw_results  # noqa: E402  tools/draw_results.py
import picture  # noqa: E402  bench/cluster/picture.py
import provenance  # noqa: E402  tools/provenance.py

PAGE = os.path.join(ROOT, "docs/results/accuracy.md")
PICTURES = "figures"  # a folder beside the page

INTRODUCTION = """\
# Accuracy of training with sums of integers

{line}

Written by `bench/accuracy/run --write`. {sentence}

Four workers in one process train models of `examples/`. The state machines of ATP or of SwitchML sum their gradients
under one switch, in packets of 352 lanes. "float32" adds the gradients as floats, without a protocol. Other pages report
speed.

A form consists of the protocol, the type of a lane, and the scale. The scale is fixed or dynamic. A dynamic scale
follows from the last sum of the same elements ([dynamic scaling](../spec/numbers.md#dynamic-scaling)).
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


def half_precision(figure):
    head = (
        "model",
        "type",
        "sums",
        "relative error, median",
        "of Gloo's",
        "worst step",
        "of Gloo's",
        "zeros lost",
        "bytes of a step",
    )
    rows = [
        (
            model,
            element,
            name,
            f"{loss['relative_error_median']:.1e}",
            f"{loss['times_gloo_median']:.2f}",
            f"{loss['relative_error_worst']:.1e}",
            f"{loss['times_gloo_worst']:.2f}",
            f"{loss['zeros_lost']:.2g}",
            loss["bytes_of_a_step"] or "",
        )
        for model, elements in figure["found"].items()
        for element, losses in elements.items()
        for name, loss in losses.items()
    ]
    return f"""\
Workers round the gradients of each step to the type. ATP, with dynamic scaling and each type of lanes, and Gloo sum the
same elements. The error is that of the whole sum of a step, as a vector, relative to the exact sum of these elements.
"of Gloo's" divides it by the error of Gloo. Lanes of type `auto` are int16.

{table(head, rows)}"""


def narrow_lanes(figure):
    head = ("form", f"{figure['measure']} at the end", "of single seeds", "difference", "within", "bytes of a step")
    rows = [
        (
            form,
            f"{found['final']:.4f}",
            f"{found['lowest']:.4f} to {found['highest']:.4f}",
            f"{found['difference']:+.4f}",
            "yes" if found["within_spread"] else "no",
            found["bytes_of_a_step"] or "",
        )
        for form, found in figure["found"].items()
    ]
    outside = [form for form, found in figure["found"].items() if not found["within_spread"]]
    verdict = f"outside: {', '.join(outside)}" if outside else "all forms are within"
    return f"""\
Each form trains with {figure["seeds"]} seeds. The final score of a run is the mean of its last five scores. "within" compares the
mean over the seeds with the seeds of float32: yes, if it is not worse than the worst of them. "error feedback" is that of
`atp.error_feedback_hook`. "gloo float16" is PyTorch's hook for float16. "gloo float8" is a hook for float8_e4m3fn:
all_to_all, sum in float32, all_gather. "bytes of a step" counts what one worker sends through ATP.

{table(head, rows)}

**Verdict: {verdict}.**

![{figure["model"]}]({PICTURES}/{picture_name(figure)})"""


def picture_name(figure):
    return f"accuracy-{figure['model']}.svg"


def draw(figure):
    """The curves as SVG. The y axis shows the scores after the first tenth of the steps."""
    late = [score for curve in figure["series"].values() for _, score in curve[len(curve) // 10 :]]
    shown = [score for score in late if score < 2 * statistics.median(late)]
    return picture.lines(figure["model"], "step", figure["measure"], figure["series"], (min(shown), max(shown)))


SECTIONS = {
    "fig11": ("Accuracy over steps", steps),
    "fig18": ("Accuracy over steps, second model", steps),
    "switchml-fig10": ("Accuracy over scales", scales),
    "precision": ("Precision", precision),
    "exponents": ("Magnitude of gradients", exponents),
    "half-precision": ("Half precision", half_precision),
    "narrow-lanes": ("Narrow lanes", narrow_lanes),
    "narrow-lanes-second": ("Narrow lanes, second model", narrow_lanes),
}


def write(figures):
    root = Path(ROOT)
    recorded = provenance.record(
        root,
        scaling_in_effect="each row names it",
        lanes_in_effect="352, of the type of each row",
        gpt_text=provenance.text_of(root),
    )
    parts = [INTRODUCTION.format(line=provenance.line(recorded), sentence=provenance.sentence(recorded))]
    for figure in figures:
        title, text_of = SECTIONS[figure["id"]]
        model = f" ({figure['model']})" if "model" in figure else ""
        parts.append(f"## {title}{model}\n\n{figure['id']}: {figure['claim']}.\n\n{text_of(figure)}\n")
        if text_of is narrow_lanes:
            with open(
                os.path.join(os.path.dirname(PAGE), PICTURES, picture_name(figure)), "w", encoding="utf-8"
            ) as file:
                file.write(draw(figure))
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write("\n".join(parts))
    draw_results.draw_page(Path(PAGE))
