#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tools/coverage on a small build of a module: two sources, a header and two test programs.

usage: coverage_tool_test.py CXX_COMPILER
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

COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "g++"
TOOL = Path(__file__).resolve().parents[2] / "tools" / "coverage"
SKIPPED = 77

HEADER = """#pragma once
int twice(int value);
int sign(int value);
inline int half(int value) { return value / 2; }
inline int third(int value) {
    return value / 3;
}
"""
TWICE = """#include "numbers.h"
int twice(int value) {
    return 2 * value;
}
"""
SIGN = """#include "numbers.h"
int sign(int value) {
    if (value < 0) {
        int below = 0;

        // a comment
        return below - 1;
    }
    if (value == 0) return 0;
    return 1;
}
"""


class Coverage(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.build = self.root / "build" / "asan"
        self.commands: list[dict[str, str]] = []
        for name, text in (("numbers.h", HEADER), ("twice.cc", TWICE), ("sign.cc", SIGN)):
            self.write(f"src/machines/control/{name}", text)
        self.objects = [self.compile(f"src/machines/control/{name}.cc", "atp_control") for name in ("twice", "sign")]
        self.program("limits_test", "true")  # control has two programs

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def compile(self, source: str, target: str) -> Path:
        folder = self.build / Path(source).parent / "CMakeFiles" / f"{target}.dir"
        folder.mkdir(parents=True, exist_ok=True)
        thing = folder / f"{Path(source).name}.o"
        options = ["-O0", "--coverage", f"-I{self.root / 'src/machines/control'}"]
        command = [COMPILER, *options, "-o", str(thing), "-c", str(self.root / source)]
        subprocess.run(command, cwd=self.build, check=True)
        self.commands.append({"directory": str(self.build), "command": " ".join(command)})
        (self.build / "compile_commands.json").write_text(json.dumps(self.commands))
        return thing

    def program(self, name: str, body: str, *objects: Path) -> None:
        self.write(f"tests/{name}.cc", f'#include "numbers.h"\nint main() {{ return {body} ? 0 : 1; }}\n')
        thing = self.compile(f"tests/{name}.cc", name)
        (self.build / "bin").mkdir(exist_ok=True)
        command = [COMPILER, "--coverage", "-o", str(self.build / "bin" / name), str(thing)]
        subprocess.run(command + [str(other) for other in objects or self.objects], check=True)

    def expect(self, status: int, *texts: str, arguments: tuple = ()) -> str:
        command = [sys.executable, "-B", str(TOOL), "--root", str(self.root), "--no-build", "--modules", "control"]
        result = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)
        printed = result.stdout + result.stderr
        self.assertEqual(result.returncode, status, printed)
        for text in texts:
            self.assertIn(text, printed)
        return result.stdout

    def measured(self, *programs: str) -> dict:
        return json.loads(self.expect(0, arguments=("--json", *programs)))

    def test_line_is_covered_if_any_program_executed_it(self) -> None:
        self.program("control_test", "sign(5) == 1 && twice(2) == 4 && half(2) == 1")
        self.program("other_test", "sign(0) == 0")
        alone = self.measured()["files"]["src/machines/control/sign.cc"]
        self.assertEqual(alone["uncovered"], [[4, 7]])
        self.assertEqual(self.measured("control_test", "other_test")["files"]["src/machines/control/sign.cc"], alone)
        self.program("negative_test", "sign(-1) == -1")
        both = self.measured("control_test", "negative_test")["files"]["src/machines/control/sign.cc"]
        self.assertEqual(both, {"covered": alone["lines"], "lines": alone["lines"], "uncovered": []})

    def test_table_has_shares_rounded_down_and_ranges(self) -> None:
        self.program("control_test", "sign(5) == 1")
        table = self.expect(0)
        sign = self.measured()["files"]["src/machines/control/sign.cc"]
        share = f"{sign['covered'] * 1000 // sign['lines'] / 10:.1f}"
        self.assertRegex(table, rf"(?m)^  sign\.cc +{share} +{sign['covered']} +{sign['lines']}  4-7$")
        self.assertRegex(table, r"(?m)^  twice\.cc +0\.0 +0 +\d+  2-[34]$")
        self.assertRegex(table, rf"(?m)^control +\d\d\.\d +{sign['covered']} +\d+$")

    def test_inline_function_that_only_a_test_calls_counts(self) -> None:
        self.program("control_test", "half(2) == 1")
        header = self.measured()["files"]["src/machines/control/numbers.h"]
        self.assertEqual(header["uncovered"], [])
        self.assertGreater(header["covered"], 0)

    def test_inline_function_is_covered_if_one_of_several_objects_executed_it(self) -> None:
        self.program("control_test", "third(6) == 2")
        self.program("other_test", "(sign(0) == 0 || third(6) == 2)")
        header = self.measured("control_test", "other_test")["files"]["src/machines/control/numbers.h"]
        self.assertEqual(header["uncovered"], [])

    def test_minimum_is_compared_without_rounding(self) -> None:
        self.program("control_test", "sign(5) == 1 && twice(2) == 4")
        sums = self.measured()["modules"]["control"]
        share = 100 * sums["covered"] / sums["lines"]
        self.expect(0, arguments=("--minimum", f"control={share - 0.001}"))
        text = "add tests of its uncovered lines"
        self.expect(1, "control has ", text, arguments=("--minimum", f"control={share + 0.001}"))
        self.expect(1, "control/sign.cc has ", text, arguments=("--minimum", "control=1,control/sign.cc=99"))
        self.expect(0, arguments=("--minimum", "control/twice.cc=100,comm=100"))
        self.expect(1, "less than 95 %", arguments=("--minimum",))
        for wrong in ("control=101", "control=-1", "control=many", "95"):
            self.expect(2, "--minimum", arguments=("--minimum", wrong))

    def test_source_of_the_breakable_library_does_not_count(self) -> None:
        self.program("control_test", "sign(5) == 1")
        breakable = self.compile("src/machines/control/sign.cc", "atp_control_breakable")
        self.program("breaks_test", "sign(-1) == -1", breakable, self.objects[0])
        sign = self.measured("control_test", "breaks_test")["files"]["src/machines/control/sign.cc"]
        self.assertEqual(sign["uncovered"], [[4, 7]])

    def test_object_of_an_earlier_build_does_not_count(self) -> None:
        self.program("control_test", "sign(5) == 1")
        before = self.measured()
        self.write("src/machines/control/old.cc", "int old() { return 1; }\n")
        self.compile("src/machines/control/old.cc", "atp_control")
        self.commands.pop()
        (self.build / "compile_commands.json").write_text(json.dumps(self.commands))
        self.assertEqual(self.measured(), before)

    def test_counts_of_an_earlier_run_do_not_count(self) -> None:
        self.program("control_test", "sign(5) == 1")
        self.program("negative_test", "sign(-1) == -1")
        self.measured("negative_test")
        self.assertEqual(self.measured()["files"]["src/machines/control/sign.cc"]["uncovered"], [[4, 7]])

    def test_failed_test_is_an_error(self) -> None:
        self.program("control_test", "sign(5) == 2")
        self.expect(1, "test failed with status 1", "bin/control_test")

    def test_missing_program_module_and_build_are_errors(self) -> None:
        self.expect(2, "bin/control_test is missing")
        self.program("control_test", "true")
        self.expect(2, "no object of the module endpoint", arguments=("--modules", "control,endpoint", "control_test"))
        self.objects[0].with_suffix(".gcda").unlink()
        self.objects[0].with_suffix(".gcno").unlink()
        (self.build / "compile_commands.json").unlink()
        self.expect(2, "compile_commands.json is missing: run without --no-build")


def version_of(program: str) -> str:
    """Major version; empty if the program is missing."""
    if shutil.which(program) is None:
        return ""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.\d+", output.splitlines()[0])
    return found[1] if found else ""


if __name__ == "__main__":
    if version_of("gcov") != version_of(COMPILER):
        print(f"skipped: gcov and {COMPILER} have different versions, or gcov is missing")
        sys.exit(SKIPPED)
    unittest.main()
