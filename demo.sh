#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")"

usage() {
    cat <<'EOF'
usage: ./demo.sh [--quick] [--json FILE] [--help]
       ./demo.sh simulate

Installs missing packages, builds, and trains a CNN with four workers: through a switch, in shared memory, and with
Gloo. Prints loss, accuracy, steps per second and the share that the switch summed. Compares the final weights of all
workers. Draws losses and throughput in build/demo/training.png.

  --quick      Train with two workers for two epochs.
  --json FILE  Write the results to this file as well.

simulate: Sums 4 MB of each of six workers in three racks of a simulated network, once with switches that only forward,
once with switches that aggregate. Prints the bytes on each link and draws them in build/demo/aggregation.png.
EOF
}

wrong_usage() {
    printf './demo.sh: %s\n' "$1" >&2
    usage >&2
    exit 2
}

log=$PWD/build/demo/build.log

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# show_steps: reads ninja's output and shows the number of finished steps and the estimated time left. On a terminal it
# rewrites one line; otherwise it prints a line after every tenth of the steps.
show_steps() {
    local line done_steps all_steps shown=0 began=$SECONDS left
    while IFS= read -r line; do
        [[ $line =~ ^@([0-9]+)/([0-9]+)@ ]] || continue
        done_steps=${BASH_REMATCH[1]} all_steps=${BASH_REMATCH[2]}
        [[ $done_steps -gt 0 ]] || continue
        left=$(((SECONDS - began) * (all_steps - done_steps) / done_steps))
        if [[ -t 1 ]]; then
            printf '\r  %d of %d steps, about %s left ' "$done_steps" "$all_steps" "$(clock $left)"
        elif [[ $((done_steps * 10 / all_steps)) -gt $shown ]]; then
            shown=$((done_steps * 10 / all_steps))
            printf '  %d of %d steps, about %s left\n' "$done_steps" "$all_steps" "$(clock $left)"
        fi
    done
    [[ ! -t 1 ]] || printf '\r%60s\r' ''
}

# build TARGET...: configures and builds. A new configuration leaves out tests and benchmarks, whose packages may be
# missing; an existing one keeps them.
build() {
    local options=(-DATP_TESTS=OFF -DATP_BENCHMARKS=OFF)
    ! grep -qs '^ATP_TESTS:BOOL=ON' build/release/CMakeCache.txt || options=()
    cmake --preset release "${options[@]}" &&
        NINJA_STATUS='@%f/%t@ ' cmake --build --preset release --parallel --target "$@"
}

# prepare TARGET... -- PACKAGE...: installs the packages of the demo and these packages, and builds the targets.
prepare() {
    local targets=()
    while [[ $1 != -- ]]; do
        targets+=("$1")
        shift
    done
    shift
    mkdir -p build/demo
    printf '1 of 3: set-up (packages, Python packages)\n'
    tools/setup.sh --demo "$@"
    printf '2 of 3: build, after %s (log: %s)\n' "$(clock $SECONDS)" "$log"
    if ! build "${targets[@]}" 2>&1 | tee "$log" | show_steps; then
        tail -n 40 "$log" >&2
        printf './demo.sh: the build failed; whole log: %s\n' "$log" >&2
        exit 1
    fi
    printf '3 of 3: run, after %s\n' "$(clock $SECONDS)"
}

train() {
    prepare atp atp_torch --
    exec build/venv/bin/python tools/train_demo.py "$@"
}

# simulate_as NAME FLAG...: simulates one run and stores its result as build/demo/NAME.json.
simulate_as() {
    local result=build/demo/$1.json
    shift
    local command=(build/release/bin/atp-lab simulate --topology racks:3x2 --server dedicated --bytes 4MB "$@")
    printf '%s\n' "${command[*]}"
    "${command[@]}" --json >"$result"
}

simulate() {
    prepare atp-lab -- graphviz
    simulate_as forwarded --aggregation nowhere
    simulate_as aggregated --aggregation everywhere
    tools/draw_aggregation.py build/demo/aggregation.dot \
        "Switches that only forward=build/demo/forwarded.json" "Switches that aggregate=build/demo/aggregated.json"
    dot -Tpng -Gdpi=110 build/demo/aggregation.dot -o build/demo/aggregation.png
    printf '\nEvery sum was verified bit by bit. Picture: build/demo/aggregation.png\n'
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
            [[ -d $(dirname "$file") ]] || wrong_usage "--json: folder $(dirname "$file") does not exist"
            options+=(--json "$file")
            shift
            ;;
        --help | -h) usage; exit 0 ;;
        *) wrong_usage "unknown option $1" ;;
    esac
    shift
done
train "${options[@]}"
