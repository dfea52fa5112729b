# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that sums until it is ended or reads an error. It calls libatp, as a program in C does.

Prints one JSON object per event: `formed`; `working` after 10 sums; `beat` after every fifth further sum; `differs`
before it makes another call than the other ranks; `error` with what it read; `wrong sum`. `at` is CLOCK_MONOTONIC in
seconds. Exit status: 0 ended by a signal, 1 it read an error, 3 a sum was wrong.
"""

import argparse
import array
import ctypes
import json
import signal
import sys
import time

SUMS_BEFORE_WORKING = 10
SUMS_OF_A_BEAT = 5
PAUSE_SECONDS = 0.02
STORE_SECONDS = 5.0  # rank 0 keeps the store for ranks that still read in it why the job did not form
SUM = 0
ELEMENTS = {"float32": ("f", 0), "int32": ("i", 4)}  # type code of `array`, enum atp_element
EXIT_READ_AN_ERROR = 1
EXIT_WRONG_SUM = 3


class Error(ctypes.Structure):
    _fields_ = [
        ("operation", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("elapsed_ms", ctypes.c_double),
        ("peer", ctypes.c_char * 128),
        ("text", ctypes.c_char * 896),
        ("reserved", ctypes.c_char * 128),
    ]


class Options(ctypes.Structure):
    """The first fields of struct atp_options. `struct_size` tells the library to use its defaults for the others."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("switch_address", ctypes.c_char_p),
        ("channels", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
        ("audit", ctypes.c_int32),
        ("scale", ctypes.c_double),
        ("reserved_1", ctypes.c_int32),
        ("server", ctypes.c_int32),
        ("dedicated_servers", ctypes.c_void_p),
        ("dedicated_server_count", ctypes.c_size_t),
        ("join_timeout_ms", ctypes.c_int64),
        ("timeout_ms", ctypes.c_int64),
    ]


class Failed(Exception):
    """The library reported an error."""


def say(event, **more):
    print(json.dumps({"event": event, "at": time.monotonic(), **more}), flush=True)


class Library:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.atp_operation_name.restype = ctypes.c_char_p
        self._library.atp_reason_name.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        """Calls a function that ends with `struct atp_error*`. Raises Failed with the line that a program prints."""
        error = Error()
        if getattr(self._library, name)(*arguments, ctypes.byref(error)) == 0:
            return
        operation = self._library.atp_operation_name(error.operation).decode()
        peer = f" {error.peer.decode()}" if error.peer else ""
        reason = self._library.atp_reason_name(error.reason).decode()
        elapsed = f" after {error.elapsed_ms / 1000:.1f} s" if error.elapsed_ms else ""
        raise Failed(f"{operation}{peer}: {reason}{elapsed}: {error.text.decode(errors='replace')}")

    def options(self, words):
        options = Options()
        self._library.atp_options_init(ctypes.byref(options), ctypes.c_size_t(ctypes.sizeof(options)))
        options.switch_address = words.switch.encode() if words.switch else None
        options.channels = words.channels
        options.scale = words.scale
        options.join_timeout_ms = round(words.join_timeout * 1000)
        options.timeout_ms = round(words.timeout * 1000)
        return options

    def destroy(self, kind, handle):
        getattr(self._library, f"atp_{kind}_destroy")(handle)


class Rank:
    def __init__(self, library, words):
        self._library = library
        self._words = words
        self._communicator = ctypes.c_void_p()

    def run(self):
        """Ends with Failed, or by a signal."""
        words = self._words
        server, store = ctypes.c_void_p(), ctypes.c_void_p()
        if words.rank == 0:
            self._library.call("atp_store_server_start", words.store.encode(), ctypes.byref(server))
        timeout_ms = ctypes.c_int64(round(words.join_timeout * 1000))
        self._library.call("atp_store_connect", words.store.encode(), timeout_ms, ctypes.byref(store))
        try:
            self._form(store)
        except Failed as error:
            say("error", text=str(error))
            if server:
                time.sleep(STORE_SECONDS)
            sys.exit(EXIT_READ_AN_ERROR)
        say("formed")
        try:
            self._sum_for_ever()
        finally:
            self._library.destroy("communicator", self._communicator)

    def _form(self, store):
        words = self._words
        options = self._library.options(words)
        numbers = (ctypes.c_uint32(words.rank), ctypes.c_uint32(words.world))
        self._library.call(
            "atp_communicator_create", store, *numbers, ctypes.byref(options), ctypes.byref(self._communicator)
        )

    def _sum_for_ever(self):
        usual = ("all_reduce", self._words.elements, "float32")
        number = 0
        while True:
            call = usual
            if number == self._words.differ_at:
                call = (self._words.call, self._words.other_elements, self._words.type)
                if call != usual:
                    say("differs")
            self._do(*call)
            number += 1
            if number == SUMS_BEFORE_WORKING:
                say("working")
            elif number > SUMS_BEFORE_WORKING and number % SUMS_OF_A_BEAT == 0:
                say("beat", sums=number)
            time.sleep(self._words.pause)

    def _do(self, call, elements, kind):
        code, element = ELEMENTS[kind]
        own = array.array(code, [self._words.rank + 1]) * elements
        at_own, size = ctypes.c_void_p(own.buffer_info()[0]), ctypes.c_size_t(elements)
        no_timeout = ctypes.c_int64(0)  # that of the options
        if call == "broadcast":
            root = ctypes.c_uint32(0)
            nbytes = ctypes.c_size_t(elements * own.itemsize)
            self._library.call("atp_broadcast", self._communicator, at_own, nbytes, root, no_timeout)
            return
        self._library.call("atp_all_reduce", self._communicator, at_own, at_own, size, element, SUM, no_timeout)
        world = self._words.world
        if own != array.array(code, [world * (world + 1) // 2]) * elements:
            say("wrong sum")
            sys.exit(EXIT_WRONG_SUM)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="path of libatp.so")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--switch", help="address of the switch, host:port [no switch]")
    parser.add_argument("--store", required=True, help="address at which rank 0 serves the store, host:port")
    parser.add_argument("--elements", type=int, default=20_000, help="elements of each sum [20000]")
    parser.add_argument("--pause", type=float, default=PAUSE_SECONDS, help="after each sum, in seconds [0.02]")
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1e6)
    parser.add_argument("--timeout", type=float, default=300.0, help="of an operation, in seconds [300]")
    parser.add_argument("--join-timeout", type=float, default=30.0, help="in seconds [30]")
    parser.add_argument("--differ-at", type=int, default=40, help="number of the sum that may differ, from 0 [40]")
    parser.add_argument(
        "--call", choices=("all_reduce", "broadcast"), default="all_reduce", help="the call that differs"
    )
    parser.add_argument("--other-elements", type=int, default=20_000, help="its elements")
    parser.add_argument("--type", choices=tuple(ELEMENTS), default="float32", help="its type")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    words = parse()
    try:
        Rank(Library(words.library), words).run()
    except Failed as error:
        say("error", text=str(error))
        sys.exit(EXIT_READ_AN_ERROR)


if __name__ == "__main__":
    main()
