#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/cluster/run on little data. No assertion depends on measured time.

usage: cluster_test.py FOLDER_OF_PROGRAMS. Exit status 77: this machine cannot create such networks."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import arguments
import atp_systems
import measure
import measured
import network
import pipeline
import report
import systems
import topology

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")
SMALL = ("--topology", "star:2", "--rounds", "1", "--operations", "1", "--systems", "gloo")
DEADLINE_SECONDS = 60
EXIT_UNAVAILABLE = 77
programs = None


class Topologies(unittest.TestCase):
    def test_ranks_alternate_between_racks_if_dealt_and_fill_rack_by_rack_if_packed(self):
        racks = topology.parse("racks:2x3")
        self.assertEqual([host.switch.name for host in racks.ranks("dealt")], ["rack0", "rack1"] * 3)
        self.assertEqual([host.switch.name for host in racks.ranks("packed")], ["rack0"] * 3 + ["rack1"] * 3)

    def test_no_two_nodes_share_an_address(self):
        for text in ("star:200", "racks:100x200"):
            nodes = topology.parse(text)
            addresses = [node.address for node in nodes.hosts + nodes.switches]
            self.assertEqual(len(set(addresses)), len(addresses))

    def test_impossible_shapes_are_refused(self):
        for text in ("ring:4", "star:", "star:1", "star:201", "racks:1x4", "racks:2x0", "racks:2x4x2", "4"):
            with self.assertRaises(ValueError, msg=text):
                topology.parse(text)


class Reports(unittest.TestCase):
    LINKS = network.Links(host_bps=500_000_000, uplink_bps=250_000_000, queue_bytes=1 << 20)

    def report_of(self, shape, jobs, seconds):
        """A report of `atp`, with the times of `seconds`, and `gloo`, with twice these times. Each row is a turn with
        one time per job."""
        nodes = topology.parse(shape)
        traffic = {
            pair: (3_000_000, 1)
            for below, above in nodes.links()
            for pair in ((below.name, above.name), (above.name, below.name))
        }
        turns = {
            name: [
                measure.Turn(
                    [{"seconds": [factor * one], "ranks_cpu_seconds": 1.5 / jobs} for one in row],
                    0.5,
                    0.25,
                    3.0,
                    0.5,
                    traffic,
                    [],
                )
                for row in seconds
            ]
            for name, factor in (("atp", 1), ("gloo", 2))
        }
        work = measured.Work(bytes=1_000_000, operations=1, warmup=1, jobs=jobs)
        setting = report.Setting(nodes, self.LINKS, "packed", work)
        return json.loads(report.Report(setting, 1.0, {"atp": "", "gloo": "ring"}, turns).as_json())

    def test_report_uses_the_median_round(self):
        atp = self.report_of("star:2", 1, [[0.1], [0.2], [0.9]])["systems"]["atp"]
        self.assertAlmostEqual(atp["goodput_bps"], 8_000_000 / 0.2)
        self.assertAlmostEqual(atp["ratio_to_gloo"], 2)
        self.assertEqual(atp["seconds"], [0.1, 0.2, 0.9])

    def test_report_compares_the_first_two_systems(self):
        flat = self.report_of("star:2", 1, [[0.1], [0.2], [0.4]])
        self.assertEqual((flat["workers"], flat["rate_mbps"], flat["peer"]), (2, 500, "gloo"))
        self.assertEqual([flat[f"goodput_mbps{end}"] for end in ("", "_min", "_max")], [40, 20, 80])
        self.assertEqual([flat[f"peer_goodput_mbps{end}"] for end in ("", "_min", "_max")], [20, 10, 40])
        self.assertEqual([flat[f"ratio{end}"] for end in ("", "_min", "_max")], [2, 2, 2])
        self.assertAlmostEqual(flat["share_of_limit"], 40 / flat["limit_mbps"])
        self.assertEqual(flat["cpu_s_per_gb"], flat["peer_cpu_s_per_gb"])
        self.assertIsNone(flat["in_network_share"])

    def test_goodput_is_the_sum_over_the_jobs(self):
        atp = self.report_of("star:2", 2, [[0.1, 0.2]])["systems"]["atp"]
        self.assertAlmostEqual(atp["goodput_bps"], 8_000_000 / 0.1 + 8_000_000 / 0.2)
        self.assertEqual(atp["jobs_goodput_bps"], [8_000_000 / 0.1, 8_000_000 / 0.2])

    def test_narrowest_link_of_the_path_is_the_limit(self):
        self.assertAlmostEqual(self.report_of("star:2", 1, [[1]])["limit_bps"], 500e6 * 1472 / 1514)
        self.assertAlmostEqual(self.report_of("racks:2x2", 1, [[1]])["limit_bps"], 250e6 * 1472 / 1514)

    def test_costs_are_divided_by_the_gigabytes_of_all_operations_and_ranks(self):
        atp = self.report_of("racks:2x2", 1, [[1]])["systems"]["atp"]
        gigabytes = 2 * 4 * 0.001
        measured_gigabytes = 4 * 0.001
        self.assertAlmostEqual(atp["cpu_seconds_per_gb"], 1.5 / measured_gigabytes + 0.5 / gigabytes)
        self.assertAlmostEqual(atp["switch_cpu_seconds_per_gb"], 0.5 / gigabytes)
        self.assertAlmostEqual(atp["switch_box_cpu_seconds_per_gb"], 0.75 / gigabytes)
        self.assertAlmostEqual(atp["machine_cpu_seconds_per_gb"], 3.0 / gigabytes)
        self.assertEqual(
            atp["traffic_of_an_operation"],
            {
                "host_sent_bytes": 1_500_000,
                "host_received_bytes": 1_500_000,
                "uplink_sent_bytes": 1_500_000,
                "uplink_received_bytes": 1_500_000,
                "dropped_packets": 6,
            },
        )

    def test_bound_of_a_ring_has_a_member_for_each_rack_with_a_switch(self):
        work = measured.Work(bytes=1_000_000, operations=1, warmup=1, jobs=1)
        setting = report.Setting(topology.parse("racks:4x2"), self.LINKS, "packed", work, leaves=(0, 4))
        limit = report.limit_bps(setting.topology, self.LINKS)
        self.assertEqual(setting.bounds_of_rings(), {0: limit * 8 / 14, 4: limit * 4 / 6})


