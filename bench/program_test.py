#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what the programs of this folder do with signals, errors and a full disk. Measures nothing.

usage: program_test.py"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
DEADLINE_SECONDS = 30


def begin(body, **streams):
    """Starts a program of this frame, whose run() has this body."""
    text = f"import program, sys\ndef run():\n{body}\nsys.exit(program.execute('measure', run))"
    return subprocess.Popen([sys.executable, "-c", text], cwd=FOLDER, stderr=subprocess.PIPE, text=True, **streams)


class Frame(unittest.TestCase):
    def outcome_of(self, process):
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, errors

    def test_full_disk_is_one_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for flushes in ("False", "True"):
                status, errors = self.outcome_of(begin(f"  print('result', flush={flushes})\n  return 0", stdout=full))
                self.assertEqual((status, errors), (1, "measure: [Errno 28] No space left on device\n"))

    def test_signals_end_what_was_begun(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            body = "  import tempfile, time\n  with tempfile.TemporaryDirectory() as folder:\n"
            body += "    print(folder, flush=True)\n    time.sleep(1000)"
            process = begin(body, stdout=subprocess.PIPE)
            folder = process.stdout.readline().strip()
            process.send_signal(number)
            self.assertEqual(self.outcome_of(process), (130, "measure: interrupted\n"))
            self.assertFalse(os.path.exists(folder))

    def test_error_has_no_traceback(self):
        status, errors = self.outcome_of(begin("  open('/no/such/file')"))
        self.assertEqual((status, errors), (1, "measure: [Errno 2] No such file or directory: '/no/such/file'\n"))


class Programs(unittest.TestCase):
    def run_program(self, name, *flags, **environment):
        return subprocess.run(
            [sys.executable, os.path.join(FOLDER, name), *flags],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
            env={**os.environ, **environment},
        )

    def test_error_about_a_bad_argument_names_its_flag(self):
        for name, flag, value in (
            ("host_level", "--ranks", "1"),
            ("host_level", "--bytes", "6"),
            ("one_machine", "--rounds", "0"),
            ("many_jobs", "--jobs", "0"),
            ("many_jobs", "--ranks", "1024"),
        ):
            ran = self.run_program(name, flag, value)
            self.assertEqual(ran.returncode, 2, name)
            self.assertIn(flag, ran.stderr)

    def test_missing_program_is_named(self):
        with tempfile.TemporaryDirectory() as empty:
            ran = self.run_program("host_level", "--bin", empty)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(f"program atp is missing in {empty}", ran.stderr)
            ran = self.run_program("many_jobs", "--program", os.path.join(empty, "atp"))
            self.assertEqual(ran.returncode, 1)
            self.assertIn(os.path.join(empty, "atp"), ran.stderr)
            self.assertNotIn("Traceback", ran.stderr)

    def test_missing_package_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "torch"))
            ran = self.run_program("one_machine", PYTHONPATH=folder)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("has no package atp", ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
