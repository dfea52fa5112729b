#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two tenants on a kernel switch: one wants the whole table, and the other keeps its slice.

usage: slices_test.py ATP
"""

import os
import signal
import tempfile

import networks
from networks import LANES, wait_until

AGGREGATORS = 64
MEMORY = str(AGGREGATORS * (40 + 4 * LANES))
WEIGHTS = {"first": 3, "second": 1}
SIZES = {"first": 48, "second": 16}
ENOUGH = 3000  # fragments of the first tenant, completed in the kernel
ENDLESS = "1000000"


class Slices(networks.NetworkTest):
    bridges = {"bridge": ["w0", "w1", "w2", "w3", "server"]}
    server_memory = MEMORY

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.tenants = os.path.join(self.folder, "tenants.toml")
        for name in WEIGHTS:
            self.make_key("new", f"{name}.key", "--tenant", name)
            self.make_key("for", "root", f"{name}-root.key", "--from", f"{name}.key")
        self.write(WEIGHTS)
        self.server_flags = ("--tenants", self.tenants)
        super().setUp()
        self.pins = self.new_pins()
        self.switch = self.start_with_slices()

    def make_key(self, verb, *words):
        paths = [word if word.startswith("--") or "." not in word else f"{self.folder}/{word}" for word in words]
        networks.call(networks.ATP, "key", verb, *paths)

    def write(self, weights):
        with open(os.open(self.tenants, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            for name, weight in weights.items():
                file.write(f'[[tenant]]\nname = "{name}"\nkeys = "{name}-root.key"\nweight = {weight}\n')

    def start_with_slices(self):
        return self.start_switch(memory=MEMORY, pins=self.pins, flags=("--tenants", self.tenants))

    def start_job(self, name, workers, window, meet_at):
        """Starts an endless job of the tenant."""
        common = ["--world", str(len(workers)), "--rendezvous", self.network.endpoint(workers[0], meet_at), "--switch",
                  self.network.endpoint("server"), "--bytes", "4MB", "--rounds", ENDLESS, "--window", str(window)]  # fmt: skip
        return [
            self.start(worker, "env", f"ATP_KEY_FILE={self.folder}/{name}.key", networks.ATP, "bench", "--network", "--rank",
                       str(rank), *common)
            for rank, worker in enumerate(workers)
        ]  # fmt: skip

    def sizes(self):
        return {each["tenant"]: each["aggregators"] for each in self.kernel()["slices"]}

    def packets_of(self, name):
        """The kernel's counters of the only job of the tenant; before it joined, None."""
        channels = self.report("server")["shards"][0]["channels"]
        jobs = {channel["job"] for channel in channels if channel.get("tenant") == name}
        found = [each["packets"] for each in self.kernel()["jobs"] if each["job"] in jobs]
        return found[0] if found else None

    def completed_of(self, name):
        packets = self.packets_of(name)
        return packets["completed"] if packets else 0

    def start_jobs(self):
        # The second one wants every aggregator, and the first one two thirds of its slice.
        jobs = self.start_job("second", ["w2", "w3"], 256, 29501) + self.start_job("first", ["w0", "w1"], 32, 29500)
        wait_until(lambda: self.completed_of("first") and self.completed_of("second"), "both jobs run")
        wait_until(lambda: self.sizes() == SIZES, "both tenants have their slices")
        return jobs

    def expect_that_the_first_keeps_its_slice(self):
        before = {name: self.packets_of(name) for name in WEIGHTS}
        wait_until(lambda: self.completed_of("first") > before["first"]["completed"] + ENOUGH, "the first job runs on")
        after = {name: self.packets_of(name) for name in WEIGHTS}

        def grown(name, counter):
            return after[name][counter] - before[name][counter]

        self.assertGreater(grown("second", "collisions"), 0.1 * grown("second", "completed"), "it should want more")
        self.assertLess(grown("first", "collisions"), 0.02 * grown("first", "completed"))

    def test_tenant_that_fills_the_table_takes_nothing_from_another(self):
        self.start_jobs()
        self.expect_that_the_first_keeps_its_slice()
        stats = networks.call(*self.network.at("bridge", networks.ATP, "stats", self.network.endpoint("bridge")))
        for name, size in SIZES.items():
            self.assertRegex(stats, rf"{name} .* of {size}\n")

    def test_slices_survive_a_restart_and_follow_the_file_of_tenants(self):
        self.start_jobs()
        self.switch.kill()
        self.switch.wait(networks.PATIENCE_S)
        self.switch = self.start_with_slices()
        self.assertEqual(self.sizes(), SIZES, "before another JOIN")
        self.expect_that_the_first_keeps_its_slice()
        self.write({"first": 1, "second": 3})
        self.switch.send_signal(signal.SIGHUP)
        wait_until(lambda: self.sizes() == {"first": 16, "second": 48}, "the weights apply")
        before = self.packets_of("first")
        wait_until(lambda: self.completed_of("first") > before["completed"] + ENOUGH, "the first job runs on")
        after = self.packets_of("first")
        collisions, completed = (after[name] - before[name] for name in ("collisions", "completed"))
        self.assertGreater(collisions, 0.1 * completed, "the kernel's entry has its smaller slice")


if __name__ == "__main__":
    networks.run()
