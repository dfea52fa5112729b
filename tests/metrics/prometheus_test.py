#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Prometheus says of the metrics and the alerts, and whether it counts what a job of known size summed.

usage: prometheus_test.py FOLDER_OF_PROGRAMS [--unpack FOLDER] [CASE ...]

  --unpack FOLDER   take programs that this machine lacks from Debian's package, without installing it

Exit status: 77 if there is no promtool."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from running_job import Job  # noqa: E402
from serving import Serving, get, wait_until  # noqa: E402

ALERTS = Path(__file__).parents[2] / "share/monitoring/alerts.yml"
SKIPPED = 77
BYTES, LANES, ROUNDS, WARMUP, RANKS = 1_000_000, 256, 400, 3, 3
ALLOWED = 0.02  # of the sums that the job asked for


def unpack(folder: Path) -> None:
    """Adds Debian's programs to PATH. Nothing of the package is configured, and no service starts."""
    root = folder / "prometheus"
    if not (root / "usr/bin/prometheus").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(["apt-get", "download", "-qq", "prometheus"], cwd=folder, check=True, timeout=300)
        [package] = folder.glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True, timeout=300)
        package.unlink()
    os.environ["PATH"] = f"{root / 'usr/bin'}:{os.environ['PATH']}"


def switch(*flags: object) -> Serving:
    return Serving(ATP, "switch", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "off", *flags)


@contextlib.contextmanager
def job(address: str, rounds: int = ROUNDS):
    """Of int32, since of floats some fragments are sent unscaled in the first operations, and of so few lanes that the
    fragment of a barrier before each operation counts little."""
    flags = ("--warmup", WARMUP, "--type", "int32", "--lanes", LANES, "--server", "switch")
    ranks = Job(ATP, [address] * RANKS, *flags, size=str(BYTES), rounds=rounds)
    try:
        yield ranks
    finally:
        ranks.end()


class Promtool(unittest.TestCase):
    def promtool(self, *words: object, text: str | None = None) -> str:
        done = subprocess.run(["promtool", *map(str, words)], input=text, capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def test_metrics_have_no_complaint(self) -> None:
        with switch() as one, switch("--parent", one.address) as other, job(other.address, 3) as ranks:
            ranks.finish()
            for text in (one.get("/metrics")[1], other.get("/metrics")[1]):
                self.assertIn("atp_switch_completed_total{", text)
                self.assertEqual(self.promtool("check", "metrics", text=text), "")

    def test_metrics_of_a_running_job_and_an_absent_switch_have_no_complaint(self) -> None:
        with switch() as one, job(one.address, 1_000_000) as ranks:
            ranks.wait_until_sums_leave(ATP, one.address)
            absent = subprocess.run([ATP, "metrics", "--once", one.address, "127.0.0.1:1", "--timeout", "300ms"],
                                    check=True, capture_output=True, text=True, timeout=60).stdout  # fmt: skip
            self.assertIn("atp_channel_ready{", absent)
            self.assertIn('atp_switch_up{switch="127.0.0.1:1"} 0', absent)
            self.assertEqual(self.promtool("check", "metrics", text=absent), "")

    def test_alerts_are_well_formed(self) -> None:
        rules = ALERTS.read_text(encoding="utf-8").count("- alert:")
        self.assertIn(
            f"SUCCESS: {rules} rules found", self.promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)
        )

    def test_alerts_fire_when_they_should_and_not_before(self) -> None:
        self.assertIn("SUCCESS", self.promtool("test", "rules", Path(__file__).with_name("alerts_test.yml")))


