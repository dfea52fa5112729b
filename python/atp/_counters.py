# SPDX-License-Identifier: Apache-2.0
"""The counters of a rank."""

from dataclasses import dataclass


# tools/write_events writes the counters of a rank from src/events.toml.
@dataclass(frozen=True)
class RankCounters:
    """What a rank has done since its job formed. Bytes include the headers of Ethernet, IPv4 and UDP, 42 bytes for each
    datagram, so that you can compare them with the counters of an interface.
    """

    operations: int  # operations that this rank has called, without those that Gloo executes
    in_flight_us: int  # microseconds in which at least one operation was in flight
    waiting_us: int  # microseconds for which threads of the program waited for an operation
    copied_bytes: int  # bytes copied to or from the memory that ranks of a host share
    sent_datagrams: int  # datagrams sent
    sent_bytes: int  # bytes sent, headers included
    received_datagrams: int  # datagrams received
    received_bytes: int  # bytes received, headers included
    fragments: int  # fragments sent for the first time
    resent: int  # packets sent again
    float_fragments: int  # fragments sent as floats


# End of the written part.
