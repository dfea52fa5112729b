# SPDX-License-Identifier: Apache-2.0
"""Minimal systems of this machine's release, in which tests install what users install.

mmdebstrap makes the first one, and each use gets a copy. A copy shares the network of this machine unless its lines run
apart, this machine's settings of apt and pip, its folders of Python packages, its release of torch, and its compiler
cache. What starts in a copy ends with its lines, because they have a space of process numbers of their own."""

from __future__ import annotations

import ast
import contextlib
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
NOTHING_STARTS = r"export DEBIAN_FRONTEND=noninteractive; printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d"
CGROUPS = Path("/sys/fs/cgroup")
LINES_OF_A_TEST = """
[Unit]
Wants=multi-user.target
After=multi-user.target
SuccessAction=exit
FailureAction=exit

[Service]
Type=oneshot
ExecStart=/bin/bash -ex /lines
StandardOutput=append:/printed
StandardError=append:/printed
"""


def remove_groups(group: Path) -> None:
    """What the processes of a system left, once they have ended."""
    end = time.monotonic() + 10
    while group.exists() and time.monotonic() < end:
        for path in sorted(group.rglob("*/"), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()
        time.sleep(0.1)


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def require_machine() -> None:
    """Skips the test if this machine cannot make empty systems."""
    if os.geteuid() != 0:
        skip("needs root")
    for program in ("mmdebstrap", "unshare", "apt-get", "git"):
        if shutil.which(program) is None:
            skip(f"{program} is not installed")
    if not (SOURCES / ".git").exists():
        skip("the sources are no git repository")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        skip("this machine permits no mounts")


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


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

    def copy(self, name: str) -> Path:
        """A fresh system. The caller may remove it; the folder given at the start has it."""
        root = self._folder / name
        subprocess.run(["cp", "-a", str(self._base), str(root)], check=True)
        return root

    def copy_with_sources(self, name: str) -> Path:
        """A fresh system with the tracked files of the sources in HOME, and nothing else of them."""
        root = self.copy(name)
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCES, check=True, capture_output=True).stdout
        home = root / HOME.lstrip("/")
        home.mkdir(parents=True)
        copy = ["xargs", "--null", "cp", "--parents", "--no-dereference", f"--target-directory={home}"]
        subprocess.run(copy, cwd=SOURCES, input=tracked, check=True)
        return root

    def _mounts(self, root: Path, also: dict[str, str], apart: bool) -> list[str]:
        # The devices are those that mmdebstrap made: their rights do not depend on this machine's.
        mounts = [f"mount -t proc proc {root}/proc", f"mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm",
                  f"mount -t devpts -o newinstance,ptmxmode=666 devpts {root}/dev/pts"]  # fmt: skip
        for here, there in [*self._machine.shared.items(), *also.items()]:
            at = root / there.lstrip("/")
            at.parent.mkdir(parents=True, exist_ok=True)
            at.mkdir(exist_ok=True) if os.path.isdir(here) else at.touch()
            mounts.append(f"mount --bind {here} {at}")
        mounts += [f"mount -o remount,ro,bind {root}{there}" for there in also.values()]
        if apart:
            mounts += ["ip link set lo up", "ip link add name node type veth peer name nowhere", "ip link set nowhere up",
                       "ip address add 10.77.0.1/24 dev node", "ip link set node up"]  # fmt: skip
            mounts += [f"mount -t sysfs -o ro sysfs {root}/sys", "hostname node1"]
        return mounts

    def run(self, root: Path, lines: str, home: str = "/", also: dict[str, str] | None = None, apart: bool = False,
            limit_s: int | None = None) -> None:  # fmt: skip
        """Runs the lines in the system, in the folder `home`. Raises CalledProcessError if one fails, and TimeoutExpired
        after the limit. `also`: further paths of this machine to read, with their paths there. `apart`: with a network
        and a name of its own: the loopback, and an interface to nowhere, without which names do not resolve."""
        mounts = self._mounts(root, also or {}, apart)
        settings = [f"{variable}={value}" for variable, value in self._machine.environment.items()]
        # The mounts end with the namespace, before the folder is removed.
        spaces = ["--mount", "--pid", *(["--net", "--uts"] if apart else [])]
        # If this test is killed, all ends.
        inside = ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, "--fork", "--kill-child", "bash", "-ec"]
        script = "\n".join([*mounts, f'exec chroot {root} env --ignore-environment "$@"'])
        paste = ["bash", "-exc", f"cd {home}\n{lines}"]
        subprocess.run([*inside, script, "paste", *settings, *paste], check=True, stdin=subprocess.DEVNULL,
                       timeout=limit_s)  # fmt: skip

    def boot(self, root: Path, lines: str, also: dict[str, str], limit_s: int) -> None:
        """Starts the system's systemd as its first process, apart, and runs the lines as a service. It ends with them,
        and what they printed follows. Raises as run() does."""
        (root / "etc/systemd/system/lines.service").write_text(LINES_OF_A_TEST)
        (root / "lines").write_text(lines)
        printed = root / "printed"
        kind, cgroups = ("cgroup2", CGROUPS) if (CGROUPS / "cgroup.procs").exists() else ("cgroup", CGROUPS / "systemd")
        if not (cgroups / "cgroup.procs").exists():
            skip("this machine has no control groups for systemd")
        there = root / cgroups.relative_to("/")
        # Units mount below the root, so it is a mount too, and moves to the place of this machine's.
        mounts = [f"mount --bind {root} {root}", *self._mounts(root, also, True)]
        # The kernel's settings are this machine's too, so nothing there may write them.
        mounts += [f"mount --bind {root}/proc/sys {root}/proc/sys", f"mount -o remount,ro,bind {root}/proc/sys",
                   f"mount -t tmpfs -o mode=755 tmpfs {root}/run", f"mount -t bpf bpf {root}/sys/fs/bpf"]  # fmt: skip
        mounts += [f"mount -t tmpfs tmpfs {root}/sys/fs/cgroup", f"mkdir {there}"] if kind == "cgroup" else []
        mounts += [f"mount -t {kind} {'-o none,name=systemd' if kind == 'cgroup' else ''} cgroup {there}"]
        mounts += [f"cd {root}", "mount --move . /"]
        system = f"chroot . env --ignore-environment container=test PATH={PATH} /lib/systemd/systemd"
        script = "\n".join([*mounts, f"exec {system} --unit=lines.service --show-status=false --log-target=journal"])
        group = Path(tempfile.mkdtemp(prefix="atp-", dir=cgroups))
        spaces = "--mount --pid --net --uts --ipc --cgroup --fork --kill-child"
        enter = f'echo $$ >{group}/cgroup.procs && exec setpriv --pdeathsig KILL unshare {spaces} bash -ec "$1"'
        command = ["bash", "-ec", enter, "boot", script]
        try:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=limit_s)
        finally:
            print(printed.read_text() if printed.exists() else "it has printed nothing", flush=True)
            remove_groups(group)

    def paste(self, name: str, lines: str) -> None:
        """Runs the lines in a fresh system, in the folder of the sources."""
        root = self.copy_with_sources(name)
        try:
            self.run(root, lines, HOME)
        finally:
            shutil.rmtree(root)


def status_of(test: Callable[[EmptySystems], None], name: str) -> int:
    """The exit status of a test in empty systems, whose folder gets this name. What fails is printed."""
    require_machine()
    with tempfile.TemporaryDirectory(prefix=f"atp-{name}-") as folder:
        try:
            test(EmptySystems(Machine(), Path(folder)))
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failed:
            print(f"failed: {failed if isinstance(failed, subprocess.TimeoutExpired) else failed.returncode}")
            return 1
    return 0
