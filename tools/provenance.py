#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print where results come from: revision, date, machine, versions, and what the code sets by default, as one comment.

Programs that write pages of docs/results put this line into them; tools/check_results compares it with the code. Give
what is in effect in a run as KEY=VALUE, such as scaling_in_effect=fixed.

Exit status: 0 printed, 2 a default that cannot be read from the code.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from source_tree import Missing  # noqa: E402

UNKNOWN = "not recorded"
MTU, IP_AND_UDP, LANE = 1500, 28, 4  # bytes
COMMENT = re.compile(r"^<!-- provenance: (\{.*\}) -->$", re.MULTILINE)


def _found(root: Path, file: str, pattern: str) -> re.Match[str]:
    match = re.search(pattern, (root / file).read_text(encoding="utf-8"))
    if not match:
        raise Missing(f"{file} has no {pattern}: tell tools/provenance.py where the default is now")
    return match


def lanes_of_frame(header: int) -> int:
    """As lanes_of_payload() and usual_lanes() in src/machines/control/path_mtu_search.h."""
    return (MTU - IP_AND_UDP - header) // LANE // 8 * 8


def defaults_of(root: Path) -> dict[str, Any]:
    """What the code of this tree sets by default, for packets that fill a frame."""
    header = int(_found(root, "src/machines/wire/format.h", r"#define ATP_HEADER_BYTES (\d+)u")[1])
    lanes = lanes_of_frame(header)
    channel = "src/machines/protocol/channel.h"
    size = _found(root, channel, r"std::uint32_t bytes = (\d+)U << (\d+)U;")
    limits = _found(root, channel, r"std::clamp\(std::bit_floor\(bytes / packet\), (\d+)U, (\d+)U\)")
    packets = (int(size[1]) << int(size[2])) // (header + lanes * LANE)
    window = min(max(1 << packets.bit_length() - 1, int(limits[1])), int(limits[2]))
    scaling = _found(root, "src/drivers/comm/options.h", r"tensor::Scaling scaling = tensor::Scaling::(\w+);")[1]
    return {"header_bytes": header, "window": window, "scaling": scaling}


def text_of(root: Path) -> str:
    """A hash of the text on which examples/train_gpt.py trains."""
    made = runpy.run_path(str(root / "examples/tales.py"), run_name="tales")["tales"]()
    return hashlib.sha256(made.encode()).hexdigest()[:12]


def _output(*command: str | Path) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    try:
        names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        names = []
    return names[0] if names else UNKNOWN


def _compiler(root: Path) -> str:
    cache = root / "build/release/CMakeCache.txt"
    if not cache.exists():
        return UNKNOWN
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache.read_text(encoding="utf-8"), re.MULTILINE)
    return (_output(found[1], "--version").partition("\n")[0] if found else "") or UNKNOWN


def _torch() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


def _package(name: str) -> str:
    return _output("dpkg-query", "--show", "--showformat=${Version}", name) or UNKNOWN


def record(root: Path, **in_effect: object) -> dict[str, Any]:
    """Everything about a run that begins now. `in_effect` replaces or adds keys."""
    defaults = defaults_of(root)
    revision = _output("git", "-C", root, "rev-parse", "--short=12", "HEAD")
    changed = _output("git", "-C", root, "status", "--porcelain", "--untracked-files=no", "--", "src", "bench")
    return {
        "revision": (revision + (" with changes" if changed else "")) or UNKNOWN,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "compiler": _compiler(root),
        "gloo": _package("libgloo-dev"),
        "open_mpi": _package("libopenmpi-dev"),
        "iperf3": _package("iperf3"),
        "torch": _torch(),
        **defaults,
        "scaling_in_effect": defaults["scaling"],
        "lanes_in_effect": f"{lanes_of_frame(defaults['header_bytes'])} int32",
        **in_effect,
    }


def line(recorded: dict[str, Any]) -> str:
    return f"<!-- provenance: {json.dumps(recorded, ensure_ascii=False)} -->"


def read(page: str) -> dict[str, Any] | None:
    """The record of a page, or None."""
    found = COMMENT.search(page)
    return json.loads(found[1]) if found else None


def sentence(recorded: dict[str, Any]) -> str:
    """What a reader of the page sees."""
    return (
        f"Revision {recorded['revision']}, {recorded['date']}; {recorded['cores']} cores, {recorded['kernel']}; "
        f"processor: {recorded['processor']}; compiler: {recorded['compiler']}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpt-text", action="store_true", help="also name the text on which the example's GPT trains")
    parser.add_argument("values", nargs="*", metavar="KEY=VALUE", help="what is in effect in the run")
    options = parser.parse_args()
    if wrong := [value for value in options.values if "=" not in value]:
        parser.error(f"{wrong[0]} is no KEY=VALUE")
    root = Path(__file__).resolve().parent.parent
    in_effect = dict(value.split("=", 1) for value in options.values)
    if options.gpt_text:
        in_effect["gpt_text"] = text_of(root)
    try:
        print(line(record(root, **in_effect)))
    except Missing as missing:
        parser.error(str(missing))
    return 0


if __name__ == "__main__":
    sys.exit(main())
