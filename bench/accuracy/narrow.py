# SPDX-License-Identifier: Apache-2.0
"""Studies of types with fewer than 32 bits: elements of 16 bits, and lanes of 16 and 8 bits."""

import concurrent.futures
import multiprocessing
import os
import statistics

import torch
from curves import final_score, mean_curve
from gloo import Gloo
from reducer import (
    BYTES,
    FEEDBACK,
    FLOAT32,
    GLOO_FP8,
    GLOO_HALF,
    SHORTS,
    Form,
    load,
    open_reducer,
)
from trainings import TRAININGS, WORKERS, Loss, run

LANES_OF_HALVES = ("auto", "int16", "int32")
CURVES = (FLOAT32, SHORTS, FEEDBACK, BYTES, GLOO_HALF, GLOO_FP8)


def half_precision(study):
    """Sums of float16 and bfloat16 in ATP's lanes and by Gloo, compared with the exact sum of the same elements."""
    found = {}
    for model in study.sizes.models:
        for element in (torch.bfloat16, torch.float16):
            found.setdefault(model, {})[str(element).removeprefix("torch.")] = _errors_of(study, model, element)
    return {
        "id": "half-precision",
        "claim": "sums of float16 and bfloat16 in the default lanes are as precise as Gloo's sums in the same type",
        "found": found,
    }


def _errors_of(study, model, element):
    group = Gloo(WORKERS)
    reducers = {
        lanes: open_reducer(study.library, Form("atp", "dynamic", lanes), WORKERS, element) for lanes in LANES_OF_HALVES
    }
    sums = {"gloo": group.sum, **{f"atp {lanes}": reducer.sum for lanes, reducer in reducers.items()}}
    losses = {name: Loss() for name in sums}

    def seen(gradients, _):
        halves = gradients.to(element)
        exact = halves.double().sum(0)
        for name, summed in sums.items():
            losses[name].add(exact, summed(halves))

    study.train(model, FLOAT32, study.sizes.steps[model], study.sizes.seeds[model][0], seen)
    steps = study.sizes.steps[model]
    bytes_of_a_step = {f"atp {lanes}": reducer.counters()["bytes"] // steps for lanes, reducer in reducers.items()}
    for reducer in reducers.values():
        reducer.close()
    median, worst = losses["gloo"].median(), max(losses["gloo"].errors)
    return {
        name: {
            "relative_error_median": loss.median(),
            "times_gloo_median": loss.median() / median,
            "relative_error_worst": max(loss.errors),
            "times_gloo_worst": max(loss.errors) / worst,
            "zeros_lost": loss.zeros_lost / loss.nonzero,
            "bytes_of_a_step": bytes_of_a_step.get(name),
        }
        for name, loss in losses.items()
    }


def narrow_trainings(study, figure, model):
    """Trains a model with every narrow form, and compares the final scores with those of float32."""
    seeds, steps = study.sizes.narrow_seeds, study.sizes.steps[model]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        begun = {form: [pool.submit(_train, study.path, model, form, steps, seed) for seed in seeds] for form in CURVES}
        runs = {form: [each.result() for each in of_seeds] for form, of_seeds in begun.items()}
    scores = {form.name: [scores for scores, _ in of_seeds] for form, of_seeds in runs.items()}
    reference = [final_score(curve) for curve in scores[FLOAT32.name]]
    return {
        "id": figure,
        "claim": "final scores in lanes of 16 and 8 bits, compared with those of float32",
        "model": model,
        "measure": TRAININGS[model].measure,
        "seeds": len(seeds),
        "series": {name: mean_curve(of_seeds) for name, of_seeds in scores.items()},
        "found": {
            form.name: {
                **_compared([final_score(curve) for curve in scores[form.name]], reference, TRAININGS[model].measure),
                "bytes_of_a_step": sum(sent for _, sent in of_seeds) // (steps * len(seeds)),
            }
            for form, of_seeds in runs.items()
        },
    }


def _train(library, model, form, steps, seed):
    """In a process of its own. Returns the scores and the bytes that a worker sent."""
    torch.set_num_threads(1)
    with open_reducer(load(library), form, WORKERS) as reducer:
        return run(TRAININGS[model], reducer, steps, seed), reducer.counters()["bytes"]


def _compared(finals, reference, measure):
    """Within the spread: the mean over the seeds is not worse than the worst seed of float32."""
    sign = -1 if measure == "test loss" else 1
    mean = statistics.mean(finals)
    return {
        "final": mean,
        "lowest": min(finals),
        "highest": max(finals),
        "within_spread": sign * mean >= min(sign * score for score in reference),
        "difference": mean - statistics.mean(reference),
    }
