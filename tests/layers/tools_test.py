#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows each checker of tools/ a small tree without violations, and trees with one.

usage: tools_test.py C_COMPILER
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "cc"
TOOLS = Path(__file__).resolve().parents[2] / "tools"


class ToolTest(unittest.TestCase):
    tool = ""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def copy(self, *names: str) -> None:
        """Copies files and folders of the repository."""
        for name in names:
            if (TOOLS.parent / name).is_dir():
                shutil.copytree(TOOLS.parent / name, self.root / name, ignore=shutil.ignore_patterns("*.pyc", "*.so"))
            else:
                self.write(name, (TOOLS.parent / name).read_text())

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def replace(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        self.assertEqual(text.count(old), 1, old)
        self.write(name, text.replace(old, new))

    def run_tool(self, *arguments: object) -> subprocess.CompletedProcess:
        command = [sys.executable, "-B", TOOLS / self.tool, "--root", self.root, *arguments]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)

    def expect(self, status: int, *texts: str, arguments: tuple = ()) -> None:
        result = self.run_tool(*arguments)
        printed = result.stdout + result.stderr
        self.assertEqual(result.returncode, status, printed)
        for text in texts:
            self.assertIn(text, printed)

    def compile(self, name: str, code: str, *options: str) -> None:
        path = self.root / "build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        source = self.root / "source.c"
        source.write_text(code)
        subprocess.run([COMPILER, *options, "-o", path, source], check=True)

    def archive(self, name: str, code: str) -> None:
        self.compile("object.o", code, "-c")
        path = self.root / "build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["ar", "rc", path, self.root / "build" / "object.o"], check=True)


class Written:
    """The tests of each program that writes parts of files. They work on copies of what it reads and writes."""

    reads: tuple[str, ...] = ()
    edits: dict[str, tuple[str, str]] = {}  # of the written part of each file

    def setUp(self) -> None:
        super().setUp()
        self.copy(*self.reads, *self.edits)

    def test_files_that_the_definition_makes_pass(self) -> None:
        self.expect(0, "no violations", arguments=("--check",))

    def test_an_edited_file_is_reported_and_restored(self) -> None:
        before = {name: self.read(name) for name in self.edits}
        for name, (old, new) in self.edits.items():
            self.replace(name, old, new)
        found = [f"{name}: differs from {' or '.join(self.reads)}: run tools/{self.tool}" for name in self.edits]
        self.expect(1, *found, f": {len(found)} violation", arguments=("--check",))
        self.expect(0)
        self.assertEqual({name: self.read(name) for name in self.edits}, before)

    def test_a_file_without_its_comments_is_an_error(self) -> None:
        name = next(name for name in self.edits if "End of the written part." in self.read(name))
        self.write(name, self.read(name).replace("End of the written part.", ""))
        self.expect(2, f"{name} needs the line", arguments=("--check",))