class CommandLine(unittest.TestCase):
    def test_short_forms_equal_their_long_forms(self):
        short = arguments.parse(["--workers", "8", "--peer", "torch-gloo", "--iters", "7"])
        long = arguments.parse(["--topology", "star:8", "--systems", "atp,torch-gloo", "--operations", "7"])
        self.assertEqual(vars(short), vars(long))
        self.assertEqual(arguments.parse(["--racks", "2x4"]).topology, topology.parse("racks:2x4"))

    def test_one_switch_systems_are_refused_in_racks(self):
        for shape in ("star:4", "local:4"):
            self.assertEqual(arguments.parse(["--topology", shape, "--peer", "switchml"]).systems, ["atp", "switchml"])
        for flags, name in ((["--peer", "switchml"], "switchml"), (["--switch", "xdp"], "atp-xdp")):
            ran = subprocess.run([RUN, "--racks", "2x2", *flags], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2)
            self.assertIn(f"{name} cannot span racks", ran.stderr)

    def test_switch_without_atp_is_refused(self):
        ran = subprocess.run([RUN, "--switch", "xdp", "--systems", "gloo"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--switch", ran.stderr)

    def test_loss_in_the_kernel_switch_is_refused(self):
        ran = subprocess.run([RUN, "--switch", "xdp", "--loss", "1%"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("argument --loss", ran.stderr)

    def test_switch_option_replaces_atp_and_no_other_system(self):
        for switch, others, chosen in (
            ("user", ["--peer", "gloo"], ["atp", "gloo"]),
            ("xdp", ["--peer", "gloo"], ["atp-xdp", "gloo"]),
            ("both", ["--systems", "gloo,atp"], ["gloo", "atp", "atp-xdp"]),
            ("xdp", ["--workload", "vgg"], ["atp-xdp", "gloo"]),
            ("p4", ["--peer", "gloo"], ["atp-p4", "gloo"]),
        ):
            self.assertEqual(arguments.parse(["--switch", switch, *others]).systems, chosen)

    def test_leaves_replace_atp_by_a_system_for_each_number(self):
        options = arguments.parse(["--racks", "4x2", "--leaves", "0,4", "--no-root", "--peer", "gloo"])
        self.assertEqual(options.systems, ["atp-leaves0-no-root", "atp-leaves4-no-root", "gloo"])
        for flags in (["--leaves", "1"], ["--racks", "2x2", "--leaves", "3"], ["--racks", "2x2", "--no-root"]):
            ran = subprocess.run([RUN, *flags], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2)
            self.assertIn(flags[-1] if flags[-1] == "--no-root" else "--leaves", ran.stderr)

    def test_only_racks_with_a_leaf_run_a_switch_and_have_its_address(self):
        options = arguments.parse(["--racks", "2x2", "--leaves", "1", "--no-root"])
        system = systems.OF_LEAVES["atp-leaves1-no-root"]("atp-leaves1-no-root", "bin", options)
        root, near, far = options.topology.switches
        self.assertEqual([system.daemon_command(each) is not None for each in (root, near, far)], [False, True, False])
        self.assertNotIn("--parent", system.daemon_command(near))
        hosts = options.topology.hosts
        self.assertIn("--switch", system.address_flags(measured.Rank(0, 0, hosts, (), "store", "eth0")))
        without = system.address_flags(measured.Rank(0, 3, hosts, (), "store", "eth0"))
        self.assertNotIn("--switch", without)
        self.assertEqual(without[without.index("--uplink") + 1], far.name)

    def test_command_of_the_kernel_switch_lists_the_ports_to_all_hosts(self):
        options = arguments.parse(["--switch", "xdp", "--workers", "3"])
        command = atp_systems.AtpInKernel("atp-xdp", "bin", options).switch_command(options.topology.switches[0])
        self.assertEqual(command[-2:], ["--xdp", "to-h0,to-h1,to-h2"])

    def in_pipeline(self, *flags):
        """The system with the switch in P4, without its compiler and model, and its options."""
        options = arguments.parse(["--switch", "p4", *flags])
        with mock.patch.object(pipeline, "find", side_effect=lambda tool: tool):
            system = atp_systems.AtpInPipeline("atp-p4", "bin", options)
            return system, options, {node: system.daemons(node) for node in options.topology.daemon_nodes}

    def test_model_of_p4_takes_all_ports_of_a_switch_and_the_server_runs_on_a_host(self):
        system, options, daemons = self.in_pipeline("--workers", "2", "--peer", "gloo")
        server, switch = options.topology.server, options.topology.switches[0]
        model, agent = (daemon.command for daemon in daemons[switch])
        interfaces = ["-i", "0@to-h0", "-i", "1@to-h1", "-i", "2@to-server", "-i", "64@to-agent"]
        self.assertEqual(model[3:-1], interfaces)
        self.assertEqual(agent[agent.index("--p4") + 1], f"127.0.0.1:{daemons[switch][0].port}")
        self.assertEqual(agent[agent.index("--level") + 1], "0")
        self.assertIn(f"{server.address}:4790", daemons[server][0].command)
        rank = measured.Rank(0, 0, options.topology.hosts, (), "store", "eth0")
        flags = system.address_flags(rank)
        self.assertEqual(flags[:2], ["--switch", f"{server.address}:4790"])
        self.assertNotIn("--rack", flags)
        self.assertEqual(options.bytes, arguments.DEFAULT_BYTES_OF_P4)

    def test_models_of_p4_in_racks_have_levels_and_an_uplink(self):
        system, options, daemons = self.in_pipeline("--racks", "2x1", "--systems", "atp", "--rank-flags=--window 2")
        core, rack, _ = options.topology.switches
        for switch, level in ((core, "1"), (rack, "0")):
            command = daemons[switch][1].command
            self.assertEqual(command[command.index("--level") + 1], level)
        self.assertIn("1@uplink", daemons[rack][0].command)
        self.assertIn("2@to-server", daemons[core][0].command)
        rank = measured.Rank(0, 1, options.topology.hosts, (), "store", "eth0")
        self.assertEqual(system.address_flags(rank)[2:], ["--rack", "rack1"], "and no second window")

    def test_switch_in_p4_refuses_what_its_model_cannot_do(self):
        for flags, named in (
            (["--topology", "local:2"], "--switch"),
            (["--workload", "vgg"], "--switch"),
            (["--offloads", "off"], "--switch"),
            (["--loss", "1%"], "--switch"),
            (["--racks", "2x2", "--systems", "atp,torch-atp"], "torch-atp"),
            (["--racks", "2x2", "--server", "host"], "--server"),
        ):
            ran = subprocess.run([RUN, "--switch", "p4", *flags], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2, flags)
            self.assertIn(named, ran.stderr)

    def test_missing_tool_of_p4_is_named(self):
        with tempfile.TemporaryDirectory() as empty:
            ran = subprocess.run(
                [sys.executable, RUN, "--switch", "p4", "--bin", empty],
                capture_output=True,
                text=True,
                check=False,
                env={"PATH": empty, "ATP_P4_TOOLS": empty},
            )
        self.assertEqual(ran.returncode, EXIT_UNAVAILABLE)
        self.assertIn("`p4c-bm2-ss` is neither on PATH nor in ATP_P4_TOOLS", ran.stderr)

    def test_ranks_get_a_server_host_as_dedicated_server_or_with_a_kernel_switch_as_switch(self):
        for switch, kind, flag in (
            ("user", atp_systems.Atp, "--dedicated-server"),
            ("xdp", atp_systems.AtpInKernel, "--switch"),
        ):
            options = arguments.parse(["--switch", switch, "--workers", "2", "--server", "host"])
            server = options.topology.server
            system = kind("atp", "bin", options)
            self.assertIn(
                "to-server", ",".join(atp_systems.AtpInKernel("x", "bin", options).switch_command(server.switch))
            )
            self.assertIn(f"{server.address}:4790", system.daemon_command(server))
            rank = measured.Rank(0, 0, options.topology.hosts, (), "store", "eth0")
            command = system.rank_command(rank, measured.Work(4, 1, 0, 1), "")
            self.assertEqual(command[command.index(flag) + 1], f"{server.address}:4790")

    def test_server_host_outside_a_star_is_refused(self):
        for flags in (["--racks", "2x2"], ["--topology", "local:2"], ["--peer", "switchml"], ["--workload", "vgg"]):
            ran = subprocess.run([RUN, "--server", "host", *flags], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2)
            self.assertIn("--server", ran.stderr)

    def test_switchml_has_several_variants_unless_rank_flags_set_the_window(self):
        usual = arguments.parse(["--systems", "switchml"])
        self.assertEqual(len(atp_systems.SwitchMl("switchml", "bin", usual).variants), 3)
        tuned = arguments.parse(["--systems", "switchml", "--rank-flags=--window 32"])
        self.assertEqual(atp_systems.SwitchMl("switchml", "bin", tuned).variants, ("",))

    def test_another_operation_is_measured_through_pytorch(self):
        options = arguments.parse(["--collective", "broadcast", "--type", "int64", "--bytes", "8"])
        self.assertEqual(options.systems, ["torch-atp", "torch-gloo"])
        work = arguments.work_of(options, "bin")
        rank = measured.Rank(0, 0, (options.topology.hosts[0],), ((),), "store", "eth0")
        command = systems.TorchGloo("torch-gloo", "bin", options).rank_command(rank, work, "")
        self.assertIn("broadcast", command)
        self.assertIn("int64", command)
        for flags in (
            ["--type", "float64", "--bytes", "4"],
            ["--type", "bfloat16", "--systems", "gloo,torch-gloo"],
            ["--type", "bfloat16", "--systems", "switchml"],
            ["--collective", "broadcast", "--systems", "atp"],
            ["--magnitude", "1e-9", "--workload", "vgg"],
            ["--type", "bfloat16", "--systems", "torch-gloo-float8"],
        ):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                arguments.parse(flags)

    def test_atp_bench_measures_another_operation(self):
        flags = ["--collective", "both", "--type", "bfloat16", "--magnitude", "1e-9", "--lane-type", "int16"]
        options = arguments.parse([*flags, "--systems", "atp,torch-gloo"])
        rank = measured.Rank(0, 0, (options.topology.hosts[0],), ((),), "store", "eth0")
        command = atp_systems.Atp("atp", "bin", options).rank_command(rank, arguments.work_of(options, "bin"), "")
        for flag, value in (
            ("--collective", "both"),
            ("--type", "bfloat16"),
            ("--magnitude", "1e-09"),
            ("--lanes", "int16"),
        ):
            self.assertEqual(command[command.index(flag) + 1], value)

    def test_hook_for_float8_is_a_collective_of_its_own(self):
        options = arguments.parse(["--lane-type", "int8", "--systems", "torch-atp,torch-gloo-float8"])
        rank = measured.Rank(0, 0, (options.topology.hosts[0],), ((),), "store", "eth0")
        command = systems.TorchGlooFloat8("torch-gloo-float8", "bin", options).rank_command(
            rank, arguments.work_of(options, "bin"), ""
        )
        self.assertIn("all_reduce_float8", command)

    def test_error_about_a_bad_argument_names_its_flag(self):
        for flag, value in (
            ("--magnitude", "0"),
            ("--type", "complex64"),
            ("--collective", "gather"),
            ("--topology", "ring:4"),
            ("--rate", "fast"),
            ("--bytes", "6"),
            ("--rounds", "0"),
            ("--systems", "atp,mpi"),
            ("--peer", "mpi"),
            ("--workers", "1"),
            ("--switch", "tofino"),
            ("--offloads", "some"),
            ("--racks", "2"),
            ("--loss", "2"),
            ("--timeout", "0"),
            ("--no-such-flag", "1"),
        ):
            ran = subprocess.run([RUN, flag, value], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2, flag)
            self.assertIn(flag, ran.stderr)


class Runs(unittest.TestCase):
    """Runs on real networks. To simulate a program that fails, a test puts a script with its name into the folder."""

    def run_small(self, folder, *flags, interrupt_when=None):
        """Runs the benchmark and returns (status, output, errors). Checks that no namespace or file remains."""
        process = subprocess.Popen(
            [RUN, "--bin", folder, *SMALL, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if interrupt_when:
            deadline = time.monotonic() + DEADLINE_SECONDS
            while process.poll() is None and not os.path.exists(interrupt_when) and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        if process.returncode == EXIT_UNAVAILABLE:
            self.skipTest(errors.strip())
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        left += "\n".join(os.listdir(tempfile.gettempdir()))
        self.assertNotIn(f"atp-{process.pid}-", left)
        return process.returncode, output, errors

    def script_for_rank(self, script):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "bench_gloo")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
        return folder

    def test_gloo_is_measured(self):
        status, output, errors = self.run_small(programs, "--bytes", "256KiB", "--gloo-algorithm", "ring", "--json")
        self.assertEqual(status, 0, errors)
        result = json.loads(output)
        self.assertEqual(
            (result["topology"], result["rate_bps"], result["bytes"], result["world"]),
            ("star:2", 500_000_000, 262_144, 2),
        )
        self.assertEqual(len(result["rounds"]), 1)
        self.assertGreater(result["limit_bps"], 0)
        self.assertGreater(result["stream_bps"], 0)
        gloo = result["systems"]["gloo"]
        self.assertEqual(len(gloo["seconds"]), 1)
        self.assertEqual(gloo["ratio_to_gloo"], 1)
        for figure in ("goodput_bps", "share_of_limit", "cpu_seconds_per_gb"):
            self.assertGreater(gloo[figure], 0)
        # In the ring of two ranks, each rank sends half of its tensor and half of the sum, in packets with headers.
        self.assertGreater(gloo["traffic_of_an_operation"]["host_sent_bytes"], 262_144)

    def test_racks_choose_their_layout(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        flags = [
            "--topology",
            "racks:2x2",
            "--leaves",
            "0,2",
            "--no-root",
            "--bytes",
            "256KiB",
            "--uplink",
            "500mbit",
            "--json",
        ]
        status, output, errors = self.run_small(programs, *flags, "--systems", "atp")
        self.assertEqual(status, 0, errors)
        result = json.loads(output)["systems"]
        self.assertEqual(result["atp-leaves0-no-root"]["layout"], "racks")
        self.assertEqual(result["atp-leaves2-no-root"]["layout"], "leaves")

    def test_switchml_is_measured_beside_atp(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        status, output, errors = self.run_small(programs, "--bytes", "256KiB", "--systems", "switchml,atp", "--json")
        self.assertEqual(status, 0, errors)
        result = json.loads(output)["systems"]
        for name in ("switchml", "atp"):
            # Each rank sends its tensor once, and packets add headers.
            self.assertGreater(result[name]["traffic_of_an_operation"]["host_sent_bytes"], 262_144)

    def test_kernel_switch_adds_more_than_nine_tenths_of_the_gradients(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        flags = ("--bytes", "256KiB", "--systems", "atp", "--switch", "both", "--json")
        status, output, errors = self.run_small(programs, *flags)
        if re.search("no switch inside the kernel|not permitted", errors):
            self.skipTest(errors.strip())
        self.assertEqual(status, 0, errors)
        result = json.loads(output)
        self.assertEqual(list(result["systems"]), ["atp", "atp-xdp"])
        for system in result["systems"].values():
            self.assertGreater(system["traffic_of_an_operation"]["host_sent_bytes"], 262_144)
            self.assertGreater(system["machine_cpu_seconds_per_gb"], 0)
            self.assertGreater(system["in_network_share"], 0.9)

    def test_servers_run_on_a_host(self):
        if not os.path.exists(os.path.join(programs, "atp")):
            self.skipTest("there is no atp")
        flags = ("--bytes", "256KiB", "--systems", "atp", "--switch", "both", "--server", "host", "--json")
        status, output, errors = self.run_small(programs, *flags)
        if re.search("no switch inside the kernel|not permitted", errors):
            self.skipTest(errors.strip())
        self.assertEqual(status, 0, errors)
        for system in json.loads(output)["systems"].values():
            self.assertGreater(system["traffic_of_an_operation"]["uplink_received_bytes"], 262_144, "at server")

    def test_frames_without_offloads_are_measured(self):
        if shutil.which("ethtool") is None:
            self.skipTest("there is no ethtool")
        flags = ("--bytes", "8MiB", "--gloo-algorithm", "ring", "--offloads", "off", "--json")
        status, output, errors = self.run_small(programs, *flags)
        self.assertEqual(status, 0, errors)
        result = json.loads(output)
        self.assertFalse(result["offloads"])
        self.assertGreater(result["systems"]["gloo"]["switch_box_cpu_seconds_per_gb"], 0, "time of the ports")

    def test_openmpi_is_measured_over_the_links(self):
        if not (shutil.which("mpirun") and os.path.exists(os.path.join(programs, "bench_mpi"))):
            self.skipTest("there is no Open MPI")
        status, output, errors = self.run_small(programs, "--bytes", "256KiB", "--systems", "openmpi", "--json")
        self.assertEqual(status, 0, errors)
        traffic = json.loads(output)["systems"]["openmpi"]["traffic_of_an_operation"]
        self.assertGreater(traffic["host_sent_bytes"], 262_144)

    def test_error_about_a_failed_rank_contains_its_name_and_output(self):
        status, _, errors = self.run_small(
            self.script_for_rank("echo no such luck >&2; exit 3"), "--gloo-algorithm", "ring"
        )
        self.assertEqual(status, 1, errors)
        self.assertRegex(errors, r"gloo-job0-rank\d \(status 3\)")
        self.assertIn("no such luck", errors)

    def test_rank_that_hangs_is_ended_at_the_timeout(self):
        status, _, errors = self.run_small(self.script_for_rank("exec sleep 1000"), "--timeout", "5")
        self.assertEqual(status, 1, errors)
        self.assertIn("not done after 5 s", errors)

    def test_interrupted_run_removes_its_network(self):
        folder = self.script_for_rank('touch "$0.started"; exec sleep 1000')
        status, _, errors = self.run_small(folder, interrupt_when=os.path.join(folder, "bench_gloo.started"))
        self.assertEqual(status, 130, errors)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = sys.argv[1]
    ran = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    sys.exit(1 if not ran.wasSuccessful() else EXIT_UNAVAILABLE if ran.skipped else 0)
