#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the command line of bench/cluster/run, and the commands of the systems that it chooses. Measures nothing.

usage: arguments_test.py"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import arguments
import atp_systems
import measure
import measured
import network
import pipeline
import systems
import topology
from workloads import tables

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")
EXIT_UNAVAILABLE = 77


# What parse() refuses, and what its error names.
REFUSED = (
    # a bad value: the error names the flag
    ("--magnitude 0", "--magnitude"),
    ("--type complex64", "--type"),
    ("--collective gather", "--collective"),
    ("--topology ring:4", "--topology"),
    ("--rate fast", "--rate"),
    ("--bytes 6", "--bytes"),
    ("--rounds 0", "--rounds"),
    ("--systems atp,mpi", "--systems"),
    ("--peer mpi", "--peer"),
    ("--workers 1", "--workers"),
    ("--switch tofino", "--switch"),
    ("--offloads some", "--offloads"),
    ("--racks 2", "--racks"),
    ("--loss 2", "--loss"),
    ("--timeout 0", "--timeout"),
    ("--no-such-flag 1", "--no-such-flag"),
    # switches: SwitchML and the kernel have one, and a switch in P4 cannot do all
    ("--racks 2x2 --peer switchml", "switchml cannot span racks"),
    ("--racks 2x2 --switch xdp", "atp-xdp cannot span racks"),
    ("--switch xdp --systems gloo", "--switch"),
    ("--switch xdp --loss 1%", "argument --loss"),
    ("--leaves 1", "--leaves"),
    ("--racks 2x2 --leaves 3", "--leaves"),
    ("--racks 2x2 --no-root", "--no-root"),
    ("--switch p4 --topology local:2", "--switch"),
    ("--switch p4 --workload vgg", "--switch"),
    ("--switch p4 --offloads off", "--switch"),
    ("--switch p4 --loss 1%", "--switch"),
    ("--switch p4 --racks 2x2 --systems atp,torch-atp", "torch-atp"),
    ("--switch p4 --racks 2x2 --server host", "--server"),
    ("--server host --racks 2x2", "--server"),
    ("--server-rate 1mbit", "--server-rate"),
    ("--server host --topology local:2", "--server"),
    ("--server host --peer switchml", "--server"),
    ("--server host --workload vgg", "--server"),
    # operations that a system does not have
    ("--type float64 --bytes 4", "--bytes"),
    ("--type bfloat16 --systems gloo,torch-gloo", "--systems"),
    ("--collective both --systems switchml", "--systems"),
    ("--collective broadcast --systems atp", "--systems"),
    ("--magnitude 1e-9 --workload vgg", "--workload"),
    ("--type bfloat16 --systems torch-gloo-float8", "--systems"),
    ("--topology racks:2x2 --server host", "--server"),
    ("--topology fig9 --server host --leaves 1", "--server"),
    ("--topology fig9 --systems atp-racks", "--systems"),
    ("--systems atp-nowhere", "--systems"),
    ("--sample 1ms", "--sample"),
    ("--sample 1", "--sample"),
    ("--topology local:2 --sample 1s", "--sample"),
    ("--systems torch-atp --switch-flags=--linear", "--switch-flags"),
    # models without PyTorch, and hosts of jobs
    ("--model VGG16 --bytes 4", "--model"),
    ("--model VGG16 --workload vgg", "--model"),
    ("--model VGG16 --warmup 0", "--model"),
    ("--model VGG16 --type float64", "--model"),
    ("--model VGG16 --systems atp,openmpi", "openmpi cannot train --model"),
    ("--model VGG16 --racks 2x2 --leaves 1", "atp-leaves1 cannot train --model"),
    ("--batch 8", "--model"),
    ("--model VGG16 --model-scale 0.5", "--model-scale"),
    ("--jobs 2 --job-flags=--model=VGG16", "not every job"),
    ("--job-hosts 0,0", "--job-hosts"),
    ("--job-hosts 0,4", "--job-hosts"),
    ("--job-hosts 0,1 --job-hosts 2,3", "--job-hosts"),
    ("--job-hosts 0,1 --ranks-per-host 2", "--job-hosts"),
    ("--job-hosts 0,1 --workload vgg", "--job-hosts"),
)


