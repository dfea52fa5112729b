#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flags of `atp switch --xdp`, and the output of `atp switch` and `atp stats` after the start.

usage: flags_test.py ATP
"""

import networks
from networks import PATIENCE_S

MORE_THAN_ANY_MACHINE_HAS = "4000GB"


class Flags(networks.NetworkTest):
    def refusal(self, *flags):
        """Runs `atp switch`, which must exit with status 2 for bad arguments. Returns the error."""
        switch = self.start_atp("bridge", "switch", "--xdp-pins", self.new_pins(), *flags)
        _, error = switch.communicate(timeout=PATIENCE_S)
        self.assertEqual(switch.returncode, 2, error)
        self.assertEqual(self.network.with_xdp("bridge"), [])
        return error

    def test_error_for_incompatible_flags_names_the_flag(self):
        for word, flags in (
            ("port 0 of --listen", ["--xdp", "to-w0", "--listen", "0.0.0.0:0"]),
            ("--memory 0", ["--xdp", "to-w0", "--memory", "0"]),
            ("interface 'to-w0' is listed twice", ["--xdp", "to-w0,to-w1,to-w0"]),
            ("--xdp-pins", ["--listen", self.network.any_endpoint]),
            ("--link-rate: '1' is invalid", ["--xdp", "to-w0", "--link-rate", "1"]),
            ("--xdp does not list interface 'to-w1'", ["--xdp", "to-w0", "--link-rate", "to-w1=1Gbit"]),
            ("--xdp: 'to-w0,,to-w1' is invalid", ["--xdp", "to-w0,,to-w1"]),
        ):
            self.assertIn(word, self.refusal(*flags))

    def test_too_little_and_too_much_memory_are_refused(self):
        self.assertIn("hold no aggregator of 352 lanes", self.refusal("--xdp", "to-w0", "--memory", "1kB"))
        error = self.refusal("--xdp", "to-w0", "--memory", MORE_THAN_ANY_MACHINE_HAS)
        self.assertIn("ENOMEM", error)
        self.assertIn("less --memory", error)

    def test_blanks_around_names_are_ignored_and_kernel_memory_is_printed(self):
        switch = self.start_atp("bridge", "switch", "--xdp", "to-w0, to-w1 ,to-w2", "--xdp-pins", self.new_pins())
        networks.wait_until(lambda: switch.poll() is not None or self.report("bridge"), "the switch answers")
        self.assertEqual(self.network.with_xdp("bridge"), ["to-w0", "to-w1", "to-w2"])
        self.assertEqual(self.report("bridge")["memory_bytes"], 44_198 * 1448)
        stats = networks.call(*self.network.at("bridge", networks.ATP, "stats", self.network.endpoint("bridge")))
        self.assertIn(" 64.0 MB of aggregators", stats)
        self.stop(switch)
        out, _ = switch.communicate(timeout=PATIENCE_S)
        self.assertEqual(out.count("aggregators  "), 1)
        self.assertIn("  aggregators  44198 of 352 lanes inside the kernel (64.0 MB), in a rack\n", out)

    def output_of(self, *flags):
        """Returns what a switch on three ports prints at its start, and `atp stats` then."""
        words = ["switch", "--xdp", "to-w0,to-w1,to-w2", "--xdp-pins", self.new_pins(), *flags]
        switch = self.start_atp("bridge", *words)
        networks.wait_until(lambda: switch.poll() is not None or self.report("bridge"), "the switch answers")
        stats = networks.call(*self.network.at("bridge", networks.ATP, "stats", self.network.endpoint("bridge")))
        self.stop(switch)
        return switch.communicate(timeout=PATIENCE_S)[0], stats

    def test_start_shows_which_ports_mark_packets_and_stats_how_many(self):
        out, stats = self.output_of("--link-rate", "to-w0=500Mbit")
        self.assertIn("  marks        to-w0 above 0.98 of 500 Mbit/s\n", out)
        self.assertIn("  without marks at to-w1 and to-w2: no driver reports a rate; set --link-rate\n", out)
        self.assertIn("\nframes marked: to-w0 0 (link of 500 Mbit)\n", stats)
        out, stats = self.output_of()
        self.assertNotIn("marks", out)
        self.assertNotIn("frames marked", stats)


if __name__ == "__main__":
    networks.run()
