#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that the build, the tests and the demo need, on Debian 12, 13 and Ubuntu 22.04, 24.04. Python
# packages go into build/venv. If nothing is missing, it only reads the package database and takes less than a second.
# Needs root or sudo only to install.
#
# usage: tools/setup.sh [--demo | --switch | --pip] [PACKAGE ...]
#   --demo     Install only what ./demo.sh builds and runs.
#   --switch   Install only what the preset `switch` builds: `atp` and libatp. No Python, no tests.
#   --pip      Install only what `pip install .` builds with, in an environment that has torch and scikit-build-core.
#   PACKAGE    Install this package as well.
set -euo pipefail

switch_packages=(
    build-essential cmake ninja-build                   # the build itself
    libhwy-dev                                          # vector instructions
    libcli11-dev libfmt-dev nlohmann-json3-dev          # atp and atp-lab
    libevent-dev                                        # HTTP of atp metrics
    libexpected-dev                                     # results of operations
    libsodium-dev                                       # keys and seals
    libspdlog-dev                                       # the log
    libtomlplusplus-dev                                 # tenants of a switch, descriptions of clusters
)
pip_packages=(
    "${switch_packages[@]}"
    python3-venv                                        # torch, and the tools in Python
)
demo_packages=(
    "${pip_packages[@]}"
    git
    ccache                                              # makes a second build faster
)
packages=(
    libgtest-dev libgmock-dev librapidcheck-dev         # tests
    libbenchmark-dev                                    # bench
    pkg-config                                          # tests/packaging
    iproute2                                            # bench/cluster
    clang                                               # fuzz targets, programs for the kernel
)
# A distribution may lack these. The programs that need one are then not built, and the configuration reports it.
wanted_packages=(
    libgloo-dev libopenmpi-dev openmpi-bin              # bench/peer
    libbpf-dev bpftool libelf-dev zlib1g-dev            # the switch inside the kernel
    iperf3 ethtool                                      # bench/cluster
    tshark                                              # tests/conformance: the dissector
    abigail-tools                                       # tools/check_abi
    tmux                                                # tests/apps: atp top
)

fail() {
    printf 'tools/setup.sh: %s\n' "$1" >&2
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
    as_root apt-get update -qq || fail "apt-get update failed: check that this machine reaches the package archive"
    updated=yes
}

# All packages in one call: apt-get then reads its lists and runs its triggers once.
install_packages() {
    mapfile -t missing < <(missing_of "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    apt_update_once
    printf 'installing packages: %s\n' "${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        fail "apt-get could not install: ${missing[*]}"
}

# Optional packages that this distribution has.
available_of() {
    local package
    for package in "$@"; do
        if is_installed "$package" || apt-cache show "$package" >/dev/null 2>&1; then
            printf '%s\n' "$package"
        else
            printf 'not in this distribution, continuing without: %s\n' "$package" >&2
        fi
    done
}

# The runtimes of clang's sanitizers are a package of their own, or part of clang's headers, depending on the release.
clang_runtimes() {
    local version
    version=$(apt-cache depends clang 2>/dev/null | grep -o 'clang-[0-9]*$' | grep -o '[0-9]*$' | head -n 1)
    [[ -n $version ]] && apt-cache show "libclang-rt-$version-dev" >/dev/null 2>&1 && echo "libclang-rt-$version-dev"
    return 0
}

# install_for_python LIST: runs pip only if the list has changed.
install_for_python() {
    local list=$1 venv=build/venv
    local installed
    installed=$venv/$(basename "$list" .txt).installed
    # pip reads a list together with the list that it includes.
    cat tools/requirements-demo.txt "$list" | cmp --silent - "$installed" && return
    printf 'installing Python packages: %s\n' "$(cat tools/requirements-demo.txt "$list" | grep -o '^[a-z][a-z-]*' | sort -u | paste -sd' ')"
    python3 -m venv "$venv" && "$venv/bin/pip" install -qq --requirement "$list" ||
        fail "pip could not install the packages of $list: check that this machine reaches the package index"
    cat tools/requirements-demo.txt "$list" >"$installed"
}

cd "$(dirname "$0")/.."
requirements=tools/requirements.txt
only=()
extra=()
for argument in "$@"; do
    case $argument in
        --demo) requirements=tools/requirements-demo.txt ;;
        --switch) only=("${switch_packages[@]}") ;;
        --pip) only=("${pip_packages[@]}") ;;
        -*) fail "unknown option $argument; usage: tools/setup.sh [--demo | --switch | --pip] [PACKAGE ...]" ;;
        *) extra+=("$argument") ;;
    esac
done
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    fail "only Debian and Ubuntu are supported; install the equivalents of: ${demo_packages[*]} ${packages[*]}"
if [[ ${#only[@]} -gt 0 ]]; then
    install_packages "${only[@]}" "${extra[@]}"
    exit
fi
install_packages python3 python3-venv
# pip mostly waits for the network, and apt-get for the disk, so they run in parallel.
install_for_python "$requirements" &
python_packages=$!
trap 'kill "$python_packages" 2>/dev/null || true' EXIT
if [[ $requirements == tools/requirements-demo.txt ]]; then
    install_packages "${demo_packages[@]}" "${extra[@]}"
else
    # A fresh host has no package lists, so it cannot know which packages its distribution has.
    compgen -G "/var/lib/apt/lists/*Packages*" >/dev/null || apt_update_once
    mapfile -t wanted < <(available_of "${wanted_packages[@]}"; clang_runtimes)
    install_packages "${demo_packages[@]}" "${packages[@]}" "${wanted[@]}" "${extra[@]}"
fi
wait "$python_packages"
trap - EXIT
