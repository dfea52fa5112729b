#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the sources: `format` with clang-format, `python` with ruff and mypy, `tidy` with clang-tidy; without an argument
# with all of them. The tools are those of build/venv, in the versions that tools/requirements.txt fixes. A missing tool
# is a failure.
# Exit status: 0 nothing reported, 1 something reported or a tool missing, 2 bad arguments.
# `tidy` reads the compile commands of a configured build: BUILD_DIR [build/release].
set -euo pipefail
cd "$(dirname "$0")/.."

build_dir=${BUILD_DIR:-build/release}
tools=build/venv/bin

need() {
    [[ -x $tools/$1 ]] && return
    printf 'tools/lint.sh: %s is missing; tools/setup.sh installs it\n' "$tools/$1" >&2
    exit 1
}

check_format() {
    need clang-format
    git ls-files -z '*.h' '*.hpp' '*.cc' '*.c' | xargs -0 "$tools/clang-format" --dry-run -Werror
}

# Product, laboratory, tests, benchmarks and the library for PyTorch. The program itself, since its wrapper in Python would
# start once per group of sources.
check_tidy() {
    local program
    need clang-tidy
    program=$("$tools/python" -c 'import pathlib, clang_tidy; print(pathlib.Path(clang_tidy.__file__).parent / "data/bin/clang-tidy")')
    tools/tidy.py --program "$program" --build "$build_dir" "$@"
}

check_python() {
    local programs
    need ruff
    need mypy
    mapfile -t programs < <(git grep -lI '^#!/usr/bin/env python3' -- ':!*.py') # ruff finds the others itself
    "$tools/ruff" format --quiet --diff . "${programs[@]}" && "$tools/ruff" check --quiet . "${programs[@]}" &&
        "$tools/mypy" python/atp python/atp_autoload.py
}

case ${1:-all} in
    format) check_format ;;
    tidy) check_tidy "${@:2}" ;;
    python) check_python ;;
    all) check_format && check_python && check_tidy ;;
    *) echo "usage: tools/lint.sh [format|tidy [OPTION OF tools/tidy.py ...]|python]" >&2; exit 2 ;;
esac
