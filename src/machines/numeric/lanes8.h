// SPDX-License-Identifier: Apache-2.0
// int8 lanes: a quarter of the bytes of int32 lanes. In a packet and in the memory of the switch a lane has one byte,
// two's complement. Switches and servers add them; no worker sends them yet.
//
// The buffers of one call must not overlap. The functions have no state, so any thread may call them. Every instruction
// set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

inline constexpr std::size_t int8_lane_bytes = 1;

// sums[i] += int8_lanes[i]. A sum beyond 8 bits saturates; returns true if any sum of this call did.
[[nodiscard]] bool int8_add(const std::byte* int8_lanes, std::size_t count, std::byte* sums);

// Sums of a server.
void sums_assign_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums);
void sums_add_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums);
// Returns false if a sum exceeds 8 bits: the lanes are then invalid.
[[nodiscard]] bool sums_to_int8(const std::int64_t* sums, std::size_t count, std::byte* int8_lanes);

}  // namespace atp::numeric
