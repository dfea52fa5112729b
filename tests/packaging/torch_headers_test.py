#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library for torch compiles with the headers of a wheel of torch, which has none of Gloo's.

This machine may have Gloo's headers, because the benchmarks use them, so a build would not fail here.

usage: torch_headers_test.py NINJA BUILD_FOLDER
"""

import subprocess
import sys
import unittest

OBJECTS = "python/CMakeFiles/"


class TorchHeaders(unittest.TestCase):
    def test_no_object_of_the_library_reads_headers_of_gloo(self):
        deps = subprocess.run([ninja, "-C", folder, "-t", "deps"], capture_output=True, text=True, check=True).stdout
        objects = [block for block in deps.split("\n\n") if block.startswith(OBJECTS)]
        self.assertGreater(len(objects), 1)
        of_torch = [line for block in objects for line in block.splitlines() if "c10d/ProcessGroupWrapper.hpp" in line]
        self.assertTrue(of_torch, "the log of dependencies has headers of torch")
        found = {line.strip() for block in objects for line in block.splitlines() if "/gloo/" in line}
        self.assertEqual(found, set())


if __name__ == "__main__":
    ninja, folder = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
