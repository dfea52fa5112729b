# SPDX-License-Identifier: Apache-2.0
"""A TCP flow of iperf3 from one host to another."""

import json
import time

import network
import processes

PORT = 4770
LONGEST_SECONDS = 3600
ATTEMPTS = 3


def require():
    network.require_tools("iperf3", "iperf3")


def ask_for_marks(built, host):
    """TCP that starts from the host marks its packets as able to carry congestion marks, and slows down for them."""
    processes.output_of(built.entry(host), ["sysctl", "-qw", "net.ipv4.tcp_ecn=1"], 10)


class Receiver:
    """An iperf3 receiver at a host while a `with` block runs."""

    def __init__(self, built, host):
        self._network = built
        self.host = host
        self._process = None

    def __enter__(self):
        command = ["iperf3", "--server", "--port", str(PORT)]
        self._process = processes.Process("iperf3", self._network.entry(self.host), command, self._network.folder)
        try:
            processes.wait_until_bound(self._process, PORT, "tcp")
        except BaseException:
            processes.stop([self._process])
            raise
        return self

    def __exit__(self, *_):
        processes.stop([self._process])

    def measure_bps(self, sender, seconds, settling_seconds=0.5):
        """Sends for `settling_seconds`, then for `seconds`. Returns the rate of the second interval at the receiver."""
        command = [*self._command(seconds), "--json", "--omit", str(settling_seconds)]
        patience = 30 + 2 * (seconds + settling_seconds)
        for _ in range(ATTEMPTS):
            report = json.loads(processes.output_of(self._network.entry(sender), command, patience))
            if "error" not in report:
                return report["end"]["sum_received"]["bits_per_second"]
            time.sleep(1)  # the receiver may still be finishing the last flow
        raise processes.Failed(f"iperf3 from {sender.address} to {self.host.address}: {report['error']}")

    def start(self, sender, congestion_control=None):
        """Starts a flow and returns its process, which the caller must stop."""
        command = self._command(LONGEST_SECONDS)
        if congestion_control:
            command += ["--congestion", congestion_control]
        return processes.Process("flow", self._network.entry(sender), command, self._network.folder)

    def _command(self, seconds):
        return ["iperf3", "--client", self.host.address, "--port", str(PORT), "--time", f"{seconds:g}"]
