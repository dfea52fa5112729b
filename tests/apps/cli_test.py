#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that pages, man pages and completions of atp and atp-lab have exactly the flags that `--help` of each subcommand
prints, and that shells and man read them. A shell that this machine lacks is left out.

usage: cli_test.py SOURCE_DIR PROGRAMS
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, PROGRAMS = (Path(argument).resolve() for argument in sys.argv[1:3])
del sys.argv[1:3]
NAMES = {"atp": "cli.md", "atp-lab": "cli-lab.md"}
SHARE = ROOT / "share"
FLAG = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def run(*command: object, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=60, check=False, **options
    )


def flags_of_help(*command: str) -> set[str]:
    """The first column of the help."""
    done = run(PROGRAMS / command[0], *command[1:], "--help")
    assert done.returncode == 0, done.stderr
    labels = re.findall(r"^  (-\S(?:.*?))(?:  |\n|$)", done.stdout, re.MULTILINE)
    return {flag for label in labels for flag in FLAG.findall(label)}


def commands_of(program: str) -> list[str]:
    lines = run(PROGRAMS / program, "--help").stdout.split("\nSubcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\S+)", lines, re.MULTILINE)


class Cli(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.flags = {name: {command: flags_of_help(name, command) for command in commands_of(name)} for name in NAMES}
        for name in NAMES:
            self.flags[name][""] = flags_of_help(name)
            self.assertGreater(len(self.flags[name]), 5)
            self.assertIn("--help", self.flags[name]["bench"])

    def each(self):
        for name, commands in self.flags.items():
            for command, flags in commands.items():
                yield name, command, flags

    def expect(self, found: set[str], flags: set[str], name: str, command: str) -> None:
        self.assertEqual(sorted(found), sorted(flags), f"{name} {command}")

    def test_man_pages_have_the_flags_of_the_help(self) -> None:
        for name, command, flags in self.each():
            text = (SHARE / "man/man1" / f"{name}{'-' if command else ''}{command}.1").read_text()
            labels = re.findall(r"^\.TP\n(\\fB\\-.*)$", text, re.MULTILINE)
            found = {flag for label in labels for flag in FLAG.findall(label.replace("\\-", "-").replace("\\fB", " "))}
            self.expect(found, flags, name, command)

    def test_pages_have_the_flags_of_the_help(self) -> None:
        for name, command, flags in self.each():
            text = (ROOT / "docs/reference" / NAMES[name]).read_text()
            if not command:
                continue
            section = text.split(f"\n## {name} {command}\n")[1].split("\n## ")[0]
            labels = re.findall(r"^\| `(-[^`]*)` \|", section, re.MULTILINE)
            found = {flag for label in labels for flag in FLAG.findall(label)}
            self.expect(found | {"-h", "--help"}, flags, name, command)

    def test_man_reads_the_pages_without_a_warning(self) -> None:
        if shutil.which("man") is None or shutil.which("groff") is None:
            self.skipTest("man or groff is not installed")
        for page in sorted((SHARE / "man/man1").glob("*.1")):
            done = run("man", "--warnings", "-l", page, env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            self.assertIn("EXIT STATUS" if "-" in page.stem.removeprefix("atp-lab") else "SUBCOMMANDS", done.stdout)

    def bash(self, name: str, *words: str) -> set[str]:
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _${1//-/_}; printf "%s\\n" "${COMPREPLY[@]}"'
        done = run("bash", "-c", script, "bash", SHARE / "bash-completion/completions" / name, name, *words)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_bash_completes_the_flags_of_the_help(self) -> None:
        for name, command, flags in self.each():
            self.expect(self.bash(name, *([command] if command else []), "-"), flags, name, command)

    def test_bash_completes_subcommands_and_values(self) -> None:
        self.assertEqual(self.bash("atp", ""), set(self.flags["atp"]) - {""})
        self.assertEqual(self.bash("atp", "switch", "--log-format", ""), {"text", "json"})
        self.assertEqual(self.bash("atp", "switch", "--log-format", "=", "t"), {"text"})
        self.assertEqual(self.bash("atp", "switch", "--log-format", "="), {"text", "json"})
        self.assertEqual(self.bash("atp", "bench", "--multicast", ""), {"off", "on"})
        self.assertEqual(self.bash("atp", "switch", "--memory", ""), set())
        self.assertIn("lo", self.bash("atp", "switch", "--xdp", ""))
        self.assertIn("/etc", self.bash("atp", "switch", "--xdp-pins", "/et"))
        self.assertIn("/etc/passwd", self.bash("atp", "trace", "/etc/passw"))
        self.assertIn("VGG16", self.bash("atp-lab", "models", "VGG"))

    def test_fish_completes_the_flags_of_the_help(self) -> None:
        for name, command, flags in self.each():
            file = SHARE / "fish/vendor_completions.d" / f"{name}.fish"
            condition = f"'__fish_seen_subcommand_from {command}'" if command else "__fish_use_subcommand"
            lines = [line for line in file.read_text().splitlines() if f"-n {condition} -" in line]
            found = {f"--{flag}" for line in lines for flag in re.findall(r" -l (\S+)", line)}
            found |= {f"-{flag}" for line in lines for flag in re.findall(r" -s (\S+)", line)}
            self.expect(found, flags, name, command)
            if shutil.which("fish"):
                with tempfile.TemporaryDirectory() as home:
                    asked = f"source {file}; complete -C '{name} {command} --'"
                    done = run("fish", "--no-config", "-c", asked, env={**os.environ, "HOME": home})
                self.assertEqual(done.stderr, "")
                completed = {line.split("\t")[0] for line in done.stdout.splitlines()}
                self.expect(completed, {flag for flag in flags if flag.startswith("--")}, name, command)

    def test_zsh_completes_the_flags_of_the_help(self) -> None:
        for name, command, flags in self.each():
            file = SHARE / "zsh/site-functions" / f"_{name}"
            text = file.read_text()
            if command:
                part = text.split(f"\n                {command})\n")[1].split(";;")[0]
            else:
                part = text.split("_arguments -C")[1].split("1: :->command")[0]
            specs = re.findall(r"^ +'(?:\([^)]*\)|\*)?(--?[a-z][\w-]*)=?\[", part, re.MULTILINE)
            self.assertEqual(sorted(specs), sorted(flags), f"{name} {command}")
            if shutil.which("zsh") and not command:
                self.assertEqual(run("zsh", "-f", "-n", file).stderr, "")

    def test_the_tool_reports_a_file_that_differs(self) -> None:
        tool = (sys.executable, "-B", ROOT / "tools/write_cli", PROGRAMS)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(*tool, "--root", folder, "--check").returncode, 1)
            self.assertEqual(run(*tool, "--root", folder).returncode, 0)
            self.assertEqual(run(*tool, "--root", folder, "--check").returncode, 0)
            page = Path(folder, "share/man/man1/atp-switch.1")
            page.write_text(page.read_text().replace("hold", "held"))
            page.with_name("atp-old.1").write_text("")
            done = run(*tool, "--root", folder, "--check")
            self.assertEqual(done.returncode, 1)
            self.assertIn("atp-switch.1: differs from what the programs say", done.stdout)
            self.assertIn("atp-old.1: no command has this page", done.stdout)
        self.assertEqual(run(*tool[:-1], "/nowhere").returncode, 2)


if __name__ == "__main__":
    unittest.main()