class CommandLine(unittest.TestCase):
    def test_error_names_what_is_refused(self):
        for flags, named in REFUSED:
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
                arguments.parse(flags.split())
            self.assertEqual(ended.exception.code, 2, flags)
            self.assertIn(named, said.getvalue(), flags)

    def test_bad_arguments_end_the_program_with_status_2(self):
        ran = subprocess.run([RUN, "--rate", "fast"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--rate", ran.stderr)

    def test_short_forms_equal_their_long_forms(self):
        short = arguments.parse(["--workers", "8", "--peer", "torch-gloo", "--iters", "7"])
        long = arguments.parse(["--topology", "star:8", "--systems", "atp,torch-gloo", "--operations", "7"])
        self.assertEqual(vars(short), vars(long))
        self.assertEqual(arguments.parse(["--racks", "2x4"]).topology, topology.parse("racks:2x4"))

    def test_system_with_one_switch_runs_without_racks(self):
        for shape in ("star:4", "local:4"):
            self.assertEqual(arguments.parse(["--topology", shape, "--peer", "switchml"]).systems, ["atp", "switchml"])

    def test_switch_option_replaces_atp_and_no_other_system(self):
        for switch, others, chosen in (
            ("user", ["--peer", "gloo"], ["atp", "gloo"]),
            ("xdp", ["--peer", "gloo"], ["atp-xdp", "gloo"]),
            ("both", ["--systems", "gloo,atp"], ["gloo", "atp", "atp-xdp"]),
            ("xdp", ["--workload", "vgg"], ["atp-xdp", "gloo"]),
            ("p4", ["--peer", "gloo"], ["atp-p4", "gloo"]),
            ("p4-passes", ["--peer", "gloo"], ["atp-p4-passes", "gloo"]),
        ):
            self.assertEqual(arguments.parse(["--switch", switch, *others]).systems, chosen)

    def test_leaves_replace_atp_by_a_system_for_each_number(self):
        options = arguments.parse(["--racks", "4x2", "--leaves", "0,4", "--no-root", "--peer", "gloo"])
        self.assertEqual(options.systems, ["atp-leaves0-no-root", "atp-leaves4-no-root", "gloo"])

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

    def test_server_of_figure_9_gets_sums_of_all_racks_or_gradients(self):
        names = ["atp", "atp-racks", "atp-nowhere"]
        options = arguments.parse(["--topology", "fig9", "--server", "host", "--systems", ",".join(names)])
        root, near, _ = options.topology.switches
        server = f"{options.topology.server.address}:4790"
        rank = measured.Rank(0, 0, options.topology.hosts, (), "store", "eth0")
        everywhere, racks, nowhere = (systems.OF_ALL_REDUCE[name](name, "bin", options) for name in names)
        self.assertEqual(everywhere.switch_command(near)[-2:], ["--parent", f"{root.address}:4790"])
        self.assertEqual(everywhere.address_flags(rank)[-2:], ["--dedicated-server", server])
        for switch in (root, near):
            self.assertEqual(racks.switch_command(switch)[-2:], ["--parent", server])
            self.assertIsNone(nowhere.daemon_command(switch))
        self.assertEqual(racks.address_flags(rank), ["--switch", f"{near.address}:4790"])
        self.assertEqual(nowhere.address_flags(rank), ["--switch", server])

    def test_servers_and_ranks_assign_aggregators_as_the_switch(self):
        assignment = ["--linear", "--partition", "2"]
        flags = f"--switch-flags=--threads 2 {' '.join(assignment)}"
        options = arguments.parse(["--server", "host", "--jobs", "2", "--systems", "atp", flags])
        system = atp_systems.Atp("atp", "bin", options)
        work = arguments.work_of(options, "bin")
        command = system.rank_command(measured.Rank(1, 0, options.topology.hosts, (), "store", "eth0"), work, "")
        self.assertEqual(command[-5:], [*assignment, "--job-number", "1"])
        for each in (command, system.server_command(options.topology.server)):
            self.assertEqual(each[0], "bin/atp-lab")
            self.assertNotIn("--threads", each)
        self.assertEqual(system.server_command(options.topology.server)[-3:], assignment)

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

    def test_each_switch_in_p4_compiles_its_program(self):
        for switch, kind, program in (
            ("p4", atp_systems.AtpInPipeline, "atp.v1model"),
            ("p4-passes", atp_systems.AtpInPasses, "pipeline.v1model"),
        ):
            options = arguments.parse(["--switch", switch, "--systems", "atp"])
            system = systems.OF_ALL_REDUCE[options.systems[0]](switch, "bin", options)
            self.assertIsInstance(system, kind)
            self.assertEqual(options.bytes, arguments.DEFAULT_BYTES_OF_P4)
            done = subprocess.CompletedProcess([], 0, "", "")
            with (
                mock.patch.object(network, "require_tools"),
                mock.patch.object(pipeline, "find", side_effect=lambda tool: tool),
                mock.patch.object(pipeline.subprocess, "run", return_value=done) as ran,
            ):
                system.prepare("folder")
            words = ran.call_args.args[0]
            self.assertEqual(os.path.basename(words[-3]), f"{program}.p4")
            self.assertTrue(os.path.exists(words[-3]))
            self.assertEqual(words[-1], os.path.join("folder", f"{program}.json"))
            self.assertIn(f"-DATP_PAIRS={atp_systems.PIPELINE_LANES // 2}", words)

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

    def work_with_models(self, *flags):
        options = arguments.parse([*flags, "--systems", "atp,switchml,gloo"])
        layer = tables.Layer("fc", (1000,), 2.0, 4.0)
        with mock.patch.object(tables, "load", side_effect=lambda name, _: tables.Table(name, "", 1, (layer,), 64)):
            return options, arguments.work_of(options, "bin")

    def test_each_job_trains_the_model_of_its_flags_or_that_of_all_jobs(self):
        options, work = self.work_with_models(
            *("--model", "VGG16", "--model-scale", "10", "--slowness", "3", "--batch", "32", "--jobs", "2"),
            *("--job-flags", "", "--job-flags", "--model ResNet50 --batch 128 --window 64"),
        )
        self.assertEqual([model.name for model in work.models], ["VGG16", "ResNet50"])
        self.assertEqual([work.bytes, work.bytes_of(1)], [400, 400])
        self.assertAlmostEqual(work.models[0].compute_seconds, 0.006 / 2 * 3 / 10)
        for kind, name in ((atp_systems.Atp, "atp"), (atp_systems.SwitchMl, "switchml"), (systems.Gloo, "gloo")):
            system = kind(name, "bin", options)
            rank = measured.Rank(1, 0, options.topology.hosts, (), "store", "eth0")
            command = system.rank_command(rank, work, "16 slots, 1000us" if name == "switchml" else "ring")
            for flag, value in (("--model", "ResNet50"), ("--batch", "128"), ("--scale", "10"), ("--slowness", "3")):
                self.assertEqual((command.count(flag), command[command.index(flag) + 1]), (1, value), name)
            self.assertNotIn("--bytes", command)
            self.assertEqual("--window" in command and "64" in command, name != "gloo")
        self.assertEqual(atp_systems.Atp("atp", "bin", options).rank_command(rank, work, "")[0], "bin/atp-lab")

    def test_job_with_hosts_of_its_own_has_ranks_only_there(self):
        options = arguments.parse(["--jobs", "3", "--job-hosts", "3,0", "--job-hosts", "1,2", "--systems", "atp"])
        work, every = arguments.work_of(options, "bin"), options.topology.hosts
        names = [[host.name for host in work.hosts_of(job, every)] for job in range(3)]
        self.assertEqual(names, [["h3", "h0"], ["h1", "h2"], ["h0", "h1", "h2", "h3"]])
        self.assertEqual(work.bytes_of_ranks(4), work.bytes * (2 + 2 + 4))
        jobs = [{"seconds": [seconds], "ranks_cpu_seconds": 1} for seconds in (1, 2, 4)]
        turn = measure.Turn(jobs, 0, None, 0, 0, {}, [])
        self.assertAlmostEqual(turn.goodput_bps(work), work.bytes * 8 * (1 + 1 / 4), msg="of the busiest host")

    def test_hook_for_float8_is_a_collective_of_its_own(self):
        options = arguments.parse(["--lane-type", "int8", "--systems", "torch-atp,torch-gloo-float8"])
        rank = measured.Rank(0, 0, (options.topology.hosts[0],), ((),), "store", "eth0")
        command = systems.TorchGlooFloat8("torch-gloo-float8", "bin", options).rank_command(
            rank, arguments.work_of(options, "bin"), ""
        )
        self.assertIn("all_reduce_float8", command)


if __name__ == "__main__":
    unittest.main(verbosity=2)
