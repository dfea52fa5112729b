#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pastes the install lines of README.md, docs/start/first-sum.md and docs/operate/install.md into empty systems.

Each different sequence of lines gets a fresh system (empty_systems.py), with the tracked files of the sources and
nothing else.

Exit status: 0 all lines work, 1 not, 77 this machine cannot make such systems. Needs root, about 3 GB and 20 minutes."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from empty_systems import SOURCES, EmptySystems, Machine, require_machine

TRAINS = """
import torch, torch.distributed as dist, atp
dist.init_process_group("atp")
tensor = torch.ones(1000)
dist.all_reduce(tensor)
assert tensor.eq(2).all()
dist.destroy_process_group()
"""
# Run after the lines, in the shell that has pasted them.
USES_BACKEND = f"""
cd / && cat >train.py <<'END'
{TRAINS}
END
OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node 2 train.py
atp --version
"""
HAS_NO_MORE_THAN_A_SWITCH_NEEDS = """
test "$(dpkg --get-selections | grep -cE '^(libgtest|libgmock|libgloo|openmpi|libopenmpi|python3|clang)')" = 0
test ! -e build/venv
"""
# Documents, the headings above the lines, and what must then work.
PASTED = (
    ("README.md", ("Install",), USES_BACKEND),
    ("docs/start/first-sum.md", ("Install",), USES_BACKEND),
    ("docs/operate/install.md", ("Workers",), USES_BACKEND),
    ("docs/operate/install.md", ("Build", "Check"), HAS_NO_MORE_THAN_A_SWITCH_NEEDS),
)


def lines_under(document: str, heading: str) -> str:
    """Returns the commands of the first block below the heading, without their comments."""
    below = (SOURCES / document).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = below.partition("```sh\n")[2].partition("```")[0]
    if not lines:
        sys.exit(f"{document}: no block of commands below the heading {heading}")
    return re.sub(r" +#.*$", "", lines, flags=re.M)


def scripts() -> dict[str, list[str]]:
    """Returns each different sequence of lines with the places where it stands."""
    places: dict[str, list[str]] = {}
    for document, headings, check in PASTED:
        lines = "".join(lines_under(document, heading) for heading in headings) + check
        places.setdefault(lines, []).append(f"{document} ({', '.join(headings)})")
    return places


def main() -> int:
    require_machine()
    machine = Machine()
    with tempfile.TemporaryDirectory(prefix="atp-empty-") as folder:
        systems = EmptySystems(machine, Path(folder))
        for number, (lines, places) in enumerate(scripts().items()):
            print(f"== {' and '.join(places)}", flush=True)
            began = time.monotonic()
            try:
                systems.paste(f"system-{number}", lines)
            except subprocess.CalledProcessError as failed:
                print(f"failed with status {failed.returncode}: {' and '.join(places)}")
                return 1
            print(f"== works, {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
