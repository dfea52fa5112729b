// SPDX-License-Identifier: Apache-2.0
// Mixers for hashes and seeds. mix() is part of the protocol: docs/spec/packet.md#aggregators-and-slots.
#pragma once

#include <cstdint>

namespace atp {

// Wellons' lowbias32: a change of any input bit changes about half of the output bits.
[[nodiscard]] constexpr std::uint32_t mix(std::uint32_t x) {
    x ^= x >> 16U;
    x *= 0x7feb352dU;
    x ^= x >> 15U;
    x *= 0x846ca68bU;
    x ^= x >> 16U;
    return x;
}

// One step of SplitMix64, for seeds and for values that are functions of their coordinates.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
}

[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t a, std::uint64_t b) { return mix64(mix64(a) ^ b); }

}  // namespace atp
