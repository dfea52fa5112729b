#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes in debian/ and share/ agree with the sources, and the prolog for Slurm prints the right switch.

usage: packages_test.py SOURCE_DIR VERSION
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from fnmatch import fnmatch
from pathlib import Path

DEBIAN, SHARE = "debian", "share"
# Share folders that no package installs: recipes to build with.
NOT_INSTALLED = ("share/container/",)


def install_lines(package: str) -> list[str]:
    """The sources of the files in a package, as debian/PACKAGE.install names them."""
    return [line.split()[0] for line in (sources / DEBIAN / f"{package}.install").read_text().splitlines()]


def links() -> dict[str, str]:
    """Links in debian/ to files of share/: the file's path, and the link's name."""
    found = [path for path in (sources / DEBIAN).iterdir() if path.is_symlink()]
    return {str(path.resolve().relative_to(sources)): path.name for path in found}


class Packages(unittest.TestCase):
    def test_every_file_of_share_is_in_exactly_one_package(self):
        lines = {package: install_lines(package) for package in ("atp", "atp-lab")}
        linked = links()
        for path in sorted((sources / SHARE).rglob("*")):
            name = str(path.relative_to(sources))
            if path.is_dir() or name.startswith(NOT_INSTALLED):
                continue
            # CMake installs some of them first.
            packages = [package for package, patterns in lines.items()
                        if any(fnmatch(name, line) or f"usr/{name}" == line for line in patterns)]  # fmt: skip
            if name in linked:
                packages.append(linked[name].partition(".")[0])
            self.assertEqual(packages, ["atp-lab" if "atp-lab" in name else "atp"], name)

    def test_every_install_line_names_an_existing_file_of_share(self):
        for package in ("atp", "atp-lab"):
            for line in install_lines(package):
                if line.startswith(("share/", "usr/share/")):
                    self.assertTrue(list(sources.glob(line.removeprefix("usr/"))), line)

    def test_every_unit_is_linked_and_registered(self):
        registered = re.search(r"^UNITS = (.*)$", (sources / DEBIAN / "rules").read_text(), re.MULTILINE)[1].split()
        units = list((sources / SHARE / "systemd").iterdir())
        self.assertEqual(sorted(registered), sorted({unit.stem for unit in units}))
        for unit in units:
            self.assertEqual(links()[str(unit.relative_to(sources))], f"atp.{unit.name}")
            self.assertIn(f" {unit.name} ", (sources / DEBIAN / "atp.prerm").read_text())

    def test_units_let_the_program_confine_itself(self):
        for unit in sorted((sources / SHARE / "systemd").glob("*.service")):
            lines = [line for line in unit.read_text().splitlines() if line.startswith("SystemCallFilter=")]
            with self.subTest(unit=unit.name):
                self.assertLessEqual({"capset", "seccomp"}, set(lines[-1].partition("=")[2].split()))

    def test_the_version_is_that_of_the_project(self):
        first = (sources / DEBIAN / "changelog").read_text().splitlines()[0]
        self.assertEqual(re.match(r"atp \(([^)]+)\) ", first)[1], version)
        soname = version.partition(".")[0]
        self.assertIn(f"\nPackage: libatp{soname}\n", (sources / DEBIAN / "control").read_text())
        self.assertTrue((sources / DEBIAN / f"libatp{soname}.symbols").read_text().startswith(f"libatp.so.{soname} "))

    def test_a_build_depends_on_what_the_setup_installs_for_a_switch(self):
        text = (sources / "tools" / "setup.sh").read_text()
        packages = re.sub(r"#.*", "", re.search(r"switch_packages=\((.*?)\n\)", text, re.DOTALL)[1]).split()
        packages += re.search(r"^ +(.*?) +# the switch inside the kernel$", text, re.MULTILINE)[1].split()
        depends = re.search(r"^Build-Depends: (.*?)^Standards", (sources / DEBIAN / "control").read_text(),
                            re.MULTILINE | re.DOTALL)[1]  # fmt: skip
        named = {re.match(r"\S+", each.strip())[0] for each in depends.split(",")}
        self.assertLessEqual(set(packages) - {"build-essential"}, named)

    def test_symbols_name_the_nodes_of_the_library(self):
        nodes = re.findall(r"^(\w+) \{", (sources / "src/drivers/capi/atp.map").read_text(), re.MULTILINE)
        named = re.findall(r"\(symver[^)]*\)(\w+)", (sources / DEBIAN / "libatp0.symbols").read_text())
        self.assertEqual(named, nodes)


