#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel from the objects of build/release, installs it into an empty folder, and uses its contents: the
# backend, the command, the library.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf 'tools/check_wheel.sh: %s\n' "$1" >&2
    exit 1
}

python=build/venv/bin/python
[[ -x $python && -f build/release/CMakeCache.txt ]] || fail "run tools/setup.sh and build the preset release first"
work=$(mktemp -d)
cp build/release/CMakeCache.txt "$work/"
clean_up() {
    cp "$work/CMakeCache.txt" build/release/CMakeCache.txt && cmake --preset release >/dev/null
    rm -rf "$work"
}
trap clean_up EXIT

"$python" -m pip wheel -qq . --no-build-isolation --no-deps --wheel-dir "$work" --config-settings build-dir=build/release \
    --config-settings cmake.define.ATP_TESTS=ON --config-settings cmake.define.ATP_BENCHMARKS=ON \
    --config-settings cmake.define.ATP_WARNINGS_AS_ERRORS=ON --config-settings install.strip=false
"$python" -m pip install -qq --no-deps --target "$work/site" "$work"/atp-*.whl

export PYTHONPATH=$work/site OMP_NUM_THREADS=1
for held in atp/py.typed atp/_C.pyi atp/_build.py atp/lib/libatp.so atp/include/atp/atp.h atp/include/atp/options.h bin/atp; do
    [[ -f $work/site/$held ]] || fail "the wheel lacks $held"
done
# Libraries that a wheel may load: those of the compiler, of the C library and of torch.
may_load='^(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|c10|torch|torch_cpu|torch_python))\.so'
programs=("$work/site/bin/atp" "$work/site/atp/lib/libatp.so" "$work"/site/atp/_C.*.so)
for program in "${programs[@]}"; do
    foreign=$(readelf --dynamic "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev "$may_load" || true)
    [[ -z $foreign ]] || fail "${program#"$work/site/"} needs libraries outside the accepted list: ${foreign//$'\n'/ }"
done
# The wheel was built with its symbols, so that they can be compared with the names of the laboratory.
"$python" -B tools/check_product build/release $(printf -- '--also %s ' "${programs[@]}")
wheel=$(basename "$work"/atp-*.whl)
[[ "$("$work/site/bin/atp" --version) " == "atp $(cut -d- -f2 <<<"$wheel") "* ]] || fail "$wheel and its atp differ in their versions"
cat >"$work/sum.c" <<'END'
#include <atp/atp.h>
#include <stdio.h>
int main(void) { return printf("libatp %s\n", atp_version()) < 0; }
END
cc "$work/sum.c" -I"$work/site/atp/include" -L"$work/site/atp/lib" -Wl,-rpath,"$work/site/atp/lib" -latp -o "$work/sum"
"$work/sum"
cat >"$work/sum.py" <<'END'
import sys, atp, torch, torch.distributed as dist
assert atp.__file__ == sys.argv[1] + "/atp/__init__.py", atp.__file__
dist.init_process_group("atp")
tensor = torch.ones(1000)
dist.all_reduce(tensor)
assert tensor.eq(2).all()
dist.destroy_process_group()
END
"$python" -m torch.distributed.run --standalone --nproc-per-node 2 "$work/sum.py" "$work/site"
echo "wheel checked: its files are complete, and its programs run"
