#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'EOF'
usage: ./demo.sh [--help]

Installs what is missing, builds, and simulates six workers in three racks that sum 4 MB each: once with switches that
only forward, once with switches that aggregate. Shows what travelled up each link, here and in build/demo/aggregation.png.
EOF
}

case ${1:-} in
    '') ;;
    --help | -h) usage; exit 0 ;;
    *) printf './demo.sh: unknown option %s\n' "$1" >&2; usage >&2; exit 2 ;;
esac

scripts/setup.sh graphviz
mkdir -p build/demo
log=build/demo/build.log
echo "building (the compiler's words are in $log)"
if ! { cmake --preset release && cmake --build --preset release --parallel --target atp; } >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    exit 1
fi

# simulate NAME FLAG...: one run, its result as build/demo/NAME.json.
simulate() {
    local result=build/demo/$1.json
    shift
    local command=(build/release/bin/atp simulate --topology racks:3x2 --server dedicated --bytes 4MB "$@")
    printf '%s\n' "${command[*]}"
    "${command[@]}" --json >"$result"
}

simulate forwarded --aggregation nowhere
simulate aggregated --aggregation everywhere
scripts/draw_aggregation.py build/demo/aggregation.dot \
    "Switches that only forward=build/demo/forwarded.json" "Switches that aggregate=build/demo/aggregated.json"
dot -Tpng -Gdpi=110 build/demo/aggregation.dot -o build/demo/aggregation.png
printf '\nEvery sum was verified bit by bit. The picture: build/demo/aggregation.png\n'
