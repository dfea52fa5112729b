# SPDX-License-Identifier: Apache-2.0
"""Measure how sums of integers instead of floats affect training: its accuracy, and the precision of its sums.

Four workers in one process train the models of examples/. The state machines of ATP and of SwitchML sum their
gradients, at several scales and widths.
"""

import argparse
import json
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from keep import kept  # noqa: E402  in bench/

MISSING = 77


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/accuracy/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="train a small model for a few seconds")
    parser.add_argument("--json", action="store_true", help="print a JSON array of figures instead of the text")
    parser.add_argument("--write", action="store_true", help="also write docs/results/accuracy.md")
    parser.add_argument(
        "--only", metavar="ID[,ID...]", default="", help="run only these studies, comma-separated [all]"
    )
    parser.add_argument(
        "--keep",
        metavar="FOLDER",
        help="keep the figure of each study in this folder, and take those that it has [none]",
    )
    parser.add_argument("--library", required=True, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def show(figure):
    print(f"{figure['id']}: {figure['claim']}")
    for name, value in figure["found"].items():
        print(f"  {name}: {json.dumps(value)}")


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def main(arguments):
    options = parse(arguments)
    try:
        import sklearn  # noqa: F401
        import torch

        import atp  # noqa: F401
    except ImportError as error:
        print(f"bench/accuracy: {error.name} is missing: install PyTorch, scikit-learn and atp", file=sys.stderr)
        return MISSING
    import report
    import studies

    selected = [name for name in options.only.split(",") if name]
    unknown = sorted(set(selected) - set(studies.NAMES))
    if unknown:
        print(
            f"bench/accuracy: --only: {', '.join(unknown)} is unknown; accepted: {', '.join(studies.NAMES)}",
            file=sys.stderr,
        )
        return 2
    torch.set_num_threads(1)
    sizes = studies.QUICK if options.quick else studies.FULL
    study = studies.Study(os.path.abspath(options.library), sizes, progress)
    made = [kept(options.keep, name, make) for name, make in studies.figures(study, selected).items()]
    progress("")
    if options.write:
        report.write(made)
    if options.json:
        print(json.dumps(made))
    else:
        for figure in made:
            show(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
