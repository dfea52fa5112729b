// SPDX-License-Identifier: Apache-2.0
// Vectors of slices: which aggregator the index of a packet is while the slice of its job changes, and how a table is
// divided. The numbers are from docs/spec/switch.md#slices, not from the code.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "control/table_slices.h"

namespace atp::conformance {

// One step with the entry of a job: exactly one of the members.
struct SliceStep {
    struct Packet {
        std::uint16_t channel = 0;
        std::uint32_t seq = 0;
        std::uint32_t index = 0;
        std::optional<std::uint32_t> place{};  // nullopt: the packet has no aggregator
    };
    std::optional<atp_range> slice{};  // the job gets it, or its change begins
    bool ends_change = false;
    std::optional<Packet> packet{};  // a gradient of the job
};

struct SliceVector {
    std::string description;
    std::uint32_t aggregators = 0;
    // Of an entry. Empty: the row divides a table.
    std::uint8_t window_log2 = 0;
    std::vector<SliceStep> steps{};
    std::vector<control::SliceClaim> claims{};
    bool powers_of_two = false;
    std::vector<atp_range> slices{};
};

[[nodiscard]] std::vector<SliceVector> slice_vectors();
[[nodiscard]] nlohmann::ordered_json to_json(const SliceVector& vector);

}  // namespace atp::conformance
