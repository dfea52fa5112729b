#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A switch as a service: its file of settings, SIGHUP and draining, while a job runs.

usage: service_test.py FOLDER_OF_PROGRAMS
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from running_switch import DEADLINE_S, Switch  # noqa: E402

ATP = str(Path(sys.argv.pop()) / "atp")
ROUNDS = 10_000  # they last longer than all SIGHUPs
REFUSED_S = 1  # most time to refuse a new job while a switch drains


class Service(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "switch.toml"
        self.control = self.folder / "control"

    def start(self, *flags: object) -> Switch:
        switch = Switch(ATP, *flags)
        self.addCleanup(switch.stop)
        return switch

    def atp(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ATP, *map(str, words)], text=True, capture_output=True, timeout=60, check=False)

    def refused(self, text: str, *flags: object) -> str:
        """What the switch says of this file at its start."""
        self.file.write_text(text)
        done = self.atp("switch", "--config", self.file, *flags)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr.splitlines()[0].replace(str(self.file), "FILE")

    def job(self, address: str, rounds: int) -> list[subprocess.Popen[str]]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            store = f"127.0.0.1:{free.getsockname()[1]}"
        ranks = []
        for rank in range(2):
            words = [ATP, "bench", "--rank", rank, "--world", 2, "--rendezvous", store, "--host-name", f"host{rank}",
                     "--switch", address, "--server", "switch", "--bytes", "64kB", "--rounds", rounds, "--json"]  # fmt: skip
            ranks.append(subprocess.Popen(list(map(str, words)), text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT))  # fmt: skip
            self.addCleanup(self.end, ranks[-1])
        return ranks

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def wait_for_job(self, address: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            report = json.loads(self.atp("stats", address, "--json").stdout)
            if any(job["packets"]["completed"] for job in report["shards"][0]["jobs"]):
                return
            time.sleep(0.1)
        self.fail("the job does not run")

    def assert_correct(self, ranks: list[subprocess.Popen[str]]) -> None:
        for rank in ranks:
            output, _ = rank.communicate(timeout=60)
            self.assertEqual(rank.returncode, 0, output)

    # ------------------------------------------------------------------------------------------------- The file

    def test_file_gives_flags_and_typed_ones_win(self) -> None:
        self.file.write_text('memory = "2MB"\njobs = 7\nserver = false\nclients = ["127.0.0.0/8", "10.0.0.0/8"]\n'
                             'log-level = "debug"\n')  # fmt: skip
        switch = self.start("--config", self.file, "--jobs", 9)
        started = switch.line("switch started")
        self.assertIn("jobs=9", started)
        self.assertIn("server_bytes=0", started)
        self.assertIn("memory_bytes=1000000", started)  # typed
        self.assertIn("log_level=debug", started)

    def test_errors_name_file_and_line(self) -> None:
        self.assertEqual(self.refused("memroy = 1\n"),
                         "atp switch: FILE: 'memroy' is unknown: did you mean 'memory'? (line 1)")  # fmt: skip
        self.assertEqual(self.refused("\njobs = 0\n"),
                         "atp switch: FILE: jobs: '0' is invalid; use a whole number from 1 to 65536 (line 2)")  # fmt: skip
        self.assertEqual(self.refused('\n\nlisten = "4\\n790"\n'),
                         "atp switch: FILE: listen: '4?790' is invalid; use host:port or [host]:port (line 3)")  # fmt: skip
        self.assertEqual(self.refused("pin = 3\n"), "atp switch: FILE: pin = 3: use true or false (line 1)")
        self.assertIn("invalid TOML", self.refused("jobs =\n"))
        self.assertIn("unknown", self.refused('config = "other.toml"\n'))
        self.assertIn("FILE: No such file or directory",
                      self.atp("switch", "--config", self.folder / "none").stderr.replace(str(self.folder / "none"), "FILE"))  # fmt: skip

    def test_status_says_whether_a_later_start_may_succeed(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            done = self.atp("switch", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.atp("switch", "--parent", "nowhere.invalid:4790").returncode, 1)
        self.assertEqual(self.atp("switch", "--parent", "nowhere").returncode, 2)

    def test_check_starts_nothing(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            self.file.write_text(f'listen = "127.0.0.1:{taken.getsockname()[1]}"\nstate = "{self.folder}/state"\n')
            done = self.atp("switch", "--config", self.file, "--check-config")
        self.assertEqual((done.returncode, done.stdout), (0, "atp switch: the settings are good\n"), done.stderr)
        self.assertFalse((self.folder / "state").exists())
        self.assertIn("/nonexistent", self.refused('tenants = "/nonexistent"\n', "--check-config"))
        self.assertIn("memory", self.refused('memory = "1kB"\nlanes = 1024\n', "--check-config"))
        self.assertIn("70000", self.refused('http = "127.0.0.1:70000"\n', "--check-config"))
        for key in ("trace", "state", "control"):
            self.assertIn("/nonexistent/file", self.refused(f'{key} = "/nonexistent/file"\n', "--check-config"))
        self.assertIn("ENAMETOOLONG", self.refused(f'control = "{"x" * 200}"\n', "--check-config"))
        self.assertIn("this is no file", self.refused(f'state = "{self.folder}"\n', "--check-config"))
        self.assertIn("its own parent", self.refused('listen = "127.0.0.1:4790"\nparent = "127.0.0.1:4790"\n'))

    def test_what_is_no_file_or_socket_is_refused_at_once(self) -> None:
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        reasons = {"state": "this is no file", "trace": "cannot be written", "control": "this is no socket"}
        for key, why in reasons.items():
            self.assertIn(why, self.refused(f'listen = "127.0.0.1:0"\n{key} = "{pipe}"\n'))
            self.assertIn("this is no ", self.refused(f'{key} = "{pipe}"\n', "--check-config"))
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertIn("this is no file", self.refused(f'listen = "127.0.0.1:0"\ntrace = "{pipe}"\n'))

    def test_metrics_of_tenants_need_a_key(self) -> None:
        tenants, key = self.folder / "tenants.toml", self.folder / "operator.key"
        tenants.write_text("")
        key.write_text("correct horse battery\n")
        tenants.chmod(0o600)
        settings = f'tenants = "{tenants}"\nhttp = "127.0.0.1:0"\n'
        self.assertIn("--http-key", self.refused(settings))
        settings += f'http-key = "{key}"\n'
        key.chmod(0o644)
        self.assertIn("the key file of the operator has mode 644, so other users may read it: "
                      f"run chmod 600 {key}, and write a new key if one may have",
                      self.refused(settings, "--check-config"))  # fmt: skip

    # -------------------------------------------------------------------------------------------------- SIGHUP

    def test_each_setting_of_the_examples_is_accepted(self) -> None:
        share = Path(__file__).parents[2] / "share" / "atp"
        settings = {name: re.sub(r"^# ([\w-]+ = )", r"\1", (share / name).read_text(), flags=re.MULTILINE)
                    for name in ("switch.toml", "tenants.toml")}  # fmt: skip
        for name, least in (("switch.toml", 8), ("tenants.toml", 14)):
            self.assertGreaterEqual(len(re.findall(r"^[\w-]+ = ", settings[name], flags=re.MULTILINE)), least)
        for team in ("vision", "speech"):
            key = self.folder / f"{team}-leaf-1.key"
            self.atp("key", "new", self.folder / team, "--tenant", team)
            self.atp("key", "for", "leaf-1", key, "--from", self.folder / team)
        operator = self.folder / "operator.key"
        operator.write_text("secret of the operator\n")
        operator.chmod(0o600)
        tenants = self.folder / "tenants.toml"
        tenants.write_text(settings["tenants.toml"])
        tenants.chmod(0o600)
        self.file.write_text(settings["switch.toml"].replace("/etc/atp", str(self.folder)))
        done = self.atp("switch", "--config", self.file, "--check-config")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_sighup_during_a_job_fails_no_operation(self) -> None:
        self.file.write_text('log-level = "info"\njobs = 8\n')
        switch = self.start("--config", self.file)
        address = switch.address()
        ranks = self.job(address, ROUNDS)
        self.wait_for_job(address)
        for number in range(20):
            level = "debug" if number % 2 == 0 else "info"
            self.file.write_text(f'log-level = "{level}"\njobs = 8\n')
            switch.process.send_signal(signal.SIGHUP)
            self.assertIn(f"log-level {level}", switch.line("settings changed"))
        self.file.write_text("log-level = [\n")
        switch.process.send_signal(signal.SIGHUP)
        self.assertIn("invalid TOML", switch.line("settings kept"))
        self.assertEqual([rank.poll() for rank in ranks], [None, None], "the job ended before the last SIGHUP")
        self.assert_correct(ranks)

    def test_sighup_says_what_needs_a_start(self) -> None:
        self.file.write_text("jobs = 8\n")
        switch = self.start("--config", self.file)
        self.assertTrue(switch.address())
        self.file.write_text('jobs = 9\nclients = "10.0.0.0/8"\n')
        for _ in range(2):  # said again until it is so
            switch.process.send_signal(signal.SIGHUP)
            self.assertIn("jobs 9 (was 8) counts from the next start", switch.line("settings kept"))
        self.assertIn("clients 10.0.0.0/8 (was the default)", switch.line("settings changed"))

    def test_clients_change_for_those_that_ask_later(self) -> None:
        self.file.write_text("")
        switch = self.start("--config", self.file)
        address = switch.address()
        self.assertEqual(self.atp("stats", address, "--json").returncode, 0)
        self.file.write_text('clients = "10.0.0.0/8"\n')
        switch.process.send_signal(signal.SIGHUP)
        switch.line("settings changed")
        self.assertEqual(self.atp("stats", address, "--json", "--timeout", "300ms").returncode, 1)
        self.file.write_text("")
        switch.process.send_signal(signal.SIGHUP)
        switch.line("settings changed")
        self.assertEqual(self.atp("stats", address, "--json").returncode, 0)

    # ----------------------------------------------------------------------------------------------------- Drain

    def seconds_until_refused(self, address: str) -> float:
        """From before the JOIN of a new job, which follows the start of its last rank, to the first rank's error."""
        new = self.job(address, 10)
        begin = time.monotonic()
        streams = [rank.stdout for rank in new if rank.stdout is not None]
        ready, _, _ = select.select(streams, [], [], DEADLINE_S)
        seconds = time.monotonic() - begin
        self.assertIn("takes no new job", ready[0].readline() if ready else "nobody says anything")
        for rank in new:
            rank.communicate(timeout=30)
            self.assertEqual(rank.returncode, 1)
        return seconds

    def test_drain_refuses_new_jobs_and_ends_after_the_last(self) -> None:
        switch = self.start("--control", self.control)
        address = switch.address()
        self.assertEqual(stat.S_IMODE(os.stat(self.control).st_mode), 0o600)
        ranks = self.job(address, 1_000_000)
        self.wait_for_job(address)
        drain = subprocess.Popen([ATP, "drain", str(self.control)], text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)  # fmt: skip
        self.addCleanup(self.end, drain)
        self.assertIn("jobs=1", switch.line("drain began"))
        refused_s = self.seconds_until_refused(address)
        print(f"a new job is refused {refused_s:.3f} s after its last rank has started", flush=True)
        self.assertLess(refused_s, REFUSED_S)
        self.assertIn("takes no new job; 1 is left", str(drain.stdout and drain.stdout.readline()))
        for rank in ranks:
            self.assertIsNone(rank.poll())
            rank.send_signal(signal.SIGINT)
        self.assertIn("no job is left", switch.line("drain ended"))
        output, _ = drain.communicate(timeout=30)
        self.assertEqual(drain.returncode, 0, output)
        self.assertTrue(output.endswith("the switch has ended\n"), output)
        self.assertEqual(switch.process.wait(DEADLINE_S), 0)
        self.assertFalse(self.control.exists())

    def test_drain_is_undone_and_needs_the_key_over_http(self) -> None:
        key = self.folder / "operator.key"
        key.write_text("sixteen characters or more\n")
        key.chmod(0o600)
        switch = self.start("--http", "127.0.0.1:0", "--http-key", key, "--control", self.control)
        address = switch.address()
        page = switch.line("http://").split("http://")[1].split("/")[0]
        self.assertIn("the operator's key is required", self.atp("drain", page, "--no-wait").stderr)
        wrong = self.folder / "wrong.key"
        wrong.write_text("another key that is as long\n")
        wrong.chmod(0o600)
        done = self.atp("drain", page, "--no-wait", "--http-key", wrong)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is not the operator's key", done.stderr)
        ranks = self.job(address, 1_000_000)
        self.wait_for_job(address)
        self.assertEqual(self.atp("drain", page, "--no-wait", "--http-key", key).returncode, 0)
        self.assertTrue(json.loads(self.atp("stats", address, "--json").stdout)["draining"])
        done = self.atp("drain", self.control, "--undo", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["draining"]), (0, False))
        self.assertIn("undid", switch.line("drain ended"))
        self.assert_correct(self.job(address, 10))
        for rank in ranks:
            self.assertIsNone(rank.poll())

    def test_drain_names_its_target(self) -> None:
        (self.folder / "left").touch()
        for target, status, why in (("nowhere", 1, "no switch serves it"), ("127.0.0.1:x", 2, "'x' is not a port"),
                                    (str(self.folder / "left"), 1, "no switch serves it")):  # fmt: skip
            done = self.atp("drain", target)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(why, done.stderr)
        switch = self.start("--control", self.control)
        switch.address()
        done = subprocess.run([ATP, "drain", "control"], cwd=self.folder, text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(switch.wait(), 0)

    def test_drain_that_failed_has_no_effect_later(self) -> None:
        switch = self.start("--control", self.control)
        address = switch.address()
        switch.process.send_signal(signal.SIGSTOP)
        done = self.atp("drain", self.control, "--no-wait", "--timeout", "300ms")
        switch.process.send_signal(signal.SIGCONT)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("timed out", done.stderr)
        self.assertFalse(json.loads(self.atp("drain", self.control, "--undo", "--json").stdout)["draining"])
        self.assert_correct(self.job(address, 10))


if __name__ == "__main__":
    unittest.main()
