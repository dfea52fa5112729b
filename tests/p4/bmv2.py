# SPDX-License-Identifier: Apache-2.0
"""The reference switch of P4, BMv2 (simple_switch), for tests: its compiler, a running switch with two ports, and the part
of its Thrift interface that tests need.

The tools are found on PATH or in the folders of ATP_P4_TOOLS. Exit status 77: a tool is missing, or this machine cannot
create network namespaces.
"""

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
PATIENCE_S = 60
SOURCES = Path(__file__).resolve().parents[2] / "p4"
PROGRAM = SOURCES / "atp.v1model.p4"
PIPELINE = SOURCES / "pipeline.v1model.p4"
STANDARD = "standard"  # service of tables, registers and counters


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def find(name):
    """The path of the tool, or None."""
    folders = os.environ.get("ATP_P4_TOOLS", "")
    return shutil.which(name, path=os.pathsep.join([folders, os.environ.get("PATH", "")]))


def tool(name):
    """The path of the tool. Without it, the test is skipped."""
    found = find(name)
    if not found:
        skip(f"{name} is neither on PATH nor in ATP_P4_TOOLS")
    return found


def in_own_network():
    """Starts this program again in a network namespace of its own, unless it runs in one."""
    if os.environ.get("ATP_P4_NETWORK") == "own":
        return
    probe = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True)
    if probe.returncode != 0:
        skip("this machine cannot create network namespaces")
    environment = {**os.environ, "ATP_P4_NETWORK": "own"}
    os.execvpe("unshare", ["unshare", "--net", sys.executable, "-B", *sys.argv], environment)


def compiled(folder, *options, program=PROGRAM):
    """Compiles the program; a warning is an error."""
    target = Path(folder, "atp.json")
    words = [
        tool("p4c-bm2-ss"),
        "--Werror",
        "--Wdisable=unused",
        *(f"-D{option}" for option in options),
        str(program),
        "-o",
        str(target),
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0 or done.stderr.strip():
        raise AssertionError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return target


class Thrift:
    """Calls of a Thrift server: binary protocol, multiplexed services."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.stream = self.socket.makefile("rb")
        self.calls = 0

    def close(self):
        self.stream.close()
        self.socket.close()

    def call(self, service, function, *arguments):
        """`arguments`: pairs of a writer below and a value, in the order of the fields. Returns the result or None."""
        name = f"{service}:{function}".encode()
        self.calls += 1
        message = struct.pack(">II", 0x80010001, len(name)) + name + struct.pack(">I", self.calls)
        for number, (kind, value) in enumerate(arguments, 1):
            message += struct.pack(">bh", kind.code, number) + kind.write(value)
        self.socket.sendall(message + b"\0")
        return self.reply(function)

    def reply(self, function):
        kind, size = struct.unpack(">II", self.take(8))
        self.take(size + 4)  # name and number of the call
        result, failed = None, kind & 0xFF != 2
        while (code := self.take(1)[0]) != 0:
            number = struct.unpack(">h", self.take(2))[0]
            value = self.value(code)
            failed = failed or number != 0
            result = value
        if failed:
            raise OSError(f"{function}: {result}")
        return result

    def take(self, count):
        found = self.stream.read(count)
        if len(found) != count:
            raise OSError("the switch closed the connection")
        return found

    def value(self, code):
        numbers = {2: ">b", 3: ">b", 4: ">d", 6: ">h", 8: ">i", 10: ">q"}
        if code in numbers:
            return struct.unpack(numbers[code], self.take(struct.calcsize(numbers[code])))[0]
        if code == 11:
            return self.take(struct.unpack(">I", self.take(4))[0])
        if code == 15:
            each, count = struct.unpack(">bI", self.take(5))
            return [self.value(each) for _ in range(count)]
        fields = {}
        while (inner := self.take(1)[0]) != 0:
            number = struct.unpack(">h", self.take(2))[0]
            fields[number] = self.value(inner)
        return fields


class Flag:
    code = 2
    write = staticmethod(lambda value: struct.pack(">?", value))


class I32:
    code = 8
    write = staticmethod(lambda value: struct.pack(">i", value))


class I64:
    code = 10
    write = staticmethod(lambda value: struct.pack(">Q", value & (2**64 - 1)))


class Text:
    code = 11
    write = staticmethod(
        lambda value: struct.pack(">I", len(value)) + (value if isinstance(value, bytes) else value.encode())
    )


class Words:
    """A list of bytes: the arguments of an action."""

    code = 15
    write = staticmethod(lambda values: struct.pack(">bI", 11, len(values)) + b"".join(map(Text.write, values)))


class Keys:
    """A list of exact keys of a table."""

    code = 15

    @staticmethod
    def write(values):
        keys = (struct.pack(">bhi", 8, 1, 0) + struct.pack(">bhbh", 12, 2, 11, 1) + Text.write(key) + b"\0\0"
                for key in values)  # fmt: skip
        return struct.pack(">bI", 12, len(values)) + b"".join(keys)


class Nothing:
    """A struct without fields."""

    code = 12
    write = staticmethod(lambda value: b"\0")


class Switch:
    """A running switch with the ports 0 and 1. Frames enter and leave it by the sockets of these ports.

    `program`: a compiled program.
    """

    def __init__(self, program):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self.ports = [self.add_port(port) for port in range(2)]
        words = [tool("simple_switch"), "--thrift-port", "9090", "-i", "0@in0", "-i", "1@in1", str(program)]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log)
        self.thrift = self.connected()

    @staticmethod
    def add_port(port):
        subprocess.run(["ip", "link", "add", f"in{port}", "type", "veth", "peer", "name", f"out{port}"], check=True)
        for device in (f"in{port}", f"out{port}"):
            # Nothing but the frames of the test: no addresses of IPv6, and no segments that the kernel merges.
            Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6").write_text("1")
            subprocess.run(["ip", "link", "set", device, "up"], check=True)
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        found.bind((f"out{port}", 0))
        found.settimeout(PATIENCE_S)
        return found

    def connected(self):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return Thrift(9090)
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.log.seek(0)
                    raise OSError(f"simple_switch did not start: {self.log.read()}") from None
                time.sleep(0.05)

    def close(self):
        self.thrift.close()
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        for port in self.ports:
            port.close()
        subprocess.run(["ip", "link", "del", "in0"], check=True)
        subprocess.run(["ip", "link", "del", "in1"], check=True)
        self.log.close()

    def write_register(self, name, index, value):
        self.thrift.call(
            STANDARD, "bm_register_write", (I32, 0), (Text, f"AtpIngress.{name}"), (I32, index), (I64, value)
        )

    def read_register(self, name, index):
        found = self.thrift.call(STANDARD, "bm_register_read", (I32, 0), (Text, f"AtpIngress.{name}"), (I32, index))
        return found & (2**64 - 1)

    def count(self, name, index):
        """The packets that a counter counted."""
        found = self.thrift.call(STANDARD, "bm_counter_read", (I32, 0), (Text, f"AtpIngress.{name}"), (I32, index))
        return found[2]  # its first field has the bytes

    def clear_entries(self, table):
        self.thrift.call(STANDARD, "bm_mt_clear_entries", (I32, 0), (Text, f"AtpIngress.{table}"), (Flag, False))

    def add_entry(self, table, keys, action, *arguments):
        return self.thrift.call(STANDARD, "bm_mt_add_entry", (I32, 0), (Text, f"AtpIngress.{table}"), (Keys, keys),
                                (Text, f"AtpIngress.{action}"), (Words, list(arguments)), (Nothing, None))  # fmt: skip