class CheckLayers(ToolTest):
    tool = "check_layers"

    def setUp(self) -> None:
        super().setUp()
        self.write("src/machines/wire/CMakeLists.txt", "atp_module(wire SET machine SOURCES packet.cc)\n")
        self.write("src/machines/wire/packet.h", "#pragma once\n")
        self.write("src/drivers/net/CMakeLists.txt", "atp_module(net SET driver SOURCES socket.cc USES wire)\n")
        self.write("src/drivers/net/socket.h", '#pragma once\n#include "wire/packet.h"\n')
        self.write("src/drivers/net/socket.cc", "#include <net/if.h>\n")

    def add_module(self, uses: str, source: str, declaration: str = "") -> None:
        cmake = f"set(used {uses})\natp_module(comm{declaration} SET driver SOURCES comm.cc USES ${{used}})\n"
        self.write("src/drivers/comm/CMakeLists.txt", cmake)
        self.write("src/drivers/comm/comm.cc", source)

    def test_declared_modules_pass(self) -> None:
        self.add_module("net wire", '#include "net/socket.h"\n#include "wire/packet.h"  // and\n')
        self.expect(0, "no violations")

    def test_module_declared_only_by_another_is_reported(self) -> None:
        self.add_module("net", '#include "net/socket.h"\n#include "wire/packet.h"\n')
        self.expect(1, "src/drivers/comm/comm.cc:2: wire/packet.h is of module wire, which comm does not declare")

    def test_laboratory_that_holds_a_machine_is_reported(self) -> None:
        self.write("src/lab/sim/CMakeLists.txt", "atp_module(sim SET lab SOURCES sim.cc)\n")
        self.write("src/lab/sim/sim.cc", "const protocol::Server* found;\nstd::optional<protocol::Worker> worker;\n")
        self.expect(1, "src/lab/sim/sim.cc:2: holds a protocol::Worker: use a process of lab/host")

    def test_unused_module_is_reported(self) -> None:
        self.add_module("net wire", '#include "net/socket.h"\n// #include "wire/packet.h"\n')
        self.expect(1, "src/drivers/comm/CMakeLists.txt:1: comm uses wire, but no source includes a header of it")

    def test_angle_brackets_and_parent_folders_are_reported(self) -> None:
        self.add_module("wire", '#include <wire/packet.h>\n#include "../net/socket.h"\n')
        self.expect(1, "comm.cc:1: <wire/packet.h> is a header of module wire", 'comm.cc:2: "../net/socket.h" leaves')

    def test_variant_must_declare_the_modules_it_includes(self) -> None:
        self.add_module("wire", '#include "wire/packet.h"\n')
        with (self.root / "src/drivers/comm/CMakeLists.txt").open("a") as file:
            file.write("atp_module(comm VARIANT _breakable SET lab SOURCES comm.cc USES)\n")
        self.expect(1, "comm_breakable does not declare wire")

    def test_headers_of_programs_have_two_folders(self) -> None:
        self.write("src/apps/common/CMakeLists.txt", "atp_module(apps_common SET app SOURCES flags.cc)\n")
        self.write("src/apps/common/flags.h", "")
        self.write("src/apps/atp/CMakeLists.txt", "atp_module(apps_atp SET app SOURCES main.cc)\n")
        self.write("src/apps/atp/main.cc", '#include "apps/common/flags.h"\n')
        self.expect(1, "src/apps/atp/main.cc:1: apps/common/flags.h is of module apps_common")

    def test_library_for_pytorch_is_a_module(self) -> None:
        cmake = "add_library(atp_torch MODULE csrc/a.cc)\natp_use_headers(atp_torch net)\n"
        self.write("python/CMakeLists.txt", cmake)
        self.write("python/csrc/a.cc", '#include "net/socket.h"\n#include "wire/packet.h"\n')
        self.expect(1, "python/csrc/a.cc:2: wire/packet.h is of module wire, which python does not declare")

    def test_folder_without_modules_is_an_error(self) -> None:
        self.root = self.root / "src" / "machines" / "wire"
        self.expect(2, "declares no module")


