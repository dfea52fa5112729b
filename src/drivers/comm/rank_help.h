// SPDX-License-Identifier: Apache-2.0
// What each counter of a rank counts, in the order of its table.
#pragma once

#include <array>
#include <string_view>

#include "comm/rank_counters.h"

namespace atp::comm {

// tools/write_events writes the help of rank counters from src/events.toml.
// clang-format off
constexpr std::array<std::string_view, rank_fields.size()> rank_help{
    "Operations that this rank has called, without those that Gloo executes",
    "Microseconds in which at least one operation was in flight",
    "Microseconds for which threads of the program waited for an operation. If it grows: other ranks are late, or the"
    " program has nothing to compute meanwhile",
    "Bytes copied to or from the memory that ranks of a host share",
    "Datagrams sent",
    "Bytes sent, headers included",
    "Datagrams received",
    "Bytes received, headers included",
    "Fragments sent for the first time",
    "Packets sent again. If it grows: packets are lost, or numbers fit no integer at their scale",
    "Fragments sent as floats. If it grows: numbers fit no integer at their scale",
};
// clang-format on
// End of the written part.

}  // namespace atp::comm
