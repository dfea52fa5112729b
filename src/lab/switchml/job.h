// SPDX-License-Identifier: Apache-2.0
// Parameters on which all workers of a SwitchML job and its switch must agree before the first packet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "switchml/packet.h"

namespace atp::switchml {

enum class Mode : std::uint8_t {
    lossless,  // Algorithms 1 and 2: for networks without loss or duplication
    // Algorithms 3 and 4 as printed: a single bit distinguishes two phases of a slot (H37, docs/spec/hazards.md#h37).
    faithful,
    compares_offsets  // like faithful, and the switch stores the offset of each copy of a slot
};

// A job is one stream of fragments. The offset of a fragment is its number in the stream; numbers continue from tensor
// to tensor until the job ends. Fragment q uses slot q mod s. The fragments of a slot use its two copies in turn.
struct JobConfig {
    std::uint8_t job = 0;  // number of the job at its switch
    std::uint8_t workers = 2;
    std::uint8_t slots_log2 = 7;                  // s = 2^slots_log2 packets in flight per worker (§3.6)
    std::uint16_t lanes = switchml::paper_lanes;  // per packet
    bool halves = false;                          // packets carry float16 lanes
    Mode mode = Mode::compares_offsets;
    std::uint32_t first_offset = 0;

    [[nodiscard]] constexpr std::uint32_t slots() const { return 1U << slots_log2; }
    [[nodiscard]] constexpr std::uint16_t slot(std::uint32_t offset) const {
        return static_cast<std::uint16_t>(offset & (slots() - 1U));
    }
    // The copy of the slot, 0 or 1. Always 0 in mode lossless, which has one copy.
    [[nodiscard]] constexpr unsigned version(std::uint32_t offset) const {
        return mode == Mode::lossless ? 0 : offset >> slots_log2 & 1U;
    }
    [[nodiscard]] constexpr std::size_t packet_bytes() const {
        using namespace atp::switchml;
        return header_bytes + lanes * (halves ? half_lane_bytes : int32_lane_bytes);
    }
    // Whether the fields fit the packet format.
    [[nodiscard]] constexpr bool valid() const {
        using namespace atp::switchml;
        return workers >= 1 && workers <= max_workers && slots_log2 <= max_slots_log2 && lanes >= 1 &&
               packet_bytes() <= header_bytes + max_lane_bytes;
    }

    bool operator==(const JobConfig&) const = default;

    static constexpr unsigned max_slots_log2 = 16;  // a packet has 16 bits for the slot
};

}  // namespace atp::switchml
