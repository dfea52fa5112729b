#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`atp key` writes key files, and prints nothing secret.

usage: key_command_test.py ATP
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ATP = sys.argv.pop(1)


class KeyCommand(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_key(self, *words: object, **variables: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, **variables}
        if "ATP_KEY_FILE" not in variables:
            environment.pop("ATP_KEY_FILE", None)
        return subprocess.run([ATP, "key", *map(str, words)], capture_output=True, text=True, timeout=30, check=False,
                              env=environment)  # fmt: skip

    def fields(self, path: Path) -> dict[str, str]:
        return dict(re.findall(r"^(\w+) = (.+)$", path.read_text(), re.MULTILINE))

    def test_new_key_is_readable_by_its_owner_only_and_stays_secret(self) -> None:
        path = self.folder / "vision.key"
        done = self.run_key("new", path, "--id", 7, "--tenant", "vision")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        fields = self.fields(path)
        self.assertEqual((fields["atp_key"], fields["id"], fields["tenant"]), ("1", "7", "vision"))
        self.assertEqual(len(fields["key"]), 64)
        self.assertIn("key 7 of tenant vision", done.stdout)
        self.assertNotIn(fields["key"][:8], done.stdout + done.stderr)

    def test_keys_and_ids_are_random(self) -> None:
        for name in ("a", "b"):
            self.assertEqual(self.run_key("new", self.folder / name).returncode, 0)
        one, other = self.fields(self.folder / "a"), self.fields(self.folder / "b")
        self.assertNotEqual(one["key"], other["key"])
        self.assertGreater(int(one["id"]), 0)

    def test_a_key_is_never_overwritten(self) -> None:
        path = self.folder / "key"
        self.assertEqual(self.run_key("new", path).returncode, 0)
        before = path.read_text()
        done = self.run_key("new", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("never overwritten", done.stderr)
        self.assertEqual(path.read_text(), before)

    def test_switch_gets_a_key_of_its_own(self) -> None:
        tenant, leaf, root = (self.folder / name for name in ("tenant", "leaf", "root"))
        self.assertEqual(self.run_key("new", tenant, "--id", 7).returncode, 0)
        self.assertEqual(self.run_key("for", "leaf3", leaf, "--from", tenant).returncode, 0)
        self.assertEqual(self.run_key("for", "root", root, ATP_KEY_FILE=str(tenant)).returncode, 0)
        self.assertEqual(stat.S_IMODE(leaf.stat().st_mode), 0o600)
        self.assertEqual((self.fields(leaf)["switch"], self.fields(leaf)["id"]), ("leaf3", "7"))
        self.assertEqual(len({self.fields(path)["key"] for path in (tenant, leaf, root)}), 3)
        done = self.run_key("for", "other", self.folder / "other", "--from", leaf)
        self.assertEqual(done.returncode, 1)
        self.assertIn("itself the key for one switch", done.stderr)

    def test_misuse_names_what_is_accepted(self) -> None:
        for words in (["new"], ["old", "file"], ["for", "leaf3"], ["new", "a", "b"]):
            self.assertEqual(self.run_key(*words).returncode, 2, words)
        self.assertIn("63 letters", self.run_key("for", "a b", self.folder / "x").stderr)
        self.assertIn("63 letters", self.run_key("new", self.folder / "x", "--tenant", "a/b").stderr)
        self.assertIn("--from", self.run_key("for", "leaf3", self.folder / "x").stderr)
        self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    unittest.main()
