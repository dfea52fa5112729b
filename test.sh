#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'EOF'
usage: ./test.sh [--quick] [--help]

Installs what is missing, builds, and runs everything there is to test:
  release    build/release and all tests
  check      the model checker over its default configurations
  swarm      the simulator over 300 scenarios drawn from the commit
  wheel      what `pip install .` would install
  format     clang-format
  tidy       clang-tidy over src/
  python     ruff and mypy
  asan       the quick tests again under AddressSanitizer and UndefinedBehaviorSanitizer
  tsan       what has threads again under ThreadSanitizer
  fuzz       each libFuzzer target for ATP_FUZZ_SECONDS (15)

  --quick    release and format alone

The last line is `N passed, N failed, N skipped`, over all of it; the exit status is 0 when nothing failed.
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
failures=()

# With the minutes and seconds since the start.
headline() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# record NAME STATUS: counts a step that is no test of ctest's; 77 says that it was skipped.
record() {
    case $2 in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)); failures+=("$1") ;;
    esac
}

# step NAME COMMAND...: runs it, counts it, and returns its status.
step() {
    local name=$1 status
    shift
    headline "$name"
    "$@"
    status=$?
    record "$name" $status
    return $status
}

# build PRESET TARGET... : configures and builds; counted only when it fails, since the tests say the rest.
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

# run_ctest NAME FOLDER CTEST_OPTION...: every test under a build folder, added to the counts.
run_ctest() {
    local name=$1 folder=$2 junit=$PWD/$results/$1.xml status counts
    shift 2
    headline "test $name"
    ctest --test-dir "$folder" --parallel "$jobs" --output-on-failure --no-tests=error --output-junit "$junit" "$@"
    status=$?
    read -ra counts < <(python3 scripts/count_results.py "$junit")
    if [[ ${#counts[@]} -ne 3 || ($status -ne 0 && ${counts[1]} -eq 0) ]]; then
        record "ctest $name" 1 # ctest failed in a way that its results do not tell
        return
    fi
    passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
    [[ ${counts[1]} -eq 0 ]] || failures+=("$name: ${counts[1]}")
}

summary() {
    headline summary
    [[ ${#failures[@]} -eq 0 ]] || printf 'failed: %s\n' "${failures[@]}"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [[ $failed -eq 0 && $passed -gt 0 ]]
}

configure_options=()
rm -rf "$results"
mkdir -p "$results"

headline setup
if ! scripts/setup.sh; then
    record setup 1
    summary
    exit 1
fi
build release all && run_ctest release build/release
step format scripts/lint.sh format
if [[ $quick == no ]]; then
    step wheel scripts/check_wheel.sh
    step check build/release/bin/atp check
    step swarm build/release/bin/atp simulate --swarm 300 --seed "$((16#$(git rev-parse HEAD | cut -c1-7)))"
    step tidy scripts/lint.sh tidy
    step python scripts/lint.sh python
    build asan tests/unit/all tests/conformance/all tests/net/all tests/comm/all tests/staging/all tests/e2e/all tests/fuzz/all && {
        for kind in unit conformance net comm staging e2e fuzz; do
            run_ctest "asan-$kind" "build/asan/tests/$kind"
        done
    }
    # Of the end-to-end tests those inside one process: the others would compile the whole command for threads of which
    # each has its own process.
    build tsan tests/net/all tests/comm/all tests/staging/all e2e_test c_api_test && {
        for kind in net comm staging e2e; do
            run_ctest "tsan-$kind" "build/tsan/tests/$kind" --exclude-regex NOT_BUILT
        done
    }
    configure_options=("-DATP_FUZZ_SECONDS=${ATP_FUZZ_SECONDS:-15}")
    build fuzz tests/fuzz/all && run_ctest fuzz build/fuzz/tests/fuzz
fi
summary
