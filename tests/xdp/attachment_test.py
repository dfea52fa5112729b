#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interfaces to which the kernel program can be attached, and the errors for other interfaces.

usage: attachment_test.py ATP
"""

import pathlib
import re
import tempfile

import networks
from networks import PATIENCE_S

JUMBO = 9000  # larger than a veth accepts with a program in its driver


class Attachment(networks.NetworkTest):
    def refusal(self, ports, pins=None, without=(), flags=()):
        """Starts `atp switch` without the capabilities in `without`. The start must fail. Returns the error."""
        words = [
            "switch",
            "--listen",
            f"0.0.0.0:{networks.PORT}",
            "--xdp",
            ports,
            "--xdp-pins",
            pins or self.new_pins(),
            *flags,
        ]
        dropped = ",".join("-" + capability for capability in without) or "+all"
        done = self.start("bridge", "setpriv", f"--bounding-set={dropped}", networks.ATP, *words)
        _, error = done.communicate(timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 2, error)
        return error

    def test_program_is_generic_with_jumbo_frames(self):
        ports = self.network.ports("bridge")
        self.network.set_mtu(JUMBO)
        for host in self.network.bridges["bridge"]:
            # Prevents frames that an offload has merged: a generic program cannot process merged frames.
            self.network.ip(host, "link", "set", "eth0", "gso_max_segs", "1")
        pins = self.new_pins()
        switch = self.start_switch(pins=pins)
        self.assertEqual(self.kernel()["kernel"]["interfaces"], dict.fromkeys(ports, "generic"))
        text = networks.call(*self.network.at("bridge", networks.ATP, "stats", self.network.endpoint("bridge")))
        self.assertIn("to-w0 generic", text)
        self.finish(self.start_workers("1MB"))
        self.assertGreater(self.completed(), 500)

        switch.kill()
        switch.wait(PATIENCE_S)
        switch = self.start_switch(pins=pins)
        self.assertEqual(self.kernel()["kernel"]["interfaces"], dict.fromkeys(ports, "generic"), "unchanged")
        self.stop(switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def test_program_is_generic_on_a_device_without_driver_support(self):
        switch = self.start_atp("bridge", "switch", "--xdp", "br0", "--xdp-pins", self.new_pins())
        networks.wait_until(lambda: self.report("bridge"), "the switch answers")
        self.assertEqual(self.kernel()["kernel"]["interfaces"], {"br0": "generic"})
        self.stop(switch)
        out, _ = switch.communicate(timeout=PATIENCE_S)
        self.assertIn("br0: generic, slower: its driver has no XDP", out)

    def test_bridge_together_with_its_port_is_refused(self):
        self.assertIn("to-w0: failed (EEXIST", self.refusal("br0,to-w0"))
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def test_stop_detaches_a_bridge_and_its_port(self):
        switch = self.start_switch(ports=["to-w0", "br0"])
        self.stop(switch)
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def test_interface_without_its_program_is_reported_as_gone(self):
        switch = self.start_switch(ports=["to-w0", "to-w1"])
        self.network.ip("bridge", "link", "set", "dev", "to-w1", "xdp", "off")
        self.assertEqual(self.kernel()["kernel"]["interfaces"], {"to-w0": "native", "to-w1": "gone"})
        self.stop(switch)

    def test_missing_interface_is_refused(self):
        self.assertIn("eth7: failed (ENODEV", self.refusal("to-w0,eth7"))
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def test_start_is_refused_and_a_foreign_xdp_program_kept(self):
        loss = self.start_loss("bridge", 0, 1)
        self.assertIn("to-w0: in use: another XDP program is attached", self.refusal("to-w0"))
        self.assertEqual(sorted(self.network.with_xdp("bridge")), sorted(self.network.ports("bridge")))
        self.stop_loss(loss)

    def egress_filters(self, port):
        return networks.call("tc", "-n", self.network.prefix + "bridge", "filter", "show", "dev", port, "egress")

    def filter_egress(self, port, *place):
        """Adds a filter as another program would. The filter passes all frames."""
        node = self.network.prefix + "bridge"
        networks.call("tc", "-n", node, "qdisc", "add", "dev", port, "clsact")
        networks.call("tc", "-n", node, "filter", "add", "dev", port, "egress", *place, "bpf", "bytecode", "1,6 0 0 0,")

    def test_egress_filter_remains_after_a_kill_and_is_removed_by_a_stop(self):
        pins = self.new_pins()
        switch = self.start_switch(pins=pins)
        self.assertEqual(self.kernel()["kernel"]["without_release"], [])
        for port in self.network.ports("bridge"):
            self.assertIn("atp_egress", self.egress_filters(port))
        switch.kill()
        switch.wait(PATIENCE_S)
        self.assertIn("atp_egress", self.egress_filters("to-w0"))
        switch = self.start_switch(pins=pins)
        self.assertEqual(self.kernel()["kernel"]["without_release"], [])
        self.assertEqual(self.egress_filters("to-w0").count("direct-action"), 1, "the new filter replaces the old one")
        self.stop(switch)
        self.assertEqual(self.egress_filters("to-w0"), "")

    def test_foreign_egress_filter_is_kept(self):
        self.filter_egress("to-w0", "pref", "7")
        before = self.egress_filters("to-w0")
        switch = self.start_switch()
        self.assertIn("atp_egress", self.egress_filters("to-w0"))
        self.assertTrue(self.egress_filters("to-w0").startswith(before))
        self.stop(switch)
        self.assertEqual(self.egress_filters("to-w0"), before)

    def test_foreign_filter_with_the_same_handle_is_kept_and_reported(self):
        switch = self.start_switch(ports=["to-w1"])
        place = re.search(r"pref (\d+) bpf chain 0 handle (\w+)", self.egress_filters("to-w1"))
        self.stop(switch)
        self.filter_egress("to-w0", "pref", place[1], "handle", place[2])
        before = self.egress_filters("to-w0")
        switch = self.start_switch(ports=["to-w0"])
        self.assertIn("to-w0: failed (EEXIST", self.kernel()["kernel"]["without_release"][0])
        self.assertEqual(self.network.with_xdp("bridge"), ["to-w0"], "aggregates without a filter")
        self.stop(switch)
        self.assertEqual(self.egress_filters("to-w0"), before)

    def test_several_threads_are_refused(self):
        self.assertIn("--threads 1", self.refusal("to-w0", flags=["--threads", "2"]))
        self.assertEqual(self.network.with_xdp("bridge"), [])

    def test_missing_privilege_to_load_is_reported(self):
        pins = self.new_pins()
        networks.call("mount", "-t", "bpf", "bpf", pins)
        self.assertIn("CAP_BPF", self.refusal("to-w0", pins, without=["bpf", "sys_admin"]))

    def test_pin_folder_with_files_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder, "kept")
            kept.touch()
            self.assertIn("an empty folder", self.refusal("to-w0", folder))
            self.assertTrue(kept.exists())

    def test_missing_privilege_to_pin_is_reported(self):
        self.assertIn("CAP_SYS_ADMIN", self.refusal("to-w0", without=["sys_admin"]))


if __name__ == "__main__":
    networks.run()
