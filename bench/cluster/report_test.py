#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the shapes of networks, and what a report makes of measured turns. Runs no program.

usage: report_test.py"""

import json
import unittest

import measure
import measured
import network
import report
import switch_report  # in tools/, which the import of `report` adds to sys.path
import topology


class JobsTogether(unittest.TestCase):
    def test_rates_count_until_the_shortest_job_nears_its_end(self):
        jobs = [{"seconds": [1.0] * 10}, {"seconds": [4.0] * 2 + [1.0] * 8}]
        turn = measure.Turn(jobs, 0.0, None, 0.0, 0.0, {}, [])
        self.assertEqual(turn.jobs_together(), [1.0, 0.25], "8 seconds, in which the second job ends two operations")


class Processors(unittest.TestCase):
    """Of two processors, sampled each second: all of the first three is work, and a fourth of what follows."""

    def share_of_last(self, seconds):
        processors = measure._Processors()
        processors._count = 2
        processors._samples = [
            measure.MachineTime(all=2.0 * at, idle=1.5 * max(0, at - 3), stolen=0.0) for at in range(8)
        ]
        return processors.busy_in_last(seconds)

    def test_only_the_end_counts(self):
        self.assertEqual(self.share_of_last(4), 0.25)
        self.assertEqual(self.share_of_last(3.5), 0.25, "from the sample before it on")
        self.assertAlmostEqual(self.share_of_last(5), 0.4)

    def test_of_a_longer_time_than_sampled_all_counts(self):
        self.assertAlmostEqual(self.share_of_last(100), 4 / 7 * 0.25 + 3 / 7)


class Topologies(unittest.TestCase):
    def test_ranks_alternate_between_racks_if_dealt_and_fill_rack_by_rack_if_packed(self):
        racks = topology.parse("racks:2x3")
        self.assertEqual([host.switch.name for host in racks.ranks("dealt")], ["rack0", "rack1"] * 3)
        self.assertEqual([host.switch.name for host in racks.ranks("packed")], ["rack0"] * 3 + ["rack1"] * 3)

    def test_no_two_nodes_share_an_address(self):
        for text in ("star:200", "racks:100x200", "fig9"):
            nodes = topology.parse(text).with_server()
            addresses = [node.address for node in nodes.ends + nodes.switches]
            self.assertEqual(len(set(addresses)), len(addresses))

    def test_switch_of_the_last_rack_of_figure_9_is_the_root_with_the_server(self):
        found = topology.parse("fig9").with_server()
        root = found.switches[0]
        self.assertEqual([switch.parent for switch in found.switches], [None, root, root])
        self.assertEqual([host.switch.name for host in found.hosts], ["rack0"] * 2 + ["rack1"] * 2 + ["rack2"] * 2)
        self.assertEqual((root.name, found.server.switch), ("rack2", root))

    def test_impossible_shapes_are_refused(self):
        for text in ("ring:4", "star:", "star:1", "star:201", "racks:1x4", "racks:2x0", "racks:2x4x2", "4"):
            with self.assertRaises(ValueError, msg=text):
                topology.parse(text)


class Additions(unittest.TestCase):
    def test_packets_of_a_job_are_added_over_threads_and_switches(self):
        every = dict.fromkeys((*switch_report.ADDED, *switch_report.NOT_ADDED), 0)
        jobs = [{"job": job, "packets": {**every, "claimed": 2, "collisions": 3}} for job in ("a", "b")]
        reports = [{"shards": [{"jobs": jobs}, {"jobs": jobs[:1]}]}, {"shards": [{"jobs": jobs[:1]}]}]
        self.assertEqual(switch_report.additions_of_jobs(reports), {"a": [6, 9], "b": [2, 3]})


class Reports(unittest.TestCase):
    LINKS = network.Links(host_bps=500_000_000, uplink_bps=250_000_000, queue_bytes=1 << 20)

    def report_of(self, shape, jobs, seconds):
        """A report of `atp`, with the times of `seconds`, and `gloo`, with twice these times. Each row is a turn with
        one time per job."""
        nodes = shape if isinstance(shape, topology.Topology) else topology.parse(shape)
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

    def test_bytes_at_the_servers_link_are_counted_by_operation(self):
        nodes = topology.parse("fig9").with_server()
        traffic = self.report_of(nodes, 1, [[1]])["systems"]["atp"]["traffic_of_an_operation"]
        self.assertEqual(traffic["server_received_bytes"], 1_500_000)

    def test_bound_of_a_ring_has_a_member_for_each_rack_with_a_switch(self):
        work = measured.Work(bytes=1_000_000, operations=1, warmup=1, jobs=1)
        setting = report.Setting(topology.parse("racks:4x2"), self.LINKS, "packed", work, leaves=(0, 4))
        limit = report.limit_bps(setting.topology, self.LINKS)
        self.assertEqual(setting.bounds_of_rings(), {0: limit * 8 / 14, 4: limit * 4 / 6})


if __name__ == "__main__":
    unittest.main(verbosity=2)
