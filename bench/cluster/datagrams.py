# SPDX-License-Identifier: Apache-2.0
"""Numbered UDP datagrams from one node to another, a program at each end: what a link does to each of them.

usage: datagrams.py receive PORT                                     until SIGTERM; prints one JSON object
       datagrams.py send ADDRESS PORT COUNT BYTES [ECN [SEGMENTS]]   ECN: 0 none, 2 ECT(0); SEGMENTS: datagrams that the
                                                                     kernel gets as one packet, 1 to 40
"""

import collections
import json
import signal
import socket
import struct
import sys
import time

NUMBER = struct.Struct("!I")
ECN_BITS = 3
CE = 3
# Of the kernel's headers; Python has no names for them.
IP_RECVTOS = 13
SO_RCVBUFFORCE = 33
UDP_SEGMENT = 103
BUFFER_BYTES = 16 * 1024 * 1024
IDLE_SECONDS = 0.3
PAUSE_SECONDS = 0.001
DATAGRAMS_BEFORE_PAUSE = 40


def receive(port):
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    arrivals = collections.Counter()
    sizes = collections.Counter()
    marked = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        own.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        own.settimeout(IDLE_SECONDS)
        own.bind(("", port))
        while True:
            try:
                data, ancillary, _, _ = own.recvmsg(65_536, 64)
            except socket.timeout:
                if ended:
                    break
                continue
            arrivals[NUMBER.unpack_from(data)[0]] += 1
            sizes[len(data)] += 1
            marked += any(value[0] & ECN_BITS == CE for _, _, value in ancillary)
    highest, overtaken = -1, 0
    for number in arrivals:  # in the order of their first arrival
        overtaken += number < highest
        highest = max(highest, number)
    twice = sum(count - 1 for count in arrivals.values())
    print(
        json.dumps(
            {"arrived": sorted(arrivals), "repeated": twice, "marked": marked, "overtaken": overtaken, "sizes": sizes}
        )
    )


def send(address, port, count, size, ecn=0, segments=1):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
        if segments > 1:
            own.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
        for first in range(0, count, segments):
            numbers = range(first, min(first + segments, count))
            own.sendto(b"".join(NUMBER.pack(number) + bytes(size - NUMBER.size) for number in numbers), (address, port))
            if first % DATAGRAMS_BEFORE_PAUSE == 0:
                time.sleep(PAUSE_SECONDS)  # the receiver needs the processor, too


def main(words):
    if len(words) == 2 and words[0] == "receive":
        receive(int(words[1]))
    elif 5 <= len(words) <= 7 and words[0] == "send":
        send(words[1], *map(int, words[2:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
