// SPDX-License-Identifier: Apache-2.0
// int16 and int8 lanes: half and a quarter of the bytes of int32 lanes, for elements whose scaled values fit. In a
// packet and in the memory of the switch a lane is two's complement, big-endian, at any alignment.
//
// `wire` is lanes of 4 bytes as in lanes32_worker.h. The buffers of one call must not overlap. The functions have no
// state, so any thread may call them. Every instruction set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

struct NarrowLanes {
    std::size_t bytes;  // of a lane

    // Of a worker: computes values[i] * scale as a float32 and writes it rounded to an integer, ties to even. Returns
    // false if a product is NaN, infinite, or at least half above the highest lane in magnitude: the lanes are then
    // invalid. No lane is the lowest one, because some targets reserve both extremes for sums that left the range.
    bool (*quantise)(const float* values, std::size_t count, float scale, std::byte* lanes);
    // float32(lane * inverse_scale), each step rounded to nearest even.
    void (*to_floats)(const std::byte* lanes, std::size_t count, double inverse_scale, std::byte* wire);

    // Of a switch: sums[i] += lanes[i]. A sum beyond the range saturates; returns true if any sum of this call did.
    bool (*add)(const std::byte* lanes, std::size_t count, std::byte* sums);

    // Of a server. from_sums() returns false if a sum exceeds the range: the lanes are then invalid.
    void (*assign_sums)(const std::byte* lanes, std::size_t count, std::int64_t* sums);
    void (*add_sums)(const std::byte* lanes, std::size_t count, std::int64_t* sums);
    bool (*from_sums)(const std::int64_t* sums, std::size_t count, std::byte* lanes);
};

[[nodiscard]] const NarrowLanes& int16_lanes();
[[nodiscard]] const NarrowLanes& int8_lanes();

}  // namespace atp::numeric
