#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scrapes real switches as Prometheus does. What Prometheus' own programs say about the metrics counts.

usage: scrape_test.py FOLDER_OF_PROGRAMS"""

import base64
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from serving import Serving  # noqa: E402

PROGRAMS = sys.argv.pop()
ATP = os.path.join(PROGRAMS, "atp")
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
KEY = "correct horse battery"

try:
    from prometheus_client.openmetrics import parser as openmetrics
except ModuleNotFoundError:
    openmetrics = None


def switch(*flags):
    return Serving(ATP, "switch", "--listen", "127.0.0.1:0", "--log-level", "off", *flags)


def sum_on(address, operations):
    subprocess.run(
        [
            ATP,
            "bench",
            "--network",
            "--switch",
            address,
            "--workers",
            "2",
            "--bytes",
            "1MB",
            "--rounds",
            str(operations),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def values(text, name):
    return [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(name + r"[{ ]", line)]


class Scrape(unittest.TestCase):
    def test_switch_and_exporter_serve_the_same_counters(self):
        with (
            switch("--http", "127.0.0.1:0") as one,
            Serving(ATP, "metrics", one.address, "--http", "127.0.0.1:0") as other,
        ):
            sum_on(one.address, 3)
            status, text = one.get("/metrics")
            self.assertEqual(status, 200)
            self.assertGreater(sum(values(text, "atp_switch_completed_total")), 0)
            exported = other.get("/metrics")[1]
            self.assertEqual(values(exported, "atp_switch_completed_total"), values(text, "atp_switch_completed_total"))
            self.assertEqual(other.get("/healthz"), (200, "ok\n"))
            self.assertIn("<title>ATP switches</title>", other.get("/")[1])
            [report] = json.loads(other.get("/reports")[1])["switches"]
            self.assertEqual(report["report"]["address"], one.address)

    def test_a_switch_that_does_not_answer_is_down_and_ends_nothing(self):
        with contextlib.ExitStack() as running:
            with switch() as one:
                words = (ATP, "metrics", one.address, "--http", "127.0.0.1:0", "--timeout", "300ms")
                exporter = running.enter_context(Serving(*words))
                self.assertEqual(values(exporter.get("/metrics")[1], "atp_switch_up"), [1])
            time.sleep(0.1)
            self.assertEqual(values(exporter.get("/metrics")[1], "atp_switch_up"), [0])
            self.assertEqual(exporter.get("/healthz")[0], 503)

    def test_it_ends_while_it_asks_a_silent_switch(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            with Serving(ATP, "metrics", address, "--http", "127.0.0.1:0", "--timeout", "300s") as exporter:
                host, port = exporter.http.split(":")
                with socket.create_connection((host, int(port))) as client:
                    client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                    self.assertTrue(silent.recv(2048))  # it asks; Serving waits less long for its end than it would

    def test_a_switch_that_is_named_twice_is_refused(self):
        done = subprocess.run([ATP, "metrics", *["127.0.0.1:4790"] * 2, "--once"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("named twice", done.stderr)

    def test_text_for_a_file_collector(self):
        with switch() as one:
            printed = subprocess.run(
                [ATP, "metrics", "--once", one.address], check=True, capture_output=True, text=True
            )
        self.assertEqual(values(printed.stdout, "atp_switch_up"), [1])

    def test_key_of_the_operator(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "key")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                file.write(KEY + "\n")
            with switch("--http", "127.0.0.1:0", "--http-key", path) as one:
                self.assertEqual(one.get("/metrics")[0], 401)
                self.assertEqual(one.get("/metrics", Authorization=f"Bearer {KEY}")[0], 200)
                basic = base64.b64encode(f"operator:{KEY}".encode()).decode()
                self.assertEqual(one.get("/", Authorization=f"Basic {basic}")[0], 200)

    @unittest.skipUnless(openmetrics, "no prometheus_client")
    def test_openmetrics_is_parsed(self):
        with switch("--http", "127.0.0.1:0") as one:
            sum_on(one.address, 1)
            text = one.get("/metrics", Accept=OPENMETRICS)[1]
        families = {family.name: family for family in openmetrics.text_string_to_metric_families(text)}
        self.assertEqual(families["atp_switch_completed"].type, "counter")
        self.assertEqual(families["atp_switch"].type, "info")
        self.assertTrue(all(family.documentation for family in families.values()))


if __name__ == "__main__":
    unittest.main()
