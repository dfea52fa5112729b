#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what verdict.py accepts as naming the cause, and the table of rows. usage: verdict_test.py"""

import dataclasses
import sys
import unittest

sys.dont_write_bytecode = True
import random_rows  # noqa: E402
import rows as table  # noqa: E402
from job import faults, topology  # noqa: E402
from verdict import Reading, faults_of, outcome_of, ranks_named  # noqa: E402


class NamedRanks(unittest.TestCase):
    def test_lists_and_ranges_are_read(self):
        for text, named in (
            ("rank 2 left", {2}),
            ("ranks 0, 1, 2, 3 left", {0, 1, 2, 3}),
            ("ranks 1 and 3 left, rank 7 is slow", {1, 3, 7}),
            ("ranks 0-2, 5 left", {0, 1, 2, 5}),
            ("ranks 4 to 6 left", {4, 5, 6}),
            ("all_reduce rank 1: timed out after 3.0 s: rank 12 at 10.77.0.12:4790", {1, 12}),
            ("nothing was heard from the switch at 10.77.0.1:4790 for 10 s", set()),
        ):
            self.assertEqual(ranks_named(text), named, text)


class Judgements(unittest.TestCase):
    CAUSE = table.rank(2, "MTU")

    def test_cause_alone_is_accepted(self):
        self.assertEqual(faults_of(Reading(0, "rank 2: the MTU is 1000"), self.CAUSE), [])

    def test_each_other_reading_is_refused(self):
        for reading, problem in (
            (Reading(0, None), "reads nothing"),
            (Reading(0, "rank 2 left"), "does not say /MTU/"),
            (Reading(0, "the MTU is 1000"), "does not name rank 2"),
            (Reading(0, "ranks 2, 3: the MTU is 1000"), "names rank 3, which is innocent"),
            (Reading(0, "rank 2: the MTU is 1000", 1.0, "has a wrong sum"), "has a wrong sum"),
        ):
            self.assertEqual(faults_of(reading, self.CAUSE), [problem], reading)

    def test_error_without_a_fault_is_refused(self):
        self.assertEqual(faults_of(Reading(0, None), None), [])
        self.assertEqual(faults_of(Reading(0, "rank 2 left"), None), ["reads an error, but nothing is wrong"])

    def test_address_of_a_leaf_is_not_that_of_its_hosts(self):
        cause = table.switch(table.LEAF_1)
        self.assertEqual(faults_of(Reading(0, "leaf 10.77.2.1:4790 is gone"), cause), [])
        self.assertNotEqual(faults_of(Reading(0, "10.77.2.10 is gone"), cause), [])


class Outcomes(unittest.TestCase):
    ROW = table.Row("row", "star:4", table.Kill("rank2"), table.rank(2), (0, 1))
    KNOWN = dataclasses.replace(ROW, today="all ranks read nothing")
    RIGHT = (Reading(0, "rank 2 left"), Reading(1, "rank 2 left"))
    HALF = (Reading(0, "rank 2 left"), Reading(1, None))
    WRONG_SUM = (Reading(0, "rank 2 left"), Reading(1, None, None, "has a wrong sum"))

    def test_one_wrong_reading_fails_a_row(self):
        self.assertEqual(outcome_of(self.ROW, self.RIGHT), "holds")
        self.assertEqual(outcome_of(self.ROW, self.HALF), "fails")

    def test_row_that_begins_to_hold_must_be_unmarked(self):
        self.assertEqual(outcome_of(self.KNOWN, self.HALF), "expected to fail")
        self.assertEqual(outcome_of(self.KNOWN, self.RIGHT), "unexpected pass")

    def test_wrong_sum_is_never_expected(self):
        for row in (self.ROW, self.KNOWN):
            self.assertEqual(outcome_of(row, self.WRONG_SUM), "fails")

    def test_wrong_sum_of_a_rank_that_is_not_judged_fails(self):
        stopped = Reading(2, None, None, "has a wrong sum")
        self.assertEqual(outcome_of(self.ROW, (*self.RIGHT, stopped)), "fails")


class Rows(unittest.TestCase):
    def test_names_are_unique(self):
        names = [row.name for row in table.ROWS]
        self.assertEqual(len(set(names)), len(names))

    def test_seed_draws_the_same_row_again(self):
        names = [random_rows.name_of(3, number) for number in range(50)]
        self.assertEqual([random_rows.row_of(name) for name in names], [random_rows.row_of(name) for name in names])
        self.assertGreater(len({type(random_rows.row_of(name).fault) for name in names}), 3)
        self.assertIsNone(random_rows.row_of("rank_killed"))

    def test_faults_and_ranks_exist_in_the_shape(self):
        for row in (*table.ROWS, *(random_rows.row_of(random_rows.name_of(1, number)) for number in range(500))):
            shape = topology.parse(row.shape)
            processes = {f"rank{number}" for number in range(len(shape.hosts))} | {node.name for node in shape.switches}
            self.assertLessEqual(set(row.reads), set(range(len(shape.hosts))), row.name)
            if isinstance(row.fault, (table.Kill, table.Stop, table.Pause)):
                self.assertIn(row.fault.process, processes, row.name)
            if isinstance(row.fault, table.Link):
                faults.ends_of(shape, [faults.parse(text) for text in row.fault.faults])
            if isinstance(row.fault, table.Mtu):
                self.assertIn(row.fault.host, {host.name for host in shape.hosts}, row.name)

    def test_killed_and_stopped_ranks_read_nothing(self):
        ended = {f"rank{number}": number for number in table.ALL}
        for row in table.ROWS:
            if isinstance(row.fault, (table.Kill, table.Stop)):
                self.assertNotIn(ended.get(row.fault.process), row.reads, row.name)

    def test_pauses_are_shorter_than_the_hold_time(self):
        pauses = [row.fault.seconds for row in table.ROWS if isinstance(row.fault, table.Pause)]
        self.assertLess(max(pauses), table.HOLD_SECONDS)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
