// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/counters.h"

namespace atp::comm {

// tools/write_events writes the counters of a rank from src/events.toml.
// What a rank has done since its job formed. Bytes include the headers of Ethernet, IPv4 and UDP, 42 bytes for each
// datagram, so that you can compare them with the counters of an interface.
struct RankCounters {
    std::uint64_t operations = 0;          // operations that this rank has called, without those that Gloo executes
    std::uint64_t in_flight_us = 0;        // microseconds in which at least one operation was in flight
    std::uint64_t waiting_us = 0;          // microseconds for which threads of the program waited for an operation
    std::uint64_t copied_bytes = 0;        // bytes copied to or from the memory that ranks of a host share
    std::uint64_t sent_datagrams = 0;      // datagrams sent
    std::uint64_t sent_bytes = 0;          // bytes sent, headers included
    std::uint64_t received_datagrams = 0;  // datagrams received
    std::uint64_t received_bytes = 0;      // bytes received, headers included
    std::uint64_t fragments = 0;           // fragments sent for the first time
    std::uint64_t resent = 0;              // packets sent again
    std::uint64_t float_fragments = 0;     // fragments sent as floats
};

inline constexpr std::array rank_fields{
    counter<&RankCounters::operations>("operations"),
    counter<&RankCounters::in_flight_us>("in_flight_us"),
    counter<&RankCounters::waiting_us>("waiting_us"),
    counter<&RankCounters::copied_bytes>("copied_bytes"),
    counter<&RankCounters::sent_datagrams>("sent_datagrams"),
    counter<&RankCounters::sent_bytes>("sent_bytes"),
    counter<&RankCounters::received_datagrams>("received_datagrams"),
    counter<&RankCounters::received_bytes>("received_bytes"),
    counter<&RankCounters::fragments>("fragments"),
    counter<&RankCounters::resent>("resent"),
    counter<&RankCounters::float_fragments>("float_fragments"),
};
// End of the written part.

}  // namespace atp::comm
