#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the form of the sources: `format` with clang-format, `tidy` with clang-tidy, `python` with ruff and mypy, without an
# argument all of them.
# Exit status: 0 nothing to complain of, 1 something, 77 the tool's version is not the one the sources are written with.
# `tidy` needs the compile commands of a configured build: BUILD_DIR, by default build/release.
set -euo pipefail
cd "$(dirname "$0")/.."

build_dir=${BUILD_DIR:-build/release}
version=14 # other versions format otherwise and warn of other things

# tool NAME: the program of this name in the version above, or nothing.
tool() {
    if command -v "$1-$version" >/dev/null; then
        printf '%s\n' "$1-$version"
    elif "$1" --version 2>/dev/null | grep -q "version $version\."; then
        printf '%s\n' "$1"
    fi
}

skip() {
    printf 'scripts/lint.sh: skipped, there is no %s %s on this machine\n' "$1" "$version"
    exit 77
}

check_format() {
    local clang_format
    clang_format=$(tool clang-format)
    [[ -n $clang_format ]] || skip clang-format
    git ls-files -z '*.h' '*.cc' '*.c' | xargs -0 "$clang_format" --dry-run -Werror
}

check_tidy() {
    local clang_tidy
    clang_tidy=$(tool clang-tidy)
    [[ -n $clang_tidy ]] || skip clang-tidy
    [[ -f $build_dir/compile_commands.json ]] || { echo "scripts/lint.sh: configure $build_dir first" >&2; exit 1; }
    # The commands were written for gcc, whose warning flags clang does not all know. The count that clang-tidy prints for
    # each file is of warnings in the headers of others.
    git ls-files -z 'src/*.cc' |
        xargs -0 -n 1 -P "$(nproc)" "$clang_tidy" --quiet -p "$build_dir" --extra-arg=-Wno-unknown-warning-option \
            2> >(grep -v ' warnings\? generated\.$' >&2)
}

check_python() {
    local tools=build/venv/bin programs
    mapfile -t programs < <(git grep -lI '^#!/usr/bin/env python3' -- ':!*.py') # ruff finds the others itself
    "$tools/ruff" format --quiet --diff . "${programs[@]}" && "$tools/ruff" check --quiet . "${programs[@]}" &&
        "$tools/mypy" python/atp
}

case ${1:-all} in
    format) check_format ;;
    tidy) check_tidy ;;
    python) check_python ;;
    all) check_format && check_tidy && check_python ;;
    *) echo "usage: scripts/lint.sh [format|tidy|python]" >&2; exit 2 ;;
esac
