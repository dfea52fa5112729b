#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that measures on little data, and checks that it prints what its page documents. No time is checked.

usage: smoke_test.py PROGRAM [MPIRUN]"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

EXIT_BAD_ARGUMENTS = 2
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
program, mpirun = "", "mpirun"


class Smoke(unittest.TestCase):
    """The methods are the programs, by name."""

    def output_of(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **MPI_AS_ROOT})
        if "EPERM" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def expect_refused(self, *flags_and_value, before=()):
        """Each text is a flag, and its bad value if it has one."""
        for text in flags_and_value:
            done = subprocess.run([program, *before, *text.split()], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, EXIT_BAD_ARGUMENTS, text)
            self.assertIn(text.split()[0], done.stderr)

    def expect_above_0(self, row, *fields):
        for field in fields:
            self.assertIsInstance(row[field], (int, float), field)
            self.assertGreater(row[field], 0, (row, field))

    def bench_micro(self):
        names = ["quantise", "dequantise", "accumulate", "switch_62", "switch_352", "switch_352_proof", "simulator"]
        kinds = (("send", "receive"), ("float32", "float16", "bfloat16"), ("int32", "int16", "int8"))
        names += ["_".join(kind) for kind in itertools.product(*kinds)]
        rows = json.loads(self.output_of(program, "--smoke", "--json"))
        self.assertEqual([row["name"] for row in rows], names)
        for row in rows:
            self.assertTrue(row["unit"])
            self.expect_above_0(row, "value", "limit", "share")
        self.expect_refused("--ring 3", "--tensor 12parsecs", "--only nothing", "--no-such-flag")

    def bench_sockets(self):
        rows = json.loads(self.output_of(program, "--smoke", "--json", "--sizes", "296,8192"))
        ways = itertools.product((296, 8192), ("plain", "mmsg", "gso", "gro"))
        self.assertEqual([row["name"] for row in rows], [f"sockets_{size}_{way}" for size, way in ways])
        for row in rows:
            self.expect_above_0(row, "gbit_per_s", "gbit_per_s_min", "gbit_per_s_max", "packets_per_s", "times_plain")
            self.expect_above_0(row, "packets_per_send_call", "packets_per_receive_call")
        self.expect_refused("--sizes 3", "--sizes many", "--rounds 0", "--no-such-flag")

    def bench_xdp(self):
        rows = [json.loads(line) for line in self.output_of(program, "--fragments", "5", "--json").splitlines()]
        shapes = ((62, "int32"), (352, "int32"), (352, "int16"), (352, "int8"))
        kinds = itertools.product(shapes, ("claim", "add", "complete", "ack", "other", "gradients"))
        found = [((row["lanes"], row["type"]), row["kind"]) for row in rows]
        self.assertEqual(found, list(kinds))
        for row in rows:
            self.expect_above_0(row, "ns")
        self.expect_refused("--fragments 0", "--no-such-flag")

    def expect_all_reduces(self, text):
        row = json.loads(text)
        self.assertEqual((row["bytes"], len(row["seconds"])), (40960, 2))
        return row

    def output_of_gloo(self, algorithm, *work):
        with tempfile.TemporaryDirectory() as store:
            group = f"--world 3 --store {store} --address 127.0.0.1 --algorithm {algorithm}"
            command = [program, *group.split(), *work, "--rounds", "2", "--json", "--rank"]
            others = [subprocess.Popen([*command, rank], stdout=subprocess.DEVNULL) for rank in ("1", "2")]
            try:
                output = self.output_of(*command, "0")
                self.assertEqual([other.wait() for other in others], [0, 0])
            finally:
                for other in others:
                    other.kill()
                    other.wait()
        return output

    def bench_gloo(self):
        for algorithm in ("ring", "bcube", "halving_doubling", "ring_chunked"):
            row = self.expect_all_reduces(self.output_of_gloo(algorithm, "--bytes", "40KiB"))
            fields = ("rounds", "median_seconds", "min_seconds", "max_seconds", "goodput_bps", "latency_us")
            self.expect_above_0(row, *fields)
            trained = json.loads(self.output_of_gloo(algorithm, "--model", "AlexNet", "--scale", "10000"))
            self.assertAlmostEqual(trained["bytes"] / 24440, 1, places=1)
            self.assertEqual(len(trained["seconds"]), 2)
        refused = (
            "--bytes 6",
            "--rank 1",
            "--algorithm magic",
            "--rounds 0",
            "--model LeNet",
            "--scale 2",
            "--no-such-flag",
        )
        self.expect_refused(*refused, before=("--rank", "0", "--world", "1", "--store", tempfile.gettempdir()))

    def bench_mpi(self):
        words = f"--oversubscribe -n 3 {program} --bytes 40KiB --rounds 2 --json"
        self.expect_all_reduces(self.output_of(mpirun, *words.split()))
        self.expect_refused("--bytes 6", "--rounds 0", "--no-such-flag")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, mpirun = sys.argv[1], (sys.argv[2:] or [mpirun])[0]
    smoke = unittest.TestSuite([Smoke(os.path.basename(program))])
    result = unittest.TextTestRunner().run(smoke)
    sys.exit(77 if result.skipped else not result.wasSuccessful())
