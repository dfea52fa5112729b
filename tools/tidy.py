#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy over every C++ source that a configured build compiles, in the groups that the build compiles.

The compile commands must come from a build that has ATP_UNITY, because a group reads the headers once for all its
sources. Sources that a target compiles one by one are read in groups too, and again one by one if a group does not
pass, since two of them may define one name. A source that several targets compile is read once. A group that passed is
not read again until its sources, a header that it includes, its compile command, .clang-tidy or clang-tidy itself
changes: ninja's dependency log names the headers, and one empty file in the cache folder represents each pass.

Exit status: 0 all groups passed, 1 clang-tidy reported something, 2 bad arguments or no build.
"""

import argparse
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zlib
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
SOURCES_OF_BUNDLE = 8  # as ATP_UNITY_SOURCES in cmake/AtpTarget.cmake
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


def half_of(sources):
    """0 or 1 for a group of tests or benchmarks, by its first name; None for every other group."""
    name = sources[0].relative_to(ROOT)
    return zlib.crc32(str(name).encode()) % 2 if name.parts[0] in ("tests", "bench") else None


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


def flags_of(command):
    """The arguments of the compiler that do not name this source or its object."""
    arguments = shlex.split(command["command"])[1:]
    return [
        argument
        for before, argument in zip(["", *arguments], arguments)
        if argument not in ("-c", "-o") and before not in ("-c", "-o")
    ]


def bundles_of(waiting, folder):
    """Lists of (command, key) to read together, each with the file to read and the flags for it."""
    together = {}
    for command, key, sources in waiting:
        arguments = shlex.split(command["command"])
        target = os.path.dirname(arguments[arguments.index("-o") + 1])
        name = (target, *flags_of(command)) if len(sources) == 1 else (command["file"],)
        together.setdefault(name, []).append((command, key))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    bundles = []
    for members in together.values():
        for start in range(0, len(members), SOURCES_OF_BUNDLE):
            bundle = members[start : start + SOURCES_OF_BUNDLE]
            path = folder / f"{len(bundles)}.cxx"
            path.write_text("".join(f'#include "{command["file"]}"\n' for command, _ in bundle))
            bundles.append((path, bundle))
    return bundles


def check_file(program, file, options):
    result = subprocess.run(
        [program, *EXTRA, str(file), *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = [line for line in (result.stdout + result.stderr).splitlines() if not NOISE.match(line)]
    return result.returncode, "\n".join(lines)


def check(program, build, bundle):
    """(seconds, [(status, text, key)]) of the members of the bundle."""
    path, members = bundle
    started = time.monotonic()
    results = []
    if len(members) > 1:
        status, _ = check_file(program, path, ["--", *flags_of(members[0][0])])
        if status == 0:
            results = [(0, "", key) for _, key in members]
    if not results:
        results = [(*check_file(program, command["file"], ["-p", build]), key) for command, key in members]
    return time.monotonic() - started, results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="clang-tidy to run")
    parser.add_argument("--build", default="build/release", type=Path, help="configured build folder [build/release]")
    parser.add_argument(
        "--filter", default="", help="read only groups with a source whose path contains this text [all]"
    )
    parser.add_argument(
        "--half",
        type=int,
        choices=(0, 1),
        help="of the groups in tests and bench, read only this half: a commit reads one, the next may read the other",
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
    if arguments.half is not None:
        groups = [group for group in groups if half_of(group[1]) in (None, arguments.half)]
    keyed = [(command, key_of(command, sources, dependencies, common), sources) for command, sources in groups]
    waiting = [group for group in keyed if arguments.no_cache or group[1] is None or not (cache / group[1]).exists()]
    bundles = bundles_of(waiting, build / "tidy")
    print(f"{len(seen)} sources in {len(groups)} groups, {len(groups) - len(waiting)} unchanged since they passed")
    for name in forgotten_sources(seen):
        print(f"skipped, not compiled by this build: {name}")

    reported, slowest = set(), []
    failed = False
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for bundle, (seconds, results) in zip(bundles, pool.map(lambda b: check(arguments.program, build, b), bundles)):
            slowest.append((seconds, ", ".join(os.path.relpath(command["file"], build) for command, _ in bundle[1])))
            for status, text, key in results:
                failed |= status != 0
                if status == 0 and key:
                    (cache / key).touch()
                # Each group that includes a header reports its errors.
                if status != 0 and text not in reported:
                    print(text)
                    reported.add(text)
            if sys.stdout.isatty():
                print(f"{len(slowest)} of {len(bundles)}", end="\r", flush=True)
    for seconds, name in sorted(slowest, reverse=True)[:5]:
        print(f"{seconds:6.1f} s  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
