#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'EOF'
usage: ./test.sh [--quick] [--help]

Installs missing packages, builds, and runs these steps:
  format     clang-format
  python     ruff and mypy
  release    build/release and all its tests
  wheel      the wheel of `pip wheel .`, in an empty folder
  check      the model checker over its default configurations
  swarm      the simulator over 1,000 scenarios drawn from the commit, and over 1,000 of joining and failures
  tidy       clang-tidy over all C++ sources
  coverage   lines that unit tests execute: at least 95 % of control and endpoint, 80 % of switchd, shm and capi
  asan       the quick tests again under AddressSanitizer and UndefinedBehaviorSanitizer
  tsan       the tests of programs with threads again under ThreadSanitizer
  fuzz       each libFuzzer target for ATP_FUZZ_SECONDS (15)

  --quick    Run only format and release. Build and run only the tests of the machines, hazards, net, store, client,
             comm, conformance, e2e and python.

The end shows the time of each step, the tests of step release that passed only when repeated, and those that failed.
The last line is `N passed, N failed, N skipped`, over all steps. Exit status: 0 no failure, 1 a failure, 2 bad
arguments.
EOF
}

quick=no
for argument in "$@"; do
    case $argument in
        --quick) quick=yes ;;
        --help | -h) usage; exit 0 ;;
        *) printf './test.sh: unknown option %s\n' "$argument" >&2; usage >&2; exit 2 ;;
    esac
done

jobs=$(nproc)
results=build/results # one JUnit file for each run of ctest
passed=0 failed=0 skipped=0
failures=() unsteady=()

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# headline NAME: ends the previous step and begins step NAME. Prints the time since the start.
timed_names=() timed_seconds=() begun=0
headline() {
    [[ ${#timed_names[@]} -eq 0 ]] || timed_seconds+=($((SECONDS - begun)))
    timed_names+=("$1") begun=$SECONDS
    printf '\n== %s (%s)%s\n' "$1" "$(clock $SECONDS)" "${steps_left:+, then: $steps_left}"
}

# next NAME: the following lines run step NAME. Headlines then list the steps after NAME.
next() { [[ " $steps_left " == *" $1 "* ]] && steps_left=${steps_left#*"$1"} steps_left=${steps_left# }; }

# record NAME STATUS: counts a step that ctest does not run. Status 77: skipped.
record() {
    case $2 in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)); failures+=("$1") ;;
    esac
}

# step NAME COMMAND...: runs the command, counts the step, and returns the status.
step() {
    local name=$1 status
    shift
    headline "$name"
    "$@"
    status=$?
    record "$name" $status
    return $status
}

# build PRESET TARGET... : configures and builds. Counts only a failure: after a success, the tests are counted.
build() {
    local preset=$1
    shift
    headline "build $preset"
    if cmake --preset "$preset" "${configure_options[@]}" >"build/configure-$preset.log" 2>&1; then
        cmake --build --preset "$preset" --parallel "$jobs" --target "$@" -- -k 0 && return 0
    else
        cat "build/configure-$preset.log"
    fi
    record "build $preset" 1
    return 1
}

# run_ctest NAME FOLDER CTEST_OPTION...: runs every test under a build folder and counts each.
run_ctest() {
    local name=$1 folder=$2 junit=$PWD/$results/$1.xml log=$PWD/$results/$1.log status result_lines counts
    shift 2
    headline "test $name"
    ctest --test-dir "$folder" --parallel "$jobs" --output-on-failure --no-tests=error --output-junit "$junit" \
        --output-log "$log" "$@"
    status=$?
    mapfile -t result_lines < <(python3 tools/count_results.py "$junit")
    read -ra counts <<<"${result_lines[0]:-}"
    if [[ ${#counts[@]} -ne 3 || ($status -ne 0 && ${counts[1]} -eq 0) ]]; then
        record "ctest $name" 1 # ctest failed, but its results show no failed test
        return
    fi
    passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
    [[ ${counts[1]} -eq 0 ]] || failures+=("${result_lines[@]:1}")
    mapfile -t -O "${#unsteady[@]}" unsteady < <(
        sed -nE 's/.* Test +#[0-9]+: ([^ ]+) .*\*\*\*(Failed|Timeout|Exception).*/\1/p' "$log" | sort -u |
            grep -vxF -f <(printf 'no test\n' && printf '%s\n' "${result_lines[@]:1}"))
}

summary() {
    local index
    steps_left=
    headline summary
    printf '%8s  %s\n' time step
    for index in "${!timed_seconds[@]}"; do
        printf '%8s  %s\n' "$(clock "${timed_seconds[index]}")" "${timed_names[index]}"
    done
    printf '%8s  total\n' "$(clock $SECONDS)"
    [[ ${#unsteady[@]} -eq 0 ]] || printf 'passed only when repeated: %s\n' "${unsteady[@]}"
    [[ ${#failures[@]} -eq 0 ]] || printf 'failed: %s\n' "${failures[@]}"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [[ $failed -eq 0 && $passed -gt 0 ]]
}

configure_options=()
steps_left="setup format python release wheel check swarm tidy coverage asan tsan fuzz"
[[ $quick == no ]] || steps_left="setup format release"
rm -rf "$results"
mkdir -p "$results"

# The steps that take seconds come first, so that their failures show early.
next setup
headline setup
if ! tools/setup.sh; then
    record setup 1
    summary
    exit 1
fi
next format
step format tools/lint.sh format
if [[ $quick == yes ]]; then
    next release
    kinds=(base wire numeric protocol hazards control endpoint tensor net store client comm capi conformance e2e)
    targets=("${kinds[@]/#/tests/}")
    # python.convergence needs the laboratory's program, which this build leaves out.
    build release atp_torch "${targets[@]/%//all}" &&
        run_ctest release build/release --exclude-regex '^python\.convergence$' \
            --label-regex "^($(IFS='|' && printf '%s' "${kinds[*]}")|python)\$"
    summary
    exit
fi
next python
step python tools/lint.sh python
# Tests that use the real kernel, real sockets and several processes share the machine with others. One that fails runs
# once more; the summary names it.
next release
build release all && run_ctest release build/release --repeat until-pass:2
next wheel
step wheel tools/check_wheel.sh
next check
step check build/release/bin/atp-lab check
next swarm
seed=$((16#$(git rev-parse HEAD | cut -c1-7)))
step swarm build/release/bin/atp-lab simulate --swarm 1000 --seed "$seed"
next tidy
step tidy tools/lint.sh tidy
next coverage
step coverage tools/coverage --minimum
next asan
kinds=(base wire numeric protocol hazards control endpoint tensor net shm store client comm capi staging conformance e2e fuzz)
targets=("${kinds[@]/#/tests/}")
build asan "${targets[@]/%//all}" && for kind in "${kinds[@]}"; do run_ctest "asan-$kind" "build/asan/tests/$kind"; done
# Of the end-to-end tests, runs only those in one process. The others need the whole command, and ThreadSanitizer does
# not check several processes together.
next tsan
kinds=(net store client comm capi staging)
targets=("${kinds[@]/#/tests/}")
build tsan "${targets[@]/%//all}" e2e_test && {
    for kind in "${kinds[@]}" e2e; do
        run_ctest "tsan-$kind" "build/tsan/tests/$kind" --exclude-regex NOT_BUILT
    done
}
next fuzz
configure_options=("-DATP_FUZZ_SECONDS=${ATP_FUZZ_SECONDS:-15}")
build fuzz tests/fuzz/all && run_ctest fuzz build/fuzz/tests/fuzz
summary