class CheckSizes(ToolTest):
    tool = "check_sizes"

    def write_lines(self, name: str, lines: int) -> None:
        self.write(name, "\n" * lines)

    def test_source_of_the_longest_length_passes(self) -> None:
        self.write_lines("src/lab/sim/fabric.cc", 450)
        self.write_lines("tests/net/long_test.cc", 900)
        self.expect(0, "no violations")

    def test_one_line_more_is_reported(self) -> None:
        for name in ("src/a.cc", "include/atp/a.hpp", "python/atp/a.py", "tests/net/support/a.h", "tools/a"):
            with self.subTest(name=name):
                self.write_lines(name, 451)
                self.expect(1, f"{name}:451: 451 lines, at most 450 are allowed", "1 violation")
                (self.root / name).unlink()

    def test_listed_source_may_be_as_long_as_listed(self) -> None:
        self.write_lines("src/a.cc", 460)
        self.write("tools/size_exceptions.txt", "# comment\nsrc/a.cc 460\n")
        self.expect(0)
        self.write_lines("src/a.cc", 461)
        self.expect(1, "src/a.cc:461: 461 lines, but tools/size_exceptions.txt allows 460")
        self.expect(1, "allows 460", arguments=("--shrink",))

    def test_too_high_entry_is_reported_and_lowered(self) -> None:
        self.write_lines("src/a.cc", 455)
        self.write_lines("src/b.cc", 450)
        self.write("tools/size_exceptions.txt", "# comment\nsrc/a.cc 460\nsrc/b.cc 470\nsrc/c.cc 480\n")
        places = [f"tools/size_exceptions.txt:{line}: src/{name}.cc" for line, name in ((2, "a"), (3, "b"), (4, "c"))]
        self.expect(1, *places, "3 violations")
        self.expect(0, arguments=("--shrink",))
        self.assertEqual((self.root / "tools/size_exceptions.txt").read_text(), "# comment\nsrc/a.cc 455\n")

    def test_entry_without_a_number_is_an_error(self) -> None:
        self.write("tools/size_exceptions.txt", "src/a.cc many\n")
        self.expect(2, "size_exceptions.txt:1: an entry ends in a number")


class CheckTests(ToolTest):
    tool = "check_tests"

    def setUp(self) -> None:
        super().setUp()
        self.write("src/machines/protocol/worker.cc", "")
        self.write("tests/protocol/worker_test.cc", "")

    def test_source_with_a_test_of_its_name_passes(self) -> None:
        self.expect(0, "no violations")

    def test_source_without_a_test_is_reported(self) -> None:
        self.write("src/machines/wire/packet.cc", "")
        self.write("tests/wire/packets_test.cc", "")
        self.expect(1, "src/machines/wire/packet.cc:1: no test has the name packet_test.cc", "1 violation")

    def test_listed_source_passes_until_it_has_a_test(self) -> None:
        self.write("src/machines/wire/packet.cc", "")
        self.write("tools/test_exceptions.txt", "src/machines/wire/packet.cc a reason\n")
        self.expect(0)
        self.write("tests/wire/packet_test.cc", "")
        self.expect(1, "tools/test_exceptions.txt:1: src/machines/wire/packet.cc has a test: remove this entry")

    def test_entry_of_a_source_that_is_gone_is_reported(self) -> None:
        self.write("tools/test_exceptions.txt", "src/machines/wire/old.cc a reason\n")
        self.expect(1, "src/machines/wire/old.cc is no source of a machine")

    def test_folder_without_machines_is_an_error(self) -> None:
        self.root = self.root / "tests"
        self.expect(2, "has no source")


class CheckPurity(ToolTest):
    tool = "check_purity"

    def setUp(self) -> None:
        super().setUp()
        self.write("src/machines/wire/CMakeLists.txt", "atp_module(wire SET machine SOURCES packet.cc)\n")
        self.write("src/drivers/net/CMakeLists.txt", "atp_module(net SET driver SOURCES socket.cc USES wire)\n")

    def expect_of_import(self, symbol: str, status: int, *texts: str) -> None:
        archive = "src/machines/wire/libatp_wire.a"
        self.archive(archive, f'int f(void) __asm__("{symbol}");\nint decode(void) {{ return f(); }}\n')
        self.expect(status, *texts, arguments=(self.root / "build",))
        (self.root / "build" / archive).unlink()

    def test_pure_functions_pass(self) -> None:
        for symbol in ("memcmp", "inet_pton", "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base"):
            with self.subTest(symbol=symbol):
                self.expect_of_import(symbol, 0, "no violations")

    def test_each_impure_function_is_reported_with_its_reason(self) -> None:
        reasons = {
            "socket": "sockets",
            "__recv_chk": "sockets",
            "openat64": "files",
            "_ZNSt6chrono3_V212steady_clock3nowEv": "clocks",
            "clock_gettime": "clocks",
            "_ZNSt6thread4joinEv": "threads",
            "pthread_mutex_lock": "locks",
            "nanosleep": "waiting",
            "_ZNSt13random_device9_M_getvalEv": "randomness",
            "getenv": "the process",
        }
        for symbol, reason in reasons.items():
            with self.subTest(symbol=symbol):
                self.expect_of_import(symbol, 1, "libatp_wire.a(object.o): wire imports ", f"which belongs to {reason}")

    def test_unknown_functions_are_reported(self) -> None:
        for symbol in ("frobnicate", "_ZN3atp3net4sendEv"):
            with self.subTest(symbol=symbol):
                self.expect_of_import(symbol, 1, "which is not known to be pure")

    def test_listed_symbol_passes_until_it_is_no_longer_imported(self) -> None:
        self.write("tools/purity_exceptions.txt", "wire getenv not yet moved\n")
        self.expect_of_import("getenv", 0)
        self.expect_of_import("memcmp", 1, "purity_exceptions.txt:1: wire does not import getenv: remove this entry")

    def test_listed_symbol_without_a_reason_is_an_error(self) -> None:
        self.write("tools/purity_exceptions.txt", "wire getenv\n")
        self.expect_of_import("getenv", 1, "purity_exceptions.txt:1: wire getenv has no reason")

    def test_missing_archive_is_an_error(self) -> None:
        self.expect(2, "libatp_wire.a is missing: build atp_wire", arguments=(self.root / "build",))


