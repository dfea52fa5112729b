// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/time.h"

namespace atp::control {

// Times of joining and silence, for ranks, switches and agents. docs/protocol.md#joining is normative.
struct Timing {
    // Intervals of JOIN and HELLO.
    Duration hurry = std::chrono::milliseconds(50);  // until the tree is ready, or until the parent answers
    Duration refresh = std::chrono::seconds(1);      // afterwards

    // Silence after which a peer is taken for lost.
    Duration hold = std::chrono::seconds(10);        // a member without a JOIN, a parent without a JOINED
    Duration parent_hold = std::chrono::seconds(5);  // a parent without a WELCOME
    // A rank whose tree was ready and is not any more. A missing member may return: if a switch restarts, all members
    // join again.
    Duration lost_grace = std::chrono::seconds(3);

    // Reception of a multicast group.
    Duration group_memory = std::chrono::milliseconds(3500);  // how long one JOINED to the group counts as reception
    Duration first_group_pause = std::chrono::seconds(1);     // for which a group that lost results is not used
    Duration longest_group_pause = std::chrono::seconds(32);  // the pause doubles up to this
};

inline constexpr Timing timing{};

}  // namespace atp::control
