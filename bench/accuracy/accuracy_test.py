# SPDX-License-Identifier: Apache-2.0
"""Trains a small model to test that every study runs, and that integers at a suitable scale train as well as floats."""

import contextlib
import io
import json
import sys

import main


def figures(library):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = main.main(["--quick", "--json", "--library", library])
    if status != 0:
        sys.exit(status)
    return {figure["id"]: figure for figure in json.loads(output.getvalue())}


def check_steps(figure):
    found = figure["found"]
    reference = found["float32"]
    for form in ("atp int32 1e+08", "atp int32 dynamic", "atp int16 dynamic"):
        assert abs(found[form]["final"] - reference["final"]) <= 0.03, (form, found)
        assert 0.9 < found[form]["times_floats"] < 1.1, (form, found)
    halves = found["atp int16 dynamic"]["bytes_of_a_step"] / found["atp int32 dynamic"]["bytes_of_a_step"]
    assert 0.5 < halves < 0.75, found


def check_scales(figure):
    found = figure["found"]
    least, most = found["switchml_flat_decades"]
    assert most - least >= 4, found
    by_protocol = {series["name"]: dict(series["points"]) for series in figure["series"]}
    assert by_protocol["switchml"][1.0] < found["float32"] - 0.1, "too small a scale rounds all values to zero"
    assert by_protocol["switchml"][1e14] < found["float32"] - 0.1, (
        "too large a scale overflows, and SwitchML keeps the overflow"
    )
    assert by_protocol["atp"][1e14] >= found["float32"] - 0.03, "ATP repeats overflowed sums as floats"


def check_precision(figure):
    for forms in figure["found"].values():
        fixed, dynamic, shorts = (forms[f"atp {form}"] for form in ("int32 1e+08", "int32 dynamic", "int16 dynamic"))
        assert dynamic["relative_error_median"] < fixed["relative_error_median"], forms
        assert dynamic["relative_error_median"] < 1e-6, forms
        assert shorts["relative_error_median"] < 1e-2, forms
        assert dynamic["zeros_lost"] <= fixed["zeros_lost"], forms
        assert dynamic["overflows"] == 0, forms


def check_exponents(figure):
    for counts in figure["found"].values():
        assert sum(counts.values()) > 0


def check_half_precision(figure):
    for types in figure["found"].values():
        for element, sums in types.items():
            assert sums["atp auto"]["times_gloo_median"] < 1, (element, sums)
            assert sums["atp int32"]["times_gloo_worst"] < 1, (element, sums)
            # Fragments whose numbers or sums do not fit 16 bits travel twice.
            assert sums["atp auto"]["bytes_of_a_step"] < 0.75 * sums["atp int32"]["bytes_of_a_step"], (element, sums)


def check_narrow_lanes(figure):
    forms = figure["found"]
    short, byte = (forms[f"atp {form}"] for form in ("int16 dynamic", "int8 dynamic, error feedback"))
    assert max(abs(short["difference"]), abs(byte["difference"])) <= 0.03, forms
    assert byte["bytes_of_a_step"] < 0.6 * short["bytes_of_a_step"], forms
    for form in ("gloo float16", "gloo float8"):
        assert abs(forms[form]["difference"]) <= 0.05, (form, forms)


def run(library):
    made = figures(library)
    check_steps(made["fig11"])
    check_scales(made["switchml-fig10"])
    check_precision(made["precision"])
    check_exponents(made["exponents"])
    check_half_precision(made["half-precision"])
    check_narrow_lanes(made["narrow-lanes"])


if __name__ == "__main__":
    run(sys.argv[1])