class DrawMechanism(ToolTest):
    tool = "draw_mechanism.py"
    picture = "docs/images/fragment.svg"

    def test_an_edited_or_missing_picture_is_reported_and_drawn_again(self) -> None:
        self.write(self.picture, "<svg/>")
        self.expect(1, f"{self.picture}: differs from its data", "4 violations", arguments=("--check",))
        self.expect(0)
        self.expect(0, "no violations", arguments=("--check",))
        self.assertEqual((self.root / self.picture).read_text(), (TOOLS.parent / self.picture).read_text())


class WriteOptions(Written, ToolTest):
    tool = "write_options"
    table = "src/drivers/comm/option_table.cc"
    reads = (table,)
    edits = {
        "src/drivers/comm/options.h": ("    std::uint32_t channels", "    std::uint32_t streams"),
        "include/atp/options.h": ("    uint32_t channels;", "    uint32_t streams;"),
        "src/drivers/capi/option_fields.h": ('visit("channels"', 'visit("streams"'),
        "docs/reference/options.md": ("| `channels` | Independent", "| `streams` | Independent"),
        "python/atp/_options.py": ("    channels: int |", "    streams: int |"),
    }

    def setUp(self) -> None:
        super().setUp()
        self.copy("src/drivers/comm/option_table.h")

    def test_a_changed_row_changes_each_file(self) -> None:
        self.replace(self.table, "Independent streams of a rank", "Streams of a rank")
        files = [f"{name}: differs" for name in self.edits if "capi" not in name]
        self.expect(1, *files, "4 violations", arguments=("--check",))
        self.expect(0)
        self.expect(0, arguments=("--check",))
        self.assertIn("| Streams of a rank, each", self.read("docs/reference/options.md"))

    def test_each_interface_has_its_own_default(self) -> None:
        rows = {line.split("`")[1]: line.split(" | ") for line in self.page().splitlines() if line.startswith("| `")}
        self.assertEqual(rows["timeout"][5::2], ["the timeout of init_process_group, 30 minutes unless given", "300s",
                                                 "300,000 ms |"])  # fmt: skip
        self.assertEqual(rows["host_level"][6:8], ["`--network`", "true; the flag sets false"])

    def test_no_cell_leaves_its_reader_to_another_cell(self) -> None:
        self.assertNotRegex(self.page(), r"that of|the same as|likewise|as above")

    def page(self) -> str:
        return self.read("docs/reference/options.md").partition("writes this from")[2]

    def test_a_row_that_cannot_be_read_is_an_error(self) -> None:
        for old, new, problem in (
            (".least = 1,\n              .most = 64,", ".smallest = 1,", "unexpected '.smallest"),
            (".most = 64,", ".most = 8 * 8,", "unexpected '.most"),
            ("&Options::channels", "&Options::lanes", "the field of channels is lanes"),
            ('.c_field = "rack"', '.c_field = "rack_name"', "append new ones"),
        ):
            with self.subTest(problem=problem):
                before = self.read(self.table)
                self.replace(self.table, old, new)
                self.expect(2, problem, arguments=("--check",))
                self.write(self.table, before)


