// SPDX-License-Identifier: Apache-2.0
// Positions of the ranks in the tree of switches: which ranks share a unit. Every rank computes the same result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "control/announcement.h"
#include "control/layout.h"
#include "protocol/membership.h"

namespace atp::control {

// Ranks with the same first switch and the same rack name form a unit. Exception: if the job has several units, each
// rank at the last switch without a rack name is direct, a unit of its own. Units and members are numbered in the order
// of ranks. Failure: mismatched if the paths end at different switches; unsupported if a path is longer than
// ATP_LEVELS, or if a rank below another switch names a rack; too_large if a bitmap has too few bits.
[[nodiscard]] Result<protocol::Membership> place_ranks(std::span<const Announcement> announcements);

// For one share of a layout with servers on hosts: with the switches that are between each rank and the server.
[[nodiscard]] Result<protocol::Membership> place_ranks_of(const LayoutShare& share,
                                                          std::span<const Announcement> announcements);

// The first rank whose process runs the switch with this id; nullopt: none.
[[nodiscard]] std::optional<std::uint16_t> host_of_switch(std::span<const Announcement> announcements,
                                                          std::uint64_t id);

}  // namespace atp::control
