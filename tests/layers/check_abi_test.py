#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tools/check_abi on a small library and its headers, before and after changes of either.

usage: check_abi_test.py C_COMPILER
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "cc"
TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_abi"
SKIPPED = 77
BREAKS = "break programs that exist"
ADDS = "run tools/check_abi --record"

OPTIONS = """/* Settings. */
#ifndef ATP_OPTIONS_H
#define ATP_OPTIONS_H
#ifdef __cplusplus
extern "C" {
#endif
enum atp_mode {
    ATP_MODE_FAST = 0, /* a comment */
    ATP_MODE_SAFE = 1
};
struct atp_options {
    /* Written by a function. */
    size_t struct_size;
    double scale;
    int32_t mode;
};
#ifdef __cplusplus
}
#endif
#endif
"""
HEADER = """#include <atp/options.h>
#define ATP_API __attribute__((visibility("default")))
struct atp_error {
    int32_t reason;
    char text[12];
};
typedef struct atp_handle atp_handle;
typedef void atp_receiver(void* context, int severity);
/* Opens. */
ATP_API int atp_open(const struct atp_options* options,
                     atp_handle** handle, struct atp_error* error);
ATP_API void atp_close(atp_handle* handle);
"""
SOURCE = "int atp_open(void) { return 0; }\nvoid atp_close(void) {}\nint inner(void) { return 1; }\n"
MAP = "ATP_0 { global: atp_*; local: *; };"


class CheckAbi(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.record = self.root / "src/drivers/capi/atp.abi"
        self.write("include/atp/options.h", OPTIONS)
        self.write("include/atp/atp.h", HEADER)
        self.record.parent.mkdir(parents=True)
        self.build_library(SOURCE)
        self.expect(0, "no violations", "--record")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def build_library(self, source: str, exports: str = MAP) -> None:
        library = self.root / "build/src/drivers/capi/libatp.so"
        library.parent.mkdir(parents=True, exist_ok=True)
        script = self.write("exports.map", exports)
        options = ["-x", "c", "-shared", "-fPIC", f"-Wl,--version-script={script}", "-o", str(library), "-"]
        subprocess.run([COMPILER, *options], input=source, text=True, check=True)

    def expect(self, status: int, text: str, *options: str) -> None:
        command = [sys.executable, "-B", TOOL, "--root", self.root, "--cc", COMPILER, *options, self.root / "build"]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn(text, result.stdout + result.stderr)

    def change(self, path: str, before: str, after: str) -> None:
        file = self.root / path
        self.assertIn(before, file.read_text())
        file.write_text(file.read_text().replace(before, after))

    def expect_broken(self, path: str, before: str, after: str) -> None:
        """The change is reported, and --record refuses to write it."""
        recorded = self.record.read_text()
        self.change(path, before, after)
        self.expect(1, BREAKS)
        self.expect(1, BREAKS, "--record")
        self.assertEqual(self.record.read_text(), recorded)

    def expect_added(self, path: str, before: str, after: str) -> None:
        """The change asks to be recorded, and then passes."""
        self.change(path, before, after)
        self.expect(1, ADDS)
        self.expect(0, "no violations", "--record")
        self.expect(0, "no violations")

    def test_unchanged_headers_pass(self):
        self.expect(0, "no violations")

    def test_comments_and_line_ends_are_no_change(self):
        self.change("include/atp/atp.h", "/* Opens. */", "/* Opens\n * it. */")
        self.change("include/atp/atp.h", "options,\n                     atp_handle", "options, atp_handle")
        self.expect(0, "no violations")

    def test_removed_function_breaks(self):
        self.build_library("int atp_open(void) { return 0; }\n")
        self.expect_broken("include/atp/atp.h", "ATP_API void atp_close(atp_handle* handle);\n", "")

    def test_changed_parameter_breaks(self):
        self.expect_broken("include/atp/atp.h", "atp_handle** handle, struct", "int64_t* handle, struct")

    def test_grown_struct_without_a_size_breaks(self):
        self.expect_broken("include/atp/atp.h", "    char text[12];\n", "    char text[12];\n    int32_t more;\n")

    def test_field_in_the_middle_breaks(self):
        self.expect_broken("include/atp/options.h", "    double scale;\n", "    int64_t more;\n    double scale;\n")

    def test_changed_type_of_a_field_breaks(self):
        self.expect_broken("include/atp/options.h", "double scale;", "int64_t scale;")

    def test_changed_type_beside_a_new_field_breaks(self):
        self.expect_broken("include/atp/options.h", "    int32_t mode;\n", "    uint32_t mode;\n    double rate;\n")

    def test_changed_number_of_an_enumerator_breaks(self):
        self.expect_broken("include/atp/options.h", "ATP_MODE_SAFE = 1", "ATP_MODE_SAFE = 2")

    def test_field_at_the_end_of_a_sized_struct_is_recorded(self):
        self.expect_added("include/atp/options.h", "    int32_t mode;\n", "    int32_t mode;\n    double rate;\n")

    def test_new_enumerator_is_recorded(self):
        self.expect_added("include/atp/options.h", "ATP_MODE_SAFE = 1", "ATP_MODE_SAFE = 1,\n    ATP_MODE_SLOW = 2")

    def test_new_function_is_recorded(self):
        self.build_library(SOURCE + "int atp_more(void) { return 2; }\n")
        self.expect_added("include/atp/atp.h", "ATP_API void", "ATP_API int atp_more(void);\nATP_API void")

    def test_new_name_of_a_parameter_is_recorded(self):
        self.expect_added("include/atp/atp.h", "atp_close(atp_handle* handle)", "atp_close(atp_handle* closed)")

    def test_deleted_record_begins_a_new_one(self):
        self.change("include/atp/options.h", "double scale;", "int64_t scale;")
        self.record.unlink()
        self.expect(1, ADDS)
        self.expect(0, "no violations", "--record")

    def test_declared_function_that_is_not_exported_is_reported(self):
        self.build_library("int atp_open(void) { return 0; }\n")
        self.expect(1, "exports no atp_close@@ATP_0")

    def test_undeclared_export_is_reported(self):
        self.build_library(SOURCE + "int atp_inner(void) { return 3; }\n")
        self.expect(1, "exports atp_inner@@ATP_0, which atp.h does not declare")

    def test_export_without_a_version_is_reported(self):
        self.build_library(SOURCE, "{ global: *; };")
        self.expect(1, "exports inner, which atp.h does not declare")

    def test_further_version_may_export_anything(self):
        self.build_library(SOURCE, MAP + " ATP_PRIVATE { global: inner; };")
        self.expect(0, "no violations")

    def test_missing_library_is_an_error(self):
        (self.root / "build/src/drivers/capi/libatp.so").unlink()
        self.expect(2, "libatp.so is missing: build atp_c")


if __name__ == "__main__":
    if shutil.which("abidiff") is None:
        print("skipped: abidiff is not installed: install abigail-tools")
        sys.exit(SKIPPED)
    unittest.main()