class WriteFaults(Written, ToolTest):
    tool = "write_faults"
    timing = "src/machines/control/timing.h"
    rows = "tests/faults/rows.py"
    page = "docs/operate/runbook.md"

    reads = (timing, rows)
    edits = {page: ("| a leaf is frozen, or its host is down |", "| a leaf is slow |")}

    def test_a_changed_time_changes_the_page(self) -> None:
        self.replace(self.timing, "left_grace = std::chrono::milliseconds(700)", "left_grace = std::chrono::seconds(2)")
        self.expect(1, f"{self.page}: differs from {self.timing}", arguments=("--check",))
        self.expect(0)
        self.expect(0, arguments=("--check",))
        self.assertIn("rank N left the job | | 2 s |", self.read(self.page))

    def test_faults_that_do_not_fit_are_an_error(self) -> None:
        for name, old, new, problem in (
            (self.rows, 'Row("leaf_stopped"', 'Row("leaf_slow"', "leaf_stopped is described twice, or is no row"),
            (self.rows, "ROWS = (\n", 'ROWS = (\n    Row("new", "star:4", Kill("sw"), switch(SWITCH), ALL),\n',
             "new has no row in tools/write_faults"),
            (self.rows, 'Row("mtu_lowered", "star:4", Mtu("h2"), rank(2, "MTU"), ALL, evidence=True)',
             'Row("mtu_lowered", "star:4", Mtu("h2"), rank(2, "MTU"), ALL)', "mtu_lowered must be named within"),
            (self.rows, 'Row("leaf_stopped", "racks:2x2", Stop("rack1"), switch(LEAF_1), ALL)',
             'Row("leaf_stopped", "racks:2x2", Stop("rack1"), switch(LEAF_1), ALL, causes={2: rank(2)})',
             "in leaf_stopped ranks read different causes"),
            (self.timing, "hold = std::chrono::seconds(3);         //", "hold = std::chrono::seconds(4);  //",
             "has a hold time of 3 s"),
            (self.timing, "Duration lost_grace", "Duration grace", "has no Duration lost_grace"),
        ):  # fmt: skip
            with self.subTest(problem=problem):
                before = self.read(name)
                self.replace(name, old, new)
                self.expect(2, problem, arguments=("--check",))
                self.write(name, before)


