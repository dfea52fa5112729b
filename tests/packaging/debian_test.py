#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the Debian packages, and installs and removes them in empty systems.

The first system gets what Build-Depends names, and builds without a network. lintian must report nothing, and the
examples in C and C++ must build with libatp-dev. The second one installs the packages without a service that starts,
sums with `atp bench`, lets systemd judge the units, and purges the packages, which must leave no file. The packages stay
in FOLDER, for other tests.

usage: debian_test.py FOLDER
Exit status: 0 all works, 1 not, 77 this machine cannot make such systems. Needs root, 3 GB and, with a filled compiler
cache, 6 minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from empty_systems import HOME, NOTHING_STARTS, SOURCES, EmptySystems, Machine, require_machine

INSTALL = "apt-get install --yes -qq --no-install-recommends"
UNITS = sorted(path.name for path in (SOURCES / "share/systemd").iterdir())
PAGES = sorted(path.stem for path in (SOURCES / "share/man/man1").iterdir())

BUILD = f"""
{NOTHING_STARTS}
apt-get update -qq
{INSTALL} dpkg-dev lintian >/dev/null
apt-get build-dep --yes -qq --no-install-recommends . >/dev/null
unshare --net dpkg-buildpackage --unsigned-source --unsigned-changes --jobs=2 >/srv/build.log 2>&1 ||
    {{ tail -n 60 /srv/build.log; exit 1; }}
report=$(runuser --user nobody -- lintian --fail-on error,warning /srv/atp_*.changes 2>&1) || {{ echo "$report"; exit 1; }}
test -z "$report" || {{ echo "$report"; exit 1; }}
"""
# With `cmake` of Build-Depends, as a user of the library.
DEVELOP = f"""
{INSTALL} /srv/libatp0_*.deb /srv/libatp-dev_*.deb >/dev/null
cmake -S {HOME}/examples -B /srv/examples -G Ninja >/dev/null
cmake --build /srv/examples >/dev/null
"""
LIST_FILES = r"""
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /machine -o -path /packages \
        -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log \) -prune \
        -o ! -path '/etc/*-' -print | sort
}
"""
INSTALLED = f"""
{LIST_FILES}
{NOTHING_STARTS}
apt-get update -qq
{INSTALL} man-db systemd >/dev/null
touch /etc/.pwd.lock
files >/tmp/before
{INSTALL} /packages/atp_*.deb /packages/atp-lab_*.deb /packages/libatp0_*.deb /packages/libatp-dev_*.deb >/dev/null
atp --version
atp bench --workers 4 --bytes 1MB --rounds 5
atp bench --workers 4 --bytes 1MB --rounds 5 --network
atp-lab simulate --help >/dev/null
report=$(systemd-analyze verify {" ".join(UNITS)} 2>&1)
test -z "$report" || {{ echo "$report"; exit 1; }}
for unit in {" ".join(UNITS)}; do test "$(systemctl is-enabled "$unit")" = disabled; done
getent passwd atp
for page in {" ".join(PAGES)}; do man --where "$page" >/dev/null; man "$page" | grep -q SYNOPSIS; done
for program in atp atp-lab; do
    test -s /usr/share/bash-completion/completions/$program
    test -s /usr/share/zsh/vendor-completions/_$program
    test -s /usr/share/fish/vendor_completions.d/$program.fish
done
test -s /usr/lib/sysctl.d/60-atp.conf
atp switch --config /etc/atp/switch.toml --check-config
mkdir -p /var/lib/atp && touch /var/lib/atp/switch
apt-get purge --yes -qq --autoremove atp atp-lab libatp0 libatp-dev >/dev/null
files >/tmp/after
left=$(comm -13 /tmp/before /tmp/after)
test -z "$left" || {{ echo "left behind: $left"; exit 1; }}
"""


def keep_packages(root: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in (root / "srv").glob("*.deb"):
        if "-dbgsym_" not in package.name:
            shutil.copy(package, folder)


def build(systems: EmptySystems, folder: Path) -> None:
    root = systems.copy_with_sources("build")
    systems.run(root, BUILD, HOME)
    systems.run(root, DEVELOP)
    keep_packages(root, folder)
    shutil.rmtree(root)


def install(systems: EmptySystems, folder: Path) -> None:
    systems.run(systems.copy("install"), INSTALLED, also={str(folder): "/packages"})


def main() -> int:
    require_machine()
    folder = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="atp-debian-") as name:
        systems = EmptySystems(Machine(), Path(name))
        for title, step in (("build, lintian, examples", build), ("install, use, purge", install)):
            began = time.monotonic()
            print(f"== {title}", flush=True)
            try:
                step(systems, folder)
            except subprocess.CalledProcessError as failed:
                print(f"failed with status {failed.returncode}: {title}")
                return 1
            print(f"== works, {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    print("\n".join(f"{path.name}: {path.stat().st_size} bytes" for path in sorted(folder.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
