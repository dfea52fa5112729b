# SPDX-License-Identifier: Apache-2.0
"""Shared by the programs of this folder: builds the measured programs, and runs the command line with its exit
status."""

import os
import subprocess
import sys

import faults
import measured
import network
import pipeline
import processes
from arguments import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))

import program as frame

BUILD = os.path.join(ROOT, "build", "release")

EXIT_FAILED = frame.EXIT_FAILED
EXIT_UNAVAILABLE = 77


def find_programs(classes, python, folder=None, others=()):
    """Returns the folder with the programs of the systems `classes` and the programs `others`, which have the names of
    their build targets. If `folder` is None, builds the programs first; the output of the build goes to standard
    error. Raises Unavailable if one of their tools is missing."""
    for tool in sorted({tool for each in classes for tool in each.tools}):
        pipeline.find(tool)
    targets = {name for each in classes for name in each.targets} | set(others)
    folder = os.path.abspath(folder) if folder else _build(sorted(targets))
    for name in (*(program for each in classes for program in each.programs), *others):
        if not os.access(os.path.join(folder, name), os.X_OK):
            raise network.Unavailable(f"program {name} is missing in {folder}: build it, or name its folder with --bin")
    _require_modules(python, folder, {module for each in classes for module in each.modules})
    return folder


def main(program, parse, run):
    """Executes the command line and returns the exit status. A signal unwinds the `with` blocks of `run`, so that the
    network is removed in any case."""
    options = parse(sys.argv[1:])

    def run_with_options():
        try:
            run(options)
        except (network.Unavailable, faults.Unavailable) as error:
            print(f"{program}: skipped: {error}", file=sys.stderr)
            return EXIT_UNAVAILABLE
        return 0

    return frame.execute(program, run_with_options, {network.Broken: EXIT_FAILED, processes.Failed: EXIT_FAILED})


def _build(targets):
    if not os.path.exists(os.path.join(BUILD, "CMakeCache.txt")):
        subprocess.run(["cmake", "-S", ROOT, "--preset", "release"], stdout=sys.stderr, check=True, cwd=ROOT)
    if not targets:
        return os.path.join(BUILD, "bin")
    known = subprocess.run(["cmake", "--build", BUILD, "--target", "help"], capture_output=True, text=True, check=True)
    missing = [target for target in targets if f"{target}:" not in known.stdout]
    if missing:
        raise network.Unavailable(
            f"{BUILD} has no target {', '.join(missing)}: read the output of cmake --preset release"
        )
    subprocess.run(["cmake", "--build", BUILD, "--target", *targets], stdout=sys.stderr, check=True)
    return os.path.join(BUILD, "bin")


def _require_modules(python, folder, modules):
    if not modules:
        return
    tried = subprocess.run(
        [python, "-c", f"import {', '.join(sorted(modules, reverse=True))}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": measured.package_folder(folder)},
    )
    if tried.returncode != 0:
        raise network.Unavailable(f"{python} cannot import {' and '.join(sorted(modules))}: {tried.stderr.strip()}")
