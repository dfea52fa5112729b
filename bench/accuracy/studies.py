# SPDX-License-Identifier: Apache-2.0
"""The studies of the accuracy tool. Each returns a figure: an id, series of points, and findings."""

import collections
import dataclasses
import math
import statistics

import torch
from curves import mean_curve, reached_at, target_of
from narrow import half_precision, narrow_trainings
from reducer import DYNAMIC, FIXED, FLOAT32, LANES, SHORTS, Form, load, open_reducer
from trainings import TRAININGS, WORKERS, Loss, run

FORMS = (FLOAT32, FIXED, DYNAMIC, SHORTS)


@dataclasses.dataclass
class Sizes:
    """Amount of training."""

    models: tuple
    steps: dict
    seeds: dict
    scales: tuple  # powers of ten
    sweep_steps: int
    narrow_seeds: range


FULL = Sizes(
    models=("cnn", "gpt"),
    steps={"cnn": 132, "gpt": 150},
    seeds={"cnn": range(1, 7), "gpt": range(1, 3)},
    scales=tuple(range(0, 17, 2)),
    sweep_steps=66,
    narrow_seeds=range(1, 4),
)
QUICK = Sizes(
    models=("perceptron",),
    steps={"perceptron": 66},
    seeds={"perceptron": (1,)},
    scales=(0, 2, 4, 6, 8, 10, 14),
    sweep_steps=44,
    narrow_seeds=range(1, 2),
)


class Study:
    """Shared by all studies: the machines, the amount of training, and where to report progress."""

    def __init__(self, path, sizes, progress):
        self.path = path  # of libbench_accuracy
        self.library = load(path)
        self.sizes = sizes
        self.progress = progress

    def train(self, model, form, steps, seed, seen=None):
        self.progress(f"{model}, {form.name}, seed {seed}")
        with open_reducer(self.library, form, WORKERS) as reducer:
            scores = run(TRAININGS[model], reducer, steps, seed, seen)
            return scores, reducer.counters()


# ------------------------------------------------------------------------------------------------- Accuracy over steps


def accuracy_over_steps(study, figure, model, claim):
    """fig11 and fig18: sums of integers need as many steps as sums of floats."""
    steps, seeds = study.sizes.steps[model], study.sizes.seeds[model]
    runs = {form: [study.train(model, form, steps, seed) for seed in seeds] for form in FORMS}
    scores = {form: [scores for scores, _ in of_seeds] for form, of_seeds in runs.items()}
    curves = {form: mean_curve(of_seeds) for form, of_seeds in scores.items()}
    target = target_of(curves[FLOAT32], _is_loss(model))
    series, found = [], {}
    for form, of_seeds in runs.items():
        ratio, error = _times_floats(scores[FLOAT32], scores[form], model)
        series.append({"name": form.name, "points": curves[form]})
        found[form.name] = {
            "final": curves[form][-1][1],
            "steps_to_target": reached_at(curves[form], target, _is_loss(model)),
            "times_floats": ratio,
            "times_floats_error": error,
            "bytes_of_a_step": of_seeds[0][1]["bytes"] // steps,
            **{
                key: sum(counters[key] for _, counters in of_seeds)
                for key in ("fragments", "float_fragments", "overflows")
            },
        }
    return {
        "id": figure,
        "claim": claim,
        "model": model,
        "subject": TRAININGS[model].subject,
        "x": "step",
        "y": TRAININGS[model].measure,
        "target": target,
        "seeds": len(seeds),
        "series": series,
        "found": found,
    }


def _times_floats(floats, other, model):
    """The steps to the target divided by the steps of floats (None if the target is not reached), and the standard
    error of this ratio by the jackknife over the seeds (None if it is unknown, for example with only one seed)."""
    ratio = _ratio_of_steps(floats, other, model)
    seeds = range(len(floats) if len(floats) > 1 else 0)
    without = [_ratio_of_steps(*([*runs[:i], *runs[i + 1 :]] for runs in (floats, other)), model) for i in seeds]
    if not without or None in without:
        return ratio, None
    return ratio, math.sqrt((len(without) - 1) * statistics.pvariance(without))


def _ratio_of_steps(floats, other, model):
    curve = mean_curve(floats)
    target = target_of(curve, _is_loss(model))
    steps = reached_at(mean_curve(other), target, _is_loss(model))
    return None if steps is None else steps / reached_at(curve, target, _is_loss(model))


def _is_loss(model):
    return TRAININGS[model].measure == "test loss"


# -------------------------------------------------------------------------------------------- Accuracy over the scales


