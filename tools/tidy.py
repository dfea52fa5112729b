#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy over every C++ source that a configured build compiles, in the groups that the build compiles.

The compile commands must come from a build that has ATP_UNITY, because a group reads the headers once for all its
sources. A source that several targets compile is read once. A group that passed is not read again until its sources, a
header that it includes, its compile command, .clang-tidy or clang-tidy itself changes: ninja's dependency log names the
headers, and one empty file in the cache folder represents each pass.

Exit status: 0 all groups passed, 1 clang-tidy reported something, 2 bad arguments or no build.
"""

import argparse
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDED_SOURCE = re.compile(r'^#include "(.+\.cc)"$', re.MULTILINE)
# gcc's commands contain warning flags that clang does not know. Headers of the standard library use features that the
# library deprecates.
EXTRA = [
    "--quiet",
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Wno-unused-command-line-argument",
    "--extra-arg=-Wno-deprecated-declarations",
    "--extra-arg=-Wno-inconsistent-missing-override",
    "--extra-arg=-Wno-c2y-extensions",
]
NOISE = re.compile(r"^\d+ (warnings?|errors?) (generated|treated|and)|^Suppressed |^Use -header-filter|^\[\d+/\d+\]|^$")


def project_sources(command):
    """The project's own sources that this command compiles: the members of a group, or the file itself."""
    path = Path(command["file"])
    if path.suffix == ".cxx" and path.parent.name == "Unity":
        return [Path(name) for name in INCLUDED_SOURCE.findall(path.read_text())]
    return [path] if path.suffix == ".cc" else []


def groups_of(build):
    """One command for each set of sources; variants of a library are read once."""
    commands = json.loads((build / "compile_commands.json").read_text())
    seen, groups = set(), []
    for command in commands:
        sources = [source for source in project_sources(command) if source.is_relative_to(ROOT)]
        if not seen.issuperset(sources):
            groups.append((command, sources))
        seen.update(sources)
    return groups, seen


def forgotten_sources(seen):
    """Sources of the repository that no target of this build compiles."""
    listed = subprocess.run(["git", "ls-files", "*.cc"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in listed.stdout.split() if ROOT / name not in seen)


def dependencies_of(build):
    """Object file -> files that its compilation read, from ninja's log."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    dependencies = {}
    for block in listing.split("\n\n"):
        lines = block.strip().splitlines()
        if lines and "(VALID)" in lines[0]:
            dependencies[lines[0].split(":")[0]] = [line.strip() for line in lines[1:]]
    return dependencies


@functools.cache
def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def key_of(command, sources, dependencies, common):
    """Hash of everything that the result depends on; None if the build has not compiled this group."""
    folder = Path(command["directory"])
    arguments = shlex.split(command["command"])
    read = dependencies.get(arguments[arguments.index("-o") + 1]) if "-o" in arguments else None
    if read is None:
        return None
    # A path inside the project counts relative to it, so that clones share results.
    hashed = hashlib.sha256(common.encode())
    hashed.update(command["command"].replace(str(ROOT), "").encode())
    for name in sorted({os.path.normpath(folder / name) for name in read} | {str(source) for source in sources}):
        if not os.path.exists(name):
            return None
        # The file of a group contains only paths.
        if "/Unity/" not in name:
            hashed.update(f"{name.replace(str(ROOT), '')} {digest(name)}\n".encode())
    return hashed.hexdigest()


def check(program, build, command):
    started = time.monotonic()
    result = subprocess.run(
        [program, "-p", build, *EXTRA, command["file"]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = [line for line in (result.stdout + result.stderr).splitlines() if not NOISE.match(line)]
    return result.returncode, "\n".join(lines), time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="clang-tidy to run")
    parser.add_argument("--build", default="build/release", type=Path, help="configured build folder [build/release]")
    parser.add_argument(
        "--filter", default="", help="read only groups with a source whose path contains this text [all]"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="groups read at a time [number of processors]")
    parser.add_argument("--no-cache", action="store_true", help="read every group again")
    arguments = parser.parse_args()
    build = (ROOT / arguments.build).resolve()
    if not (build / "compile_commands.json").exists():
        parser.error(f"{arguments.build} is not configured: run cmake --preset release")

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "atp" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([arguments.program, "--version"], capture_output=True, text=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_text() + " ".join(EXTRA)
    dependencies = dependencies_of(build)
    groups, seen = groups_of(build)
    groups = [group for group in groups if any(arguments.filter in str(source) for source in group[1])]
    keyed = [(command, key_of(command, sources, dependencies, common)) for command, sources in groups]
    waiting = [(c, k) for c, k in keyed if arguments.no_cache or k is None or not (cache / k).exists()]
    print(f"{len(seen)} sources in {len(groups)} groups, {len(groups) - len(waiting)} unchanged since they passed")
    for name in forgotten_sources(seen):
        print(f"skipped, not compiled by this build: {name}")

    reported, done, slowest = set(), 0, []
    failed = False
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = pool.map(lambda pair: check(arguments.program, build, pair[0]), waiting)
        for (command, key), (status, text, seconds) in zip(waiting, results):
            done += 1
            slowest.append((seconds, os.path.relpath(command["file"], build)))
            if status == 0 and key:
                (cache / key).touch()
            elif status != 0:
                failed = True
                # Each group that includes a header reports its errors.
                if text not in reported:
                    print(text)
                reported.add(text)
            if sys.stdout.isatty():
                print(f"{done} of {len(waiting)}", end="\r", flush=True)
    for seconds, name in sorted(slowest, reverse=True)[:5]:
        print(f"{seconds:6.1f} s  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
