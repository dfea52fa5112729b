# SPDX-License-Identifier: Apache-2.0
"""A job of a test: processes of `atp bench`, which compare every bit of every sum with the right one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence

from serving import wait_until


def report_of(atp: str, address: str) -> dict | None:
    """What a switch reports; None: it does not answer."""
    done = subprocess.run([atp, "stats", address, "--json", "--timeout", "300ms"], text=True, capture_output=True,
                          timeout=60, check=False)  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else None


def completed_at(atp: str, address: str) -> int:
    """Sums that left this switch, since its start."""
    report = report_of(atp, address)
    return sum(shard["packets"]["completed"] for shard in report["shards"]) if report else 0


class Job:
    """One rank for each of `switches`, which is the address of its switch. Each counts as a host of its own."""

    def __init__(self, atp: str, switches: Sequence[str], *flags: object, size: str = "64kB", rounds: int = 1_000_000,
                 key_file: str | None = None) -> None:  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as free:
            store = f"127.0.0.1:{free.getsockname()[1]}"
        environment = {name: value for name, value in os.environ.items() if name != "ATP_KEY_FILE"}
        if key_file is not None:
            environment["ATP_KEY_FILE"] = key_file
        self._over = threading.Event()
        self._slowing: list[threading.Thread] = []
        self.ranks = []
        for rank, switch in enumerate(switches):
            words = [atp, "bench", "--rank", rank, "--world", len(switches), "--rendezvous", store, "--host-name",
                     f"host{rank}", "--switch", switch, "--bytes", size, "--rounds", rounds, "--json", *flags]  # fmt: skip
            self.ranks.append(subprocess.Popen(list(map(str, words)), text=True, stdout=subprocess.PIPE,
                                               stderr=subprocess.STDOUT, env=environment))  # fmt: skip

    @property
    def runs(self) -> bool:
        return all(rank.poll() is None for rank in self.ranks)

    def wait_until_sums_leave(self, atp: str, address: str) -> None:
        """For more than one interval of reports, in which also the slow one has sent."""
        begin = wait_until(lambda: completed_at(atp, address) or not self.runs, "the job runs")
        wait_until(lambda: completed_at(atp, address) > begin or not self.runs, "the job goes on")
        assert self.runs, self.outputs()

    def slow(self, rank: int, stopped_s: float = 0.02, running_s: float = 0.01) -> None:
        """Stops this rank again and again, as a busy host would."""
        process = self.ranks[rank]

        def stop_and_go() -> None:
            while process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                over = self._over.wait(stopped_s)
                process.send_signal(signal.SIGCONT)
                if over:
                    return
                time.sleep(running_s)

        self._slowing.append(threading.Thread(target=stop_and_go, daemon=True))
        self._slowing[-1].start()

    def outputs(self) -> list[str]:
        """What each rank printed until its end."""
        return [rank.communicate(timeout=120)[0] for rank in self.ranks]

    def finish(self) -> dict:
        """Waits until all ranks have verified their last sum. Returns the report of rank 0."""
        outputs = self.outputs()
        statuses = [rank.returncode for rank in self.ranks]
        assert not any(statuses), f"{statuses}: {outputs}"
        report = json.loads(outputs[0].splitlines()[-1])
        assert report["verified"]
        return report

    def end(self) -> None:
        """Ends what still runs."""
        self._over.set()
        for thread in self._slowing:
            thread.join()
        for rank in self.ranks:
            if rank.poll() is None:
                rank.kill()
                rank.wait()
            if rank.stdout is not None:
                rank.stdout.close()