def accuracy_over_scales(study):
    """switchml-fig10: accuracy with fixed scales from far too small to far too large."""
    model = "cnn" if "cnn" in study.sizes.models else study.sizes.models[0]
    steps, seed = study.sizes.sweep_steps, study.sizes.seeds[model][0]
    largest = 0.0

    def seen(gradients, _):
        nonlocal largest
        largest = max(largest, gradients.abs().max().item())

    (*_, (_, reference)), _ = study.train(model, FLOAT32, steps, seed, seen)
    series, found = [], {"float32": reference, "largest_gradient": largest}
    for protocol in ("switchml", "atp"):
        points = []
        for power in study.sizes.scales:
            scores, _ = study.train(model, Form(protocol, scale=10.0**power), steps, seed)
            points.append([10.0**power, scores[-1][1]])
        series.append({"name": protocol, "points": points})
        found[f"{protocol}_flat_decades"] = _flat_decades(points, reference)
    return {
        "id": "switchml-fig10",
        "claim": "accuracy equals that of floats over orders of magnitude of the scale; with other scales, training fails",
        "model": model,
        "subject": TRAININGS[model].subject,
        "x": "scale",
        "y": TRAININGS[model].measure,
        "series": [{"name": "float32", "points": [[10.0**power, reference] for power in study.sizes.scales]}, *series],
        "found": found,
    }


def _flat_decades(points, reference, allowed=0.03):
    """First and last power of ten of the longest run of neighbouring scales with a score at most `allowed` below that
    of floats. Empty if no scale has such a score."""
    rows, row = [[]], []
    for scale, score in points:
        row = [*row, scale] if math.isfinite(score) and score >= reference - allowed else []
        rows.append(row)
    best = max(rows, key=len)
    return [math.log10(best[0]), math.log10(best[-1])] if best else []


# ----------------------------------------------------------------------------------------------------------- Precision


def precision(study):
    """Compares the formats on the same gradients. The gradients come from a training that sums in float32."""
    forms = (*FORMS, Form("atp", scale=1e6), Form("atp", lanes="int16", scale=1e3))
    found = {}
    for model in study.sizes.models:
        losses = {form: Loss() for form in forms}
        reducers = {form: open_reducer(study.library, form, WORKERS) for form in forms}

        def seen(gradients, _, losses=losses, reducers=reducers):
            exact = gradients.double().sum(0)
            for form, reducer in reducers.items():
                losses[form].add(exact, reducer.sum(gradients))

        study.train(model, FLOAT32, study.sizes.steps[model], study.sizes.seeds[model][0], seen)
        found[model] = {form.name: _precision_of(losses[form], reducer) for form, reducer in reducers.items()}
        for reducer in reducers.values():
            reducer.close()
    return {
        "id": "precision",
        "claim": "dynamic scaling loses fewer digits than a fixed scale, and few fragments are sent as floats",
        "found": found,
    }


def _precision_of(loss, reducer):
    return {
        "relative_error_median": loss.median(),
        "relative_error_worst": max(loss.errors),
        "zeros_lost": loss.zeros_lost / loss.nonzero,
        **reducer.counters(),
    }


# ----------------------------------------------------------------------------------------------------------- Exponents


def exponents(study):
    """Counts fragments by their largest magnitude, which decides whether the sum of a fragment may overflow."""
    found = {}
    for model in study.sizes.models:
        counts = collections.Counter()

        def seen(gradients, _, counts=counts):
            fragments = gradients.shape[1] // LANES
            blocks = gradients[:, : fragments * LANES].reshape(-1, LANES)
            largest = blocks.abs().amax(1)
            counts.update(torch.frexp(largest[largest != 0])[1].tolist())
            counts["zero"] += int((largest == 0).sum())

        study.train(model, FLOAT32, study.sizes.steps[model], study.sizes.seeds[model][0], seen)
        found[model] = {"zero": counts.pop("zero"), **{str(power): counts[power] for power in sorted(counts)}}
    return {
        "id": "exponents",
        "claim": "number of the workers' fragments for each e; the largest magnitude of a fragment is in [2^(e - 1), 2^e)",
        "found": found,
    }


def figures(study, selected):
    """Functions that make the figures, by their ids."""
    models = study.sizes.models
    made = {
        "fig11": lambda: accuracy_over_steps(
            study, "fig11", models[0], "integers need as many steps to the same accuracy as floats"
        ),
        "fig18": lambda: accuracy_over_steps(
            study, "fig18", models[-1], "the second model also needs as many steps with integers as with floats"
        ),
        "switchml-fig10": lambda: accuracy_over_scales(study),
        "precision": lambda: precision(study),
        "exponents": lambda: exponents(study),
        "half-precision": lambda: half_precision(study),
        "narrow-lanes": lambda: narrow_trainings(study, "narrow-lanes", models[0]),
        "narrow-lanes-second": lambda: narrow_trainings(study, "narrow-lanes-second", models[-1]),
    }
    return {name: make for name, make in made.items() if not selected or name in selected}


NAMES = (
    "fig11",
    "fig18",
    "switchml-fig10",
    "precision",
    "exponents",
    "half-precision",
    "narrow-lanes",
    "narrow-lanes-second",
)
