#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows share/container/Containerfile, and runs what it makes.

Its RUN lines run in an empty system, in place of the image that BASE names. The folder that they fill, the root of the
image, is then mounted read-only, and its program runs as the user of the recipe without any capability. buildah, in
another one, makes the image itself and runs its program, in no namespaces of its own (isolation chroot).

usage: container_test.py FOLDER_WITH_PACKAGES
Exit status: 0 all works, 1 not, 77 this machine cannot make such systems.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from empty_systems import NOTHING_STARTS, SOURCES, EmptySystems, Machine, require_machine

CONTAINERFILE = SOURCES / "share/container/Containerfile"
LARGEST = 40_000_000
# A runtime mounts these into every container. A change from root to another user drops every capability.
ENTER = """
ip link set lo up
mount --bind {image} {image}
mount -o remount,ro,bind {image}
mount -t proc proc {image}/proc
mount -t tmpfs -o mode=755 tmpfs {image}/dev
mkdir --mode 1777 {image}/dev/shm
mount -t tmpfs tmpfs {image}/tmp
exec setpriv --no-new-privs chroot --userspec={user} --groups= {image} "$@"
"""


# buildah needs a root that is a mount point. Its base is the empty system that all tests begin with.
ENGINE = """
{nothing_starts}
apt-get update -qq
apt-get install --yes -qq --no-install-recommends buildah >/dev/null
cat >/tmp/engine <<'END'
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
base=$(buildah from scratch)
buildah copy --quiet $base /base / >/dev/null
buildah commit --quiet $base localhost/base >/dev/null
buildah build --network host --build-arg BASE=localhost/base --file /recipe/Containerfile --tag atp:test /packages >/dev/null
buildah images
image=$(buildah from atp:test)
buildah run --user {user} $image -- {program} --version
END
mkdir /again && mount --rbind / /again && chroot /again bash -ex /tmp/engine
"""


def instructions() -> list[tuple[str, str]]:
    """The instructions of the recipe, without comments, each as its word and the rest."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line]


def value_of(word: str) -> str:
    (value,) = [rest for name, rest in instructions() if name == word]
    return value


class Container(unittest.TestCase):
    def test_the_image_is_small_and_sums_as_a_user_without_rights_on_a_read_only_root(self):
        with tempfile.TemporaryDirectory(prefix="atp-image-") as name:
            systems = EmptySystems(Machine(), Path(name))
            root = systems.copy("recipe")
            (root / "packages").mkdir()
            for package in packages.glob("atp_*.deb"):
                shutil.copy(package, root / "packages")
            lines = [rest for word, rest in instructions() if word == "RUN"]
            self.assertEqual(len(lines), 2)
            systems.run(root, "\n".join(lines))
            self.check_image(root / "image")

    def test_buildah_makes_the_image_and_runs_its_program(self):
        with tempfile.TemporaryDirectory(prefix="atp-image-") as name:
            systems = EmptySystems(Machine(), Path(name))
            base = systems.copy("base-of-image")
            (program,) = json.loads(value_of("ENTRYPOINT"))
            lines = ENGINE.format(nothing_starts=NOTHING_STARTS, user=value_of("USER"), program=program)
            also = {str(packages): "/packages", str(base): "/base", str(CONTAINERFILE.parent): "/recipe"}
            systems.run(systems.copy("engine"), lines, also=also)

    def check_image(self, image: Path) -> None:
        files = [path for path in image.rglob("*") if path.is_file()]
        print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB", flush=True)
        self.assertLess(sum(path.stat().st_size for path in files), LARGEST)
        self.assertFalse([path for path in files if path.name in ("sh", "bash", "dpkg")])
        (program,) = json.loads(value_of("ENTRYPOINT"))
        sums = self.run_in(image, program, "bench", "--workers", "4", "--bytes", "1MB", "--network")
        self.assertRegex(sums, r"\n +1000000 ")
        switch = json.loads(value_of("CMD"))
        self.run_in(image, program, *switch, "--check-config")
        self.assertIn("Read-only", self.run_in(image, program, "key", "new", "/key", fails=True))

    def run_in(self, image: Path, *command: str, fails: bool = False) -> str:
        script = ENTER.format(image=image, user=value_of("USER"))
        inside = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "bash", "-ec", script, "enter"]
        result = subprocess.run([*inside, *command], capture_output=True, text=True, timeout=120)
        print(result.stdout + result.stderr, flush=True)
        self.assertEqual(result.returncode != 0, fails, result.stderr)
        return result.stdout + result.stderr


if __name__ == "__main__":
    require_machine()
    packages = Path(sys.argv.pop(1)).resolve()
    unittest.main()