class Server:
    """Prometheus itself, until the `with` block ends: it scrapes `targets` twice a second."""

    def __init__(self, targets: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.http = f"127.0.0.1:{free.getsockname()[1]}"
        configuration = {"global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
                         "rule_files": [str(ALERTS)],
                         "scrape_configs": [{"job_name": "atp", "static_configs": [{"targets": targets}]}]}  # fmt: skip
        self._file = Path(self._folder.name, "prometheus.json")  # which is YAML, too
        self._file.write_text(json.dumps(configuration), encoding="utf-8")

    def __enter__(self) -> Server:
        words = ["prometheus", f"--config.file={self._file}", f"--storage.tsdb.path={self._folder.name}/data",
                 f"--web.listen-address={self.http}", "--log.level=warn"]  # fmt: skip
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)
        self._folder.cleanup()

    def ask(self, path: str, **values: str) -> dict | None:
        """None: it does not answer yet."""
        if self._process.poll() is not None:
            raise AssertionError(self._process.communicate()[1])
        try:
            status, body = get(self.http, f"/api/v1/{path}?{urllib.parse.urlencode(values)}")
        except OSError:
            return None
        return json.loads(body)["data"] if status == 200 else None

    def samples(self, metric: str) -> dict[str, list[tuple[float, float]]]:
        """Of each switch: times and values, over all of its threads."""
        answer = self.ask("query", query=f"{metric}[1h]") or {"result": []}
        found: dict[str, dict[float, float]] = {}
        for series in answer["result"]:
            values = found.setdefault(series["metric"]["switch"], {})
            for at, value in series["values"]:
                values[at] = values.get(at, 0) + float(value)
        return {name: sorted(values.items()) for name, values in found.items()}


class Prometheus(unittest.TestCase):
    def test_completed_grows_by_what_a_job_summed(self) -> None:
        """Both switches are scraped by `atp metrics`, each has a job of its own, and each is compared by itself."""
        metric = "atp_switch_completed_total"
        with contextlib.ExitStack() as running:
            switches = [running.enter_context(switch()) for _ in range(2)]
            names = [each.address for each in switches]
            exporter = running.enter_context(Serving(ATP, "metrics", *names, "--http", "127.0.0.1:0"))
            server = running.enter_context(Server([exporter.http]))
            wait_until(lambda: set(server.samples(metric)) == set(names), "a first sample of each switch", 60)
            jobs = [running.enter_context(job(name)) for name in names]
            reports = [each.finish() for each in jobs]
            end = time.time()
            wait_until(lambda: all(each[-1][0] > end + 1 for each in server.samples(metric).values()), "a last sample")
            samples = server.samples(metric)
        for name, report in zip(names, reports, strict=True):
            values = [value for _, value in samples[name]]
            self.assertEqual(report["lanes"], LANES)
            asked = math.ceil(BYTES / 4 / LANES) * (ROUNDS + WARMUP)
            counted = values[-1] - values[0]
            print(f"{name}: {counted:.0f} sums counted, {asked} asked, {len(values)} samples", flush=True)
            self.assertGreater(len(set(values)), 2, "it was scraped while the job ran")
            self.assertLessEqual(abs(counted / asked - 1), ALLOWED)

    def test_alerts_are_evaluated_on_a_real_switch(self) -> None:
        with switch() as one, Server([one.http]) as server:

            def healths() -> list[str]:
                groups = (server.ask("rules") or {"groups": []})["groups"]
                return [rule["health"] for group in groups for rule in group["rules"]]

            wait_until(lambda: healths() and set(healths()) == {"ok"}, "each rule is evaluated without an error", 60)


def main() -> None:
    if shutil.which("promtool") is None:
        print("skipped: no promtool; it is in Debian's package prometheus")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], "-v", *OPTIONS.cases])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=Path)
    parser.add_argument("--unpack", type=Path)
    parser.add_argument("cases", nargs="*")
    OPTIONS = parser.parse_args()
    ATP = str(OPTIONS.programs.resolve() / "atp")
    if OPTIONS.unpack is not None and (shutil.which("promtool") is None or shutil.which("prometheus") is None):
        try:
            unpack(OPTIONS.unpack)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"skipped: Debian's package prometheus cannot be had: {error}")
            sys.exit(SKIPPED)
    main()
