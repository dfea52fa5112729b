#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")"

usage() {
    cat <<'EOF'
usage: ./demo.sh [--quick] [--json FILE] [--help]
       ./demo.sh simulate

Installs what is missing, builds, and trains a CNN with four workers whose gradients are summed in a switch, then the
same with Gloo. Prints loss, accuracy, steps a second, the share that was summed in the network and whether all workers
ended with the same weights; draws losses and throughput in build/demo/training.png.

  --quick      two workers, two epochs
  --json FILE  writes the figures there, too

simulate: six workers in three racks sum 4 MB each in a simulated network, once with switches that only forward, once
with switches that aggregate. Shows what travelled up each link, here and in build/demo/aggregation.png.
EOF
}

wrong_usage() {
    printf './demo.sh: %s\n' "$1" >&2
    usage >&2
    exit 2
}

# prepare TARGET... -- PACKAGE...: installs, these packages too, and builds.
prepare() {
    local targets=() log=build/demo/build.log
    while [[ $1 != -- ]]; do
        targets+=("$1")
        shift
    done
    shift
    scripts/setup.sh "$@"
    mkdir -p build/demo
    echo "building: minutes the first time, seconds later; the compiler's words are in $log"
    if ! { cmake --preset release && cmake --build --preset release --parallel --target "${targets[@]}"; } \
        >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        exit 1
    fi
}

train() {
    prepare atp atp_torch --
    exec build/venv/bin/python scripts/train_demo.py "$@"
}

# simulate_as NAME FLAG...: one run, its result as build/demo/NAME.json.
simulate_as() {
    local result=build/demo/$1.json
    shift
    local command=(build/release/bin/atp simulate --topology racks:3x2 --server dedicated --bytes 4MB "$@")
    printf '%s\n' "${command[*]}"
    "${command[@]}" --json >"$result"
}

simulate() {
    prepare atp -- graphviz
    simulate_as forwarded --aggregation nowhere
    simulate_as aggregated --aggregation everywhere
    scripts/draw_aggregation.py build/demo/aggregation.dot \
        "Switches that only forward=build/demo/forwarded.json" "Switches that aggregate=build/demo/aggregated.json"
    dot -Tpng -Gdpi=110 build/demo/aggregation.dot -o build/demo/aggregation.png
    printf '\nEvery sum was verified bit by bit. The picture: build/demo/aggregation.png\n'
}

if [[ ${1:-} == simulate ]]; then
    [[ $# -eq 1 ]] || wrong_usage "simulate takes no options"
    simulate
    exit
fi
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --quick) options+=(--workers 2 --epochs 2) ;;
        --json)
            [[ -n ${2:-} ]] || wrong_usage "--json needs a file"
            [[ $2 == /* ]] && file=$2 || file=$called_from/$2
            [[ -d $(dirname "$file") ]] || wrong_usage "there is no folder $(dirname "$file")"
            options+=(--json "$file")
            shift
            ;;
        --help | -h) usage; exit 0 ;;
        *) wrong_usage "unknown option $1" ;;
    esac
    shift
done
train "${options[@]}"
