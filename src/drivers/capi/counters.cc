// SPDX-License-Identifier: Apache-2.0
#include "capi/counters.h"

#include <algorithm>
#include <cstring>

namespace atp::capi {
namespace {

// tools/write_events writes the copies of a rank's counters from src/events.toml.
atp_counters counters_from(const comm::RankCounters& counted) {
    atp_counters known{};
    known.operations = counted.operations;
    known.in_flight_us = counted.in_flight_us;
    known.waiting_us = counted.waiting_us;
    known.copied_bytes = counted.copied_bytes;
    known.sent_datagrams = counted.sent_datagrams;
    known.sent_bytes = counted.sent_bytes;
    known.received_datagrams = counted.received_datagrams;
    known.received_bytes = counted.received_bytes;
    known.fragments = counted.fragments;
    known.resent = counted.resent;
    known.float_fragments = counted.float_fragments;
    return known;
}
// End of the written part.

}  // namespace

void write_counters(const comm::RankCounters& counted, atp_counters* to, std::size_t struct_size) {
    atp_counters known = counters_from(counted);
    known.struct_size = struct_size;
    std::memset(to, 0, struct_size);
    std::memcpy(to, &known, std::min(struct_size, sizeof known));
}

}  // namespace atp::capi