class Image(unittest.TestCase):
    def test_the_image_starts_empty_and_runs_as_a_user_other_than_root(self):
        text = (sources / SHARE / "container" / "Containerfile").read_text()
        final = text[text.rindex("\nFROM ") :]
        self.assertTrue(final.startswith("\nFROM scratch\n"))
        self.assertIn("\nUSER 65532:65532\n", final)
        self.assertEqual(re.findall(r"--tag (\S+)", text), [f"atp:{version}"])


class Prolog(unittest.TestCase):
    SWITCHES = "# comment\nleaf1 10.0.1.1:4790\nleaf10  10.0.10.1:4790 # row 10\nnode7 10.0.7.1:4790\n"

    def printed(self, switches: str | None = SWITCHES, **environment: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "switches")
            if switches is not None:
                file.write_text(switches)
            known = {"PATH": os.environ["PATH"], "ATP_SLURM_SWITCHES": str(file), **environment}
            program = sources / SHARE / "slurm" / "task-prolog"
            return subprocess.run([program], env=known, check=True, capture_output=True, text=True, timeout=10).stdout

    def test_a_task_gets_the_switch_of_its_rack(self):
        self.assertEqual(self.printed(SLURM_TOPOLOGY_ADDR="root.leaf1.node3"), "export ATP_SWITCH=10.0.1.1:4790\n")
        self.assertEqual(self.printed(SLURM_TOPOLOGY_ADDR="root.leaf10.node3"), "export ATP_SWITCH=10.0.10.1:4790\n")

    def test_the_name_next_to_the_node_counts(self):
        self.assertEqual(self.printed(SLURM_TOPOLOGY_ADDR="leaf1.node7"), "export ATP_SWITCH=10.0.7.1:4790\n")

    def test_without_a_topology_the_node_is_its_name(self):
        self.assertEqual(self.printed(SLURMD_NODENAME="node7"), "export ATP_SWITCH=10.0.7.1:4790\n")

    def test_the_last_line_counts_without_its_end(self):
        printed = self.printed("leaf1 10.0.1.1:4790", SLURM_TOPOLOGY_ADDR="root.leaf1.node3")
        self.assertEqual(printed, "export ATP_SWITCH=10.0.1.1:4790\n")

    def test_a_node_may_have_dots_in_its_name(self):
        node = {"SLURMD_NODENAME": "node7.example.org"}
        lines = "org 10.0.9.1:4790\nleaf1 10.0.1.1:4790\nnode7.example.org 10.0.7.1:4790\n"
        self.assertEqual(self.printed(lines, **node), "export ATP_SWITCH=10.0.7.1:4790\n")
        of_a_tree = self.printed(lines[: lines.index("node7")], **node,
                                 SLURM_TOPOLOGY_ADDR="root.leaf1.node7.example.org")  # fmt: skip
        self.assertEqual(of_a_tree, "export ATP_SWITCH=10.0.1.1:4790\n")

    def test_a_rack_without_a_line_has_no_switch(self):
        self.assertEqual(self.printed(SLURM_TOPOLOGY_ADDR="root.leaf2.node3"), "export ATP_SWITCH=none\n")

    def test_what_the_job_sets_stays(self):
        for name, value in (("ATP_SWITCH", "10.9.9.9:4790"), ("ATP_TOPOLOGY", "racks.toml")):
            self.assertEqual(self.printed(SLURM_TOPOLOGY_ADDR="root.leaf1.node3", **{name: value}), "")

    def test_without_a_file_nothing_is_printed(self):
        self.assertEqual(self.printed(None, SLURM_TOPOLOGY_ADDR="root.leaf1.node3"), "")

    def test_the_batch_script_is_valid(self):
        subprocess.run(["bash", "-n", sources / SHARE / "slurm" / "train.sbatch"], check=True, timeout=10)


if __name__ == "__main__":
    sources, version = Path(sys.argv[1]).resolve(), sys.argv[2]
    unittest.main(argv=sys.argv[:1])
