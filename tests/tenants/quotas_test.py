#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two tenants on one switch: `bench/security/quotas` on little data.

usage: quotas_test.py BIN
"""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path

BIN = sys.argv.pop(1)
QUOTAS = Path(__file__).parents[2] / "bench/security/quotas"


def measured(*flags: str) -> dict:
    done = subprocess.run([sys.executable, "-B", str(QUOTAS), "--bin", BIN, "--seconds", "0.5", "--json", *flags],
                          text=True, capture_output=True, timeout=100, check=False)  # fmt: skip
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return json.loads(done.stdout)


class Quotas(unittest.TestCase):
    def test_each_tenant_gets_its_part_and_holds_no_more(self) -> None:
        found = measured("--weights", "3:1", "--aggregators", "64")
        self.assertEqual([found[name]["aggregators"] for name in ("first", "second")], [48, 16])
        for name, size in (("first", 48), ("second", 16)):
            self.assertLessEqual(found[name]["held"], size)
            # That it held some: a report may well fall where the table is empty, what was completed counts all the time.
            self.assertGreater(found[name]["completed"], 0)
            self.assertGreater(found[name]["collisions"], 0, "the table should be too small for both")


if __name__ == "__main__":
    unittest.main()