class CheckProduct(ToolTest):
    tool = "check_product"
    extension = "python/atp/lib/libatp_torch_2.13.so"
    files = ("bin/atp", "src/drivers/capi/libatp.so", extension)

    def setUp(self) -> None:
        super().setUp()
        self.write("src/machines/wire/CMakeLists.txt", "atp_module(wire SET machine SOURCES packet.cc)\n")
        self.write("src/lab/sim/CMakeLists.txt", "atp_module(sim SET lab SOURCES fabric.cc USES wire)\n")
        for file in self.files:
            self.write_program(file, [])

    def write_program(
        self, file: str, symbols: list, text: str = "  switch   Aggregate; check nothing", *more: str
    ) -> None:
        names = ["_ZN3atp4wire6decodeEv", *symbols]
        functions = [
            f'int f{i}(void) __asm__("{name}");\nint f{i}(void) {{ return 0; }}' for i, name in enumerate(names)
        ]
        main = f'#include <stdio.h>\nint main(void) {{ return puts("{text}") < 0; }}\n'
        self.compile(file, "\n".join([*functions, main]), *([] if file == "bin/atp" else ["-shared", "-fPIC"]), *more)

    def expect_of_build(self, status: int, *texts: str, more: tuple = ()) -> None:
        self.expect(status, *texts, arguments=(self.root / "build", *more))

    def test_product_without_laboratory_passes(self) -> None:
        self.expect_of_build(0, "no violations")

    def test_namespace_of_the_laboratory_is_reported_in_each_file(self) -> None:
        for file in self.files:
            with self.subTest(file=file):
                self.write_program(file, ["_ZN3atp3sim3runEv"])
                self.expect_of_build(1, f"{file}: holds atp::sim of the laboratory, such as atp::sim::run():", "1 viol")
                self.write_program(file, [])

    def test_text_about_a_protocol_of_the_laboratory_is_reported(self) -> None:
        self.write_program("bin/atp", [], "  stats   Show slots of SwitchML")
        self.expect_of_build(1, "bin/atp: holds switchml of the laboratory", "1 viol")

    def test_further_file_is_checked_too(self) -> None:
        self.write_program("site/libatp.so", ["_ZN3atp3sim3runEv"])
        further = self.root / "build" / "site" / "libatp.so"
        self.expect_of_build(1, "site/libatp.so: holds atp::sim", more=("--also", further))
        further.unlink()
        self.expect_of_build(2, "libatp.so is missing", more=("--also", further))

    def test_injected_faults_are_reported(self) -> None:
        for symbol, part in (("_ZN3atp8protocol9breakable6Server3runEv", "breakable"),
                             ("atp_active_break", "atp_active_break")):  # fmt: skip
            with self.subTest(symbol=symbol):
                self.write_program("bin/atp", [symbol])
                self.expect_of_build(1, f"bin/atp: holds {part} of the laboratory")

    def test_command_of_the_laboratory_is_reported(self) -> None:
        self.write_program("bin/atp", [], "Subcommands:\\n  simulate   Run machines")
        self.expect_of_build(1, "bin/atp --help:2: names simulate, a command of the laboratory")

    def test_listed_namespace_passes_until_no_file_holds_it(self) -> None:
        self.write("tools/product_exceptions.txt", "atp::sim not yet done\n")
        self.expect_of_build(1, "product_exceptions.txt:1: no file of the product holds atp::sim: remove this entry")
        self.write_program("bin/atp", ["_ZN3atp3sim3runEv"])
        self.expect_of_build(0)

    def test_stripped_or_missing_file_is_an_error(self) -> None:
        self.write_program("bin/atp", [], "", "-s")
        self.expect_of_build(2, "bin/atp has no symbols of atp")
        self.write_program("bin/atp", [])
        (self.root / "build" / self.extension).unlink()
        self.expect_of_build(2, "libatp_torch_*.so is missing")
        self.expect_of_build(0, more=("--no-torch",))


