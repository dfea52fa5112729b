// SPDX-License-Identifier: Apache-2.0
// What all members of a job of SwitchML, its workers and its switch, must agree on before the first packet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "switchml/packet.h"

namespace atp::switchml {

enum class Mode : std::uint8_t {
    lossless,         // Algorithms 1 and 2: for networks that neither lose nor duplicate
    faithful,         // Algorithms 3 and 4 as printed: a bit alone tells two phases of a slot apart (hazard 37)
    compares_offsets  // the same, and the switch knows which fragment each copy of a slot is for
};

// A job is one stream of fragments, numbered by their offset: in packets, from tensor to tensor, over the job's whole
// life. Fragment q belongs to slot q mod s, whose two copies take turns.
struct JobConfig {
    std::uint8_t job = 0;  // as its switch knows it
    std::uint8_t workers = 2;
    std::uint8_t slots_log2 = 7;                  // s = 2^slots_log2: how many packets a worker has in flight (§3.6)
    std::uint16_t lanes = switchml::paper_lanes;  // of every packet
    bool halves = false;                          // they travel as float16
    Mode mode = Mode::compares_offsets;
    std::uint32_t first_offset = 0;

    [[nodiscard]] constexpr std::uint32_t slots() const { return 1U << slots_log2; }
    [[nodiscard]] constexpr std::uint16_t slot(std::uint32_t offset) const {
        return static_cast<std::uint16_t>(offset & (slots() - 1U));
    }
    // Which of the slot's copies: 0 or 1. Without recovery there is one.
    [[nodiscard]] constexpr unsigned version(std::uint32_t offset) const {
        return mode == Mode::lossless ? 0 : offset >> slots_log2 & 1U;
    }
    [[nodiscard]] constexpr std::size_t packet_bytes() const {
        using namespace atp::switchml;
        return header_bytes + lanes * (halves ? half_lane_bytes : int32_lane_bytes);
    }
    // Whether it can be said in a packet at all.
    [[nodiscard]] constexpr bool valid() const {
        using namespace atp::switchml;
        return workers >= 1 && workers <= max_workers && slots_log2 <= max_slots_log2 && lanes >= 1 &&
               packet_bytes() <= header_bytes + max_lane_bytes;
    }

    bool operator==(const JobConfig&) const = default;

    static constexpr unsigned max_slots_log2 = 16;  // a slot is 16 bits of a packet
};

}  // namespace atp::switchml
