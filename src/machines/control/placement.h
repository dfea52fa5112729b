// SPDX-License-Identifier: Apache-2.0
// Where the ranks sit in the tree of switches: which of them share a unit, computed by every rank alike.
#pragma once

#include <span>

#include "base/result.h"
#include "control/announcement.h"
#include "protocol/membership.h"

namespace atp::control {

// Ranks under one switch are a unit; where there are several switches, those under the last one itself are direct, a
// unit each. Of those the ranks that name one rack are a unit instead. Units and their members are numbered in the
// order of ranks. Fails with mismatched where the paths do not end in one switch, and with too_large beyond what
// bitmaps hold.
[[nodiscard]] Result<protocol::Membership> place_ranks(std::span<const Announcement> announcements);

}  // namespace atp::control