class CheckWords(ToolTest):
    tool = "check_words"

    def setUp(self) -> None:
        super().setUp()
        self.write("src/machines/wire/CMakeLists.txt", "atp_module(wire SET machine SOURCES packet.cc)\n")
        self.write(
            "src/machines/wire/packet.h", "class Packet final : public Base {\n    enum class Kind { data };\n};\n"
        )
        self.write("src/drivers/net/CMakeLists.txt", "atp_module(net SET driver SOURCES socket.cc USES wire)\n")
        self.write("src/lab/sim/CMakeLists.txt", "atp_module(sim SET lab SOURCES fabric.cc USES wire)\n")
        self.write(
            "tools/forbidden_words.txt", "# comment\nparcel all packet\nfate product outcome\nfloor_of allowed\n"
        )

    def test_distinct_types_and_allowed_words_pass(self) -> None:
        self.write(
            "src/drivers/net/socket.cc", "// parcel\nstruct Socket { enum class Kind { udp }; };\nstruct Packet;\n"
        )
        self.write("src/lab/sim/fabric.h", 'struct Packet {};\nauto fate = "parcel";\n#include <parcel.h>\n')
        self.expect(0, "no violations")

    def test_type_of_two_modules_is_reported(self) -> None:
        self.write("src/drivers/net/socket.cc", "\nstruct alignas(64) Packet : Base<int> {\n};\n")
        self.expect(1, "Packet is a type of module net too (src/drivers/net/socket.cc:2): rename it", "1 violation")

    def test_listed_type_passes_until_it_is_renamed(self) -> None:
        self.write("tools/type_exceptions.txt", "Packet net wire\n")
        self.write("src/drivers/net/socket.cc", "enum Packet : int { a };\n")
        self.expect(0)
        self.write("src/drivers/net/socket.cc", "enum SentPacket : int { a };\n")
        self.expect(1, "tools/type_exceptions.txt:1: Packet is no longer a type of two modules: remove this entry")
        self.expect(0, arguments=("--shrink",))
        self.assertEqual(self.read("tools/type_exceptions.txt"), "")

    def test_listed_type_in_a_third_module_is_reported(self) -> None:
        self.write("tools/type_exceptions.txt", "Packet net wire\n")
        self.write("src/drivers/net/socket.cc", "struct Packet {};\n")
        self.write("src/drivers/comm/CMakeLists.txt", "atp_module(comm SET driver SOURCES a.cc USES wire)\n")
        self.write("src/drivers/comm/a.cc", "struct Packet {};\n")
        self.expect(1, "src/drivers/comm/a.cc:1: Packet is a type of module", "1 violation")

    def test_forbidden_word_in_an_identifier_is_reported(self) -> None:
        for identifier in ("parcel", "open_parcel_", "ParcelOf", "ATP_PARCEL_BYTES", "fate"):
            with self.subTest(identifier=identifier):
                self.write("src/drivers/net/socket.cc", f"\nint {identifier};\n")
                self.expect(1, f"src/drivers/net/socket.cc:2: {identifier} has the word", "1 violation")

    def test_forbidden_word_in_python_is_reported(self) -> None:
        self.write("python/atp/a.py", '"""parcel"""\nopen_parcel = 1  # parcel\n')
        self.expect(1, 'python/atp/a.py:2: open_parcel has the word "parcel": write packet', "1 violation")

    def test_listed_words_pass_up_to_their_number(self) -> None:
        self.write("tools/word_exceptions.txt", "parcel net 2\n")
        self.write("src/drivers/net/socket.cc", "int parcel, parcel_of, packet;\nint more = parcel;\n")
        self.expect(0)
        self.write("src/drivers/net/socket.cc", "int parcel, parcel_of, first_parcel;\n")
        self.expect(1, "socket.cc:1: first_parcel has the word", "(3 identifiers of net have it, at most 2 may)")
        self.write("src/drivers/net/socket.cc", "int parcel;\n")
        self.expect(1, 'word_exceptions.txt:1: 1 identifiers of net have the word "parcel", fewer than 2')
        self.expect(0, arguments=("--shrink",))
        self.assertEqual(self.read("tools/word_exceptions.txt"), "parcel net 1\n")

    def test_idiom_in_a_comment_is_reported(self) -> None:
        self.write("src/drivers/net/socket.cc", 'auto likewise = "as above";  // it is sent as above-ground cable\n')
        self.expect(1, 'socket.cc:1: a comment has "as above": write what it refers to', "1 violation")
        self.write("src/drivers/net/socket.cc", 'auto text = "likewise";\n/* It travels\n * as a byte,\n   alike. */\n')
        self.expect(1, 'socket.cc:2: a comment has "travels * as": write is sent as', ':4: a comment has "alike"')
        self.write("src/drivers/net/socket.cc", "int as_above;  // above\n")
        self.write("python/atp/a.py", 'likewise = "alike"\nfirst = 1  # computed anew\n')
        self.expect(1, 'python/atp/a.py:2: a comment has "anew": write update, again', "1 violation")

    def test_missing_list_of_words_is_an_error(self) -> None:
        (self.root / "tools/forbidden_words.txt").unlink()
        self.expect(2, "names no word")


if __name__ == "__main__":
    unittest.main()
