#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'EOF'
usage: ./test.sh [--quick | --all] [--help]

Installs missing packages, builds, and runs these steps. They are meant to end within 60 minutes on two cores:
  format     clang-format
  python     ruff and mypy
  frameworks packages of tests/frameworks and tests/packaging, into environments of their own below build
  release    build/release and its tests, without those labelled `long`
  wheel      tools/build_wheel for two releases of torch, and the wheel in an empty environment
  check      the model checker over its default configurations, each up to 2 million states
  swarm      the simulator over 2,000 scenarios drawn from the commit
  tidy       clang-tidy over all C++ sources but a half of tests and benchmarks, which the commit chooses
  coverage   unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, and the lines that they execute: at least
             95 % of control and endpoint, 80 % of comm, switchd, shm and capi
  asan       the tests of the other machines and of code that reads bytes, under the same sanitizers
  tsan       the tests of programs with threads, under ThreadSanitizer
  fuzz       each libFuzzer target for ATP_FUZZ_SECONDS (5)

  --quick    Run only format and release. Build and run only the tests of the machines, hazards, net, store, client,
             comm, capi, conformance, e2e and python.
  --all      Run also what is long: tests labelled `long` (such as installing in empty systems), the whole checker,
             every fault that it injects, 20,000 scenarios from each of two seeds, every test under the sanitizers, and
             60 s for each fuzz target. Takes some hours. Run it before you close an issue.

The end shows the time of each step, the tests of step release that passed only when repeated, and those that failed.
The last line is `N passed, N failed, N skipped`, over all steps. Exit status: 0 no failure, 1 a failure, 2 bad
arguments.
EOF
}

extent=usual
for argument in "$@"; do
    case $argument in
        --quick | --all)
            [[ $extent == usual ]] || { printf './test.sh: --quick and --all exclude each other\n' >&2; exit 2; }
            extent=${argument#--} ;;
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

install_environments() { tests/packaging/install && tests/frameworks/install "$@"; }

# For the release that the other tests use and another, or for every release.
build_and_try_wheel() {
    rm -rf build/wheel/out
    build/venv/bin/python -B tools/build_wheel --torch "$@" &&
        build/venv/bin/python -B tools/try_wheel build/wheel/out/*.whl --torch 2.13
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
case $extent in
    quick) steps_left="setup format release" ;;
    usual) steps_left="setup format python frameworks release wheel check swarm tidy coverage asan tsan fuzz" ;;
    all) steps_left="setup format python frameworks release wheel check breaks swarm tidy coverage asan tsan fuzz long" ;;
esac
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
if [[ $extent == quick ]]; then
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
next frameworks
framework_options=()
[[ $extent == all ]] && framework_options=(--all)
step frameworks install_environments "${framework_options[@]}"
# Tests that use the real kernel, real sockets and several processes share the machine with others. One that fails runs
# once more; the summary names it.
next release
build release all && run_ctest release build/release --label-exclude '^long$' --repeat until-pass:2
next wheel
if [[ $extent == all ]]; then step wheel build_and_try_wheel all --offered; else step wheel build_and_try_wheel 2.13,2.14; fi

# What a change must pass is a part of what a closed issue must pass, since the whole takes hours.
seed=$((16#$(git rev-parse HEAD | cut -c1-7)))
lab=build/release/bin/atp-lab
if [[ $extent == all ]]; then
    check_options=() seeds=("$seed" $((seed + 1000000))) scenarios=20000 fuzz_seconds=60 tidy_options=()
    asan=(base wire numeric protocol hazards tensor net store client staging conformance e2e fuzz)
    tsan=(net store client comm capi staging)
else
    check_options=(--max-states 2000000) seeds=("$seed") scenarios=2000 fuzz_seconds=5 tidy_options=(--half $((seed % 2)))
    asan=(wire protocol hazards tensor net store fuzz)
    tsan=(net store comm capi staging)
fi
next check
step check "$lab" check "${check_options[@]}"
if [[ $extent == all ]]; then
    next breaks
    step breaks "$lab" check --break all
fi
next swarm
for first in "${seeds[@]}"; do step "swarm $first" "$lab" simulate --swarm "$scenarios" --seed "$first"; done
next tidy
step tidy tools/lint.sh tidy "${tidy_options[@]}"
next coverage
step coverage tools/coverage --minimum
next asan
targets=("${asan[@]/#/tests/}")
build asan "${targets[@]/%//all}" && for kind in "${asan[@]}"; do run_ctest "asan-$kind" "build/asan/tests/$kind"; done
# Of the end-to-end tests, runs only those in one process. The others need the whole command, and ThreadSanitizer does
# not check several processes together.
next tsan
targets=("${tsan[@]/#/tests/}")
build tsan "${targets[@]/%//all}" e2e_test && {
    for kind in "${tsan[@]}" e2e; do
        run_ctest "tsan-$kind" "build/tsan/tests/$kind" --exclude-regex NOT_BUILT
    done
}
next fuzz
configure_options=("-DATP_FUZZ_SECONDS=${ATP_FUZZ_SECONDS:-$fuzz_seconds}")
build fuzz tests/fuzz/all && run_ctest fuzz build/fuzz/tests/fuzz
if [[ $extent == all ]]; then
    next long
    run_ctest long build/release --label-regex '^long$'
fi
summary
