#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build, the tests and the demo need and this machine lacks, on Debian 12, 13 and Ubuntu 22.04, 24.04.
# Asks the package database alone when nothing is missing. Needs root or sudo only when something is.
#
# What is for Python goes into build/venv.
#
# usage: scripts/setup.sh [PACKAGE ...]: these too.
set -euo pipefail

packages=(
    build-essential cmake ninja-build git python3       # the build itself
    ccache                                              # a quicker build
    libhwy-dev                                          # src/numeric
    libcli11-dev libfmt-dev nlohmann-json3-dev          # src/sim, src/check, src/cli, bench
    libexpected-dev                                     # src/net
    libtomlplusplus-dev                                 # src/plan
    libgtest-dev libgmock-dev librapidcheck-dev         # tests
    libbenchmark-dev                                    # bench
    pkg-config                                          # tests/packaging
    iproute2                                            # bench/cluster
    clang                                               # fuzzers, the check that the switch compiles for BPF
    python3-dev python3-venv                            # python, in an environment of its own
)
# What a distribution may lack; what needs it is then not built, and says so.
wanted_packages=(
    libgloo-dev libopenmpi-dev openmpi-bin              # bench/peer
    libbpf-dev bpftool                                  # src/xdp
    iperf3 ethtool                                      # bench/cluster
)
# Formatters of other versions format otherwise, so version 14 is installed wherever the distribution has it.
lint_tools=(clang-format clang-tidy)

fail() {
    printf 'scripts/setup.sh: %s\n' "$1" >&2
    exit 1
}

is_installed() {
    [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

missing_of() {
    local package
    for package in "$@"; do
        is_installed "$package" || printf '%s\n' "$package"
    done
}

as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "missing: ${missing[*]}; run this as root once, or install sudo"
    fi
}

updated=no
apt_update_once() {
    [[ $updated == yes ]] && return
    as_root apt-get update -qq || fail "apt-get update failed: is there a way to the package archive?"
    updated=yes
}

install() {
    apt_update_once
    printf 'installing: %s\n' "$*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        fail "apt-get could not install: $*"
}

install_packages() {
    mapfile -t missing < <(missing_of "$@")
    [[ ${#missing[@]} -eq 0 ]] || install "${missing[@]}"
}

install_wanted_packages() {
    local package
    for package in "${wanted_packages[@]}"; do
        is_installed "$package" && continue
        missing=("$package")
        compgen -G "/var/lib/apt/lists/*Packages*" >/dev/null || apt_update_once # a fresh machine knows no package
        if apt-cache show "$package" >/dev/null 2>&1; then
            install "$package"
        else
            printf 'not to be had from this distribution, done without: %s\n' "$package"
        fi
    done
}

install_lint_tools() {
    local tool
    for tool in "${lint_tools[@]}"; do
        is_installed "$tool-14" || is_installed "$tool" && continue
        missing=("$tool")
        apt_update_once
        if apt-cache show "$tool-14" >/dev/null 2>&1; then
            install "$tool-14"
        else
            install "$tool"
        fi
    done
}

# Clang's runtimes stand in a package of their own, or with the headers, depending on the release.
install_clang_runtimes() {
    local resources
    resources=$(clang -print-resource-dir)
    compgen -G "$resources/lib/*/libclang_rt.fuzzer*" >/dev/null && return
    missing=("libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev")
    install "${missing[@]}"
}

# pip is asked only when the list has changed.
install_for_python() {
    local list=scripts/requirements.txt venv=build/venv
    cmp --silent "$list" "$venv/installed.txt" && return
    printf 'installing for Python: %s\n' "$(grep -o '^[a-z][a-z-]*' "$list" | paste -sd' ')"
    python3 -m venv "$venv" && "$venv/bin/pip" install -qq --requirement "$list" ||
        fail "pip could not install what is in $list: is there a way to the package index?"
    cp "$list" "$venv/installed.txt"
}

cd "$(dirname "$0")/.."
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    fail "this knows Debian and Ubuntu only; install by hand what stands for: ${packages[*]} ${lint_tools[*]}"
install_packages "${packages[@]}" "$@"
install_wanted_packages
install_lint_tools
install_clang_runtimes
install_for_python
