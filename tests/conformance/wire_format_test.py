#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the committed vectors with tests/support/wire_format.py, and counts them for their page."""

import re
import unittest

from vector_rows import FOLDER, bytes_of, lanes_of, message_of, rows_of, wire_format


class Packets(unittest.TestCase):
    def test_each_valid_packet_is_read_and_written_to_the_same_bytes(self) -> None:
        rows = [row for row in rows_of("wire.json") if "header" in row]
        self.assertGreaterEqual(len(rows), 25)
        for row in rows:
            with self.subTest(row["description"]):
                header = wire_format.read_header(bytes_of(row))
                self.assertEqual({name: header[name] for name in row["header"]}, row["header"])
                self.assertEqual((header["lanes_form"] << 4) + header["lanes_type"], header["lanes"])
                self.assertEqual(wire_format.write_header(**header) + lanes_of(row), bytes_of(row))

    def test_omitted_fields_are_zero_and_unknown_fields_are_refused(self) -> None:
        header = wire_format.read_header(wire_format.write_header(type=wire_format.Type.PROBE, token=7))
        self.assertEqual({name for name, value in header.items() if value}, {"version", "type", "token"})
        with self.assertRaisesRegex(KeyError, "no field tokens"):
            wire_format.write_header(tokens=7)


class Messages(unittest.TestCase):
    def test_each_valid_message_is_read_and_written_to_the_same_bytes(self) -> None:
        rows = [row for row in rows_of("control.json") if row["accepted"]]
        kinds = {*wire_format.Message.__members__, *wire_format.StoreMessage.__members__}
        self.assertEqual({row["fields"]["type"] for row in rows}, kinds)
        for row in rows:
            with self.subTest(row["description"]):
                kind, fields = wire_format.read_message(bytes_of(row))
                self.assertEqual((kind, fields), message_of(row["fields"]))
                # A `?` replaces a byte of a text that no sender should write.
                if "?" not in fields.get("text", ""):
                    self.assertEqual(wire_format.write_message(kind, len(bytes_of(row)), **fields), bytes_of(row))

    def test_each_truncation_is_refused(self) -> None:
        for row in rows_of("control.json"):
            if row["accepted"] and row["fields"]["type"] != "STATS":
                kind, fields = wire_format.read_message(bytes_of(row))
                length = len(wire_format.write_message(kind, **fields))
                with self.subTest(row["description"]), self.assertRaises(ValueError):
                    wire_format.read_message(bytes_of(row)[: length - 1])


class Page(unittest.TestCase):
    def test_it_counts_the_rows_of_each_file(self) -> None:
        page = (FOLDER.parents[1] / "docs" / "spec" / "vectors.md").read_text()
        said = {name: int(rows) for name, rows in re.findall(r"^\| \[(\w+\.json)\]\S* \| (\d+) \|", page, re.MULTILINE)}
        self.assertEqual(said, {path.name: len(rows_of(path.name)) for path in FOLDER.glob("*.json")})


if __name__ == "__main__":
    unittest.main()
