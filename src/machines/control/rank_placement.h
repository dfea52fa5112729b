// SPDX-License-Identifier: Apache-2.0
// Positions of the ranks in the tree of switches: which ranks share a unit. Every rank computes the same result.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "protocol/membership.h"

namespace atp::control {

// The switches between a rank and the server.
struct RankPath {
    std::uint32_t rank = 0;               // for errors
    std::vector<std::uint64_t> switches;  // ids, from the first to the last; at least one
    std::string rack{};                   // served by a switch in the path; empty: none
};

// Ranks with the same first switch and the same rack name form a unit. Exception: if the job has several units, each
// rank at the last switch without a rack name is direct, a unit of its own. Units and members are numbered in the order
// of ranks. Failure: mismatched if the paths end at different switches; unsupported if a path is longer than
// ATP_LEVELS, or if a rank below another switch names a rack; too_large if a bitmap has too few bits.
[[nodiscard]] Result<protocol::Membership> place_ranks(std::span<const RankPath> paths);

}  // namespace atp::control
