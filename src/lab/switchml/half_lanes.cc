// SPDX-License-Identifier: Apache-2.0
#include "switchml/half_lanes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "numeric/half.h"
#include "numeric/lanes32_worker.h"

namespace atp::switchml {
namespace {

constexpr float lanes_per_half = 0x1p15F;
constexpr std::size_t half_bytes = 2;
constexpr std::size_t lane_bytes = 4;
constexpr std::uint16_t half_magnitude_mask = 0x7FFF;
constexpr std::uint16_t half_infinity = 0x7C00;

// A block fits the first-level cache.
constexpr std::size_t block_lanes = 256;
using Halves = std::array<std::uint16_t, block_lanes>;
using Floats = std::array<float, block_lanes>;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "halves are swapped unconditionally");

void swap_all(std::span<std::uint16_t> halves) {
    for (std::uint16_t& half : halves) half = __builtin_bswap16(half);
}

}  // namespace

bool lanes_to_halves(const std::byte* wire, std::size_t count, std::byte* halves) {
    Floats floats;
    Halves block;
    bool fits = true;
    for (std::size_t done = 0; done < count; done += block_lanes) {
        const std::size_t now = std::min(block_lanes, count - done);
        numeric::dequantise(wire + done * lane_bytes, now, 1 / lanes_per_half, floats.data());
        numeric::floats_to_halves(floats.data(), now, block.data());
        const std::span used = std::span(block).first(now);
        fits &= std::ranges::none_of(used,
                                     [](std::uint16_t half) { return (half & half_magnitude_mask) >= half_infinity; });
        swap_all(used);
        std::memcpy(halves + done * half_bytes, block.data(), now * half_bytes);
    }
    return fits;
}

bool halves_to_lanes(const std::byte* halves, std::size_t count, std::byte* wire) {
    Floats floats;
    Halves block;
    bool fits = true;
    for (std::size_t done = 0; done < count; done += block_lanes) {
        const std::size_t now = std::min(block_lanes, count - done);
        std::memcpy(block.data(), halves + done * half_bytes, now * half_bytes);
        swap_all(std::span(block).first(now));
        numeric::halves_to_floats(block.data(), now, floats.data());
        fits &= numeric::quantise(floats.data(), now, lanes_per_half, wire + done * lane_bytes);
    }
    return fits;
}

}  // namespace atp::switchml
