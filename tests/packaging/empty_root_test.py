#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pastes the install lines of README.md, docs/start/first-sum.md and docs/operate/install.md into empty systems.

mmdebstrap makes a minimal system of this machine's release. Each different sequence of lines gets a copy, with the
tracked files of the sources and nothing else. The copy shares the network of this machine, its settings of apt and pip,
its folders of Python packages, its release of torch, and its compiler cache.

Exit status: 0 all lines work, 1 not, 77 this machine cannot make such systems. Needs root, about 3 GB and 20 minutes."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
SKIPPED = 77
HOME = "/srv/atp"  # the sources in an empty system, where a reader pastes
SHARED = "/machine"  # folders of this machine in an empty system
ORIGINS = ("Debian", "Ubuntu")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

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


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lines_under(document: str, heading: str) -> str:
    """Returns the commands of the first block below the heading, without their comments."""
    below = (SOURCES / document).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = below.partition("```sh\n")[2].partition("```")[0]
    if not lines:
        sys.exit(f"{document}: no block of commands below the heading {heading}")
    return re.sub(r" +#.*$", "", lines, flags=re.M)


class Machine:
    """What this machine gives the empty systems, read from its own settings."""

    def __init__(self) -> None:
        release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
        self.suite = release.get("VERSION_CODENAME", "").strip('"')
        self.environment = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "PIP_CONFIG_FILE": os.devnull}
        self.environment |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        self.shared: dict[str, str] = {}  # path here: path there
        self._read_pip()
        self.has_ccache = shutil.which("ccache") is not None
        if self.has_ccache:
            self.environment["CCACHE_DIR"] = self._share(output_of("ccache", "--get-config", "cache_dir").strip())

    def sources(self) -> list[str]:
        """The archives of this machine's distribution, as lines of sources.list."""
        form = "$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
        targets = output_of("apt-get", "indextargets", "--format", form, "Created-By: Packages").splitlines()
        split = [target.split(" ", 1) for target in targets]
        return sorted({line for origin, line in split if origin in ORIGINS and f" {self.suite}" in line})

    @staticmethod
    def apt_options() -> list[str]:
        dump = output_of("apt-config", "dump").splitlines()
        return [line for line in dump if re.match(r'Acquire::(Retries|https?::(Proxy|Timeout)\b.*) ".+";', line)]

    def _share(self, path: str) -> str:
        return self.shared.setdefault(path, f"{SHARED}/{len(self.shared)}")

    def _share_index(self, path: str) -> str:
        """An index of packages may have its files in a folder beside it."""
        folder, name = os.path.split(path.rstrip("/"))
        return f"{self._share(folder)}/{name}"

    def _read_pip(self) -> None:
        settings = {}
        for line in output_of(sys.executable, "-m", "pip", "config", "list").splitlines():
            name, value = line.split("=", 1)
            settings[name.split(".")[-1]] = ast.literal_eval(value)
        try:
            import torch

            settings["constraint"] = f"{settings.get('constraint', '')} {self._pinned(torch.__version__)}"
        except ImportError:
            pass  # then pip chooses a release
        for name, value in settings.items():
            share = self._share_index if name.endswith("index-url") else self._share
            words = [self._moved(word, share) for word in str(value).split()]
            self.environment[f"PIP_{name.upper().replace('-', '_')}"] = " ".join(words)

    def _pinned(self, version: str) -> str:
        self.constraint = tempfile.NamedTemporaryFile("w", prefix="atp-constraint-")
        self.constraint.write(f"torch=={version.split('+')[0]}\n")
        self.constraint.flush()
        return self.constraint.name

    @staticmethod
    def _moved(word: str, share: Callable[[str], str]) -> str:
        scheme, path = ("file://", word[7:]) if word.startswith("file://") else ("", word)
        return scheme + share(path) if os.path.isabs(path) and os.path.exists(path) else word


class EmptySystems:
    def __init__(self, machine: Machine, folder: Path) -> None:
        self._machine = machine
        self._folder = folder
        self._base = folder / "base"
        include = ["--include=ccache"] if machine.has_ccache else []
        options = [f"--aptopt={line}" for line in machine.apt_options()]
        command = ["mmdebstrap", "--quiet", "--variant=minbase", *include, *options, machine.suite, str(self._base)]
        subprocess.run([*command, *machine.sources()], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self._base / "etc" / name)
        sudo = self._base / "usr/local/bin/sudo"  # whoever pastes here is root
        sudo.write_text('#!/bin/sh\nexec "$@"\n')
        sudo.chmod(0o755)

    def paste(self, name: str, lines: str) -> None:
        """Runs the lines in a fresh system, in the folder of the sources."""
        root = self._folder / name
        subprocess.run(["cp", "-a", str(self._base), str(root)], check=True)
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCES, check=True, capture_output=True).stdout
        home = root / HOME.lstrip("/")
        home.mkdir(parents=True)
        copy = ["xargs", "--null", "cp", "--parents", "--no-dereference", f"--target-directory={home}"]
        subprocess.run(copy, cwd=SOURCES, input=tracked, check=True)
        mounts = [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
        for here, there in self._machine.shared.items():
            at = root / there.lstrip("/")
            at.parent.mkdir(exist_ok=True)
            at.mkdir() if os.path.isdir(here) else at.touch()
            mounts.append(f"mount --bind {here} {at}")
        settings = [f"{variable}={value}" for variable, value in self._machine.environment.items()]
        # The mounts end with the namespace, before the folder is removed.
        inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec"]
        script = "\n".join([*mounts, f'exec chroot {root} env --ignore-environment "$@"'])
        paste = ["bash", "-exc", f"cd {HOME}\n{lines}"]
        try:
            subprocess.run([*inside, script, "paste", *settings, *paste], check=True, stdin=subprocess.DEVNULL)
        finally:
            shutil.rmtree(root)


def scripts() -> dict[str, list[str]]:
    """Returns each different sequence of lines with the places where it stands."""
    places: dict[str, list[str]] = {}
    for document, headings, check in PASTED:
        lines = "".join(lines_under(document, heading) for heading in headings) + check
        places.setdefault(lines, []).append(f"{document} ({', '.join(headings)})")
    return places


def main() -> int:
    if os.geteuid() != 0:
        skip("needs root")
    for program in ("mmdebstrap", "unshare", "apt-get", "git"):
        if shutil.which(program) is None:
            skip(f"{program} is not installed")
    if not (SOURCES / ".git").exists():
        skip("the sources are no git repository")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        skip("this machine permits no mounts")
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
