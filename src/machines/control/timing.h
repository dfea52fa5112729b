// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/time.h"

namespace atp::control {

// Times of joining and silence, for ranks, switches and agents. docs/spec/joining.md is normative.
struct Timing {
    // Intervals of JOIN and HELLO.
    Duration hurry = std::chrono::milliseconds(50);  // until the tree is ready, or until the parent answers
    Duration refresh = std::chrono::seconds(1);      // HELLO to the parent, and JOINED to a group

    // Silence after which a peer is taken for lost. A switch states its own hold time in JOINED, and its members use
    // it.
    Duration hold = std::chrono::seconds(3);         // a member without a JOIN, a parent without a JOINED
    Duration parent_hold = std::chrono::seconds(5);  // a parent without a WELCOME
    // A ready member sends so many JOINs in the hold time. If its timers are punctual, all of them but one must be lost
    // in a row before it is taken for lost.
    int joins_of_hold = 12;
    // A member whose JOIN is late by more is asked, with a JOINED every `hurry`: the host of an ended process reports
    // that no process has the port.
    Duration late = std::chrono::milliseconds(100);
    // Such reports must continue for so long, or no question is answered for so long.
    Duration error_persists = std::chrono::milliseconds(400);
    Duration error_unanswered = std::chrono::milliseconds(600);
    // A longer delay of a machine's own timers means that its process did not run.
    Duration pause_slack = std::chrono::milliseconds(250);

    // For which a rank waits for the statements of the others, after their operations differed.
    Duration statements = std::chrono::milliseconds(500);

    // A rank whose tree was ready and is not any more. A missing member may return: if a switch restarts, all members
    // join again.
    Duration lost_grace = std::chrono::seconds(3);
    // The same if a member left in order: it may have read its last result before this rank did.
    Duration left_grace = std::chrono::milliseconds(700);

    // A packet that is the last one of its fragment by less is not late: even equal members send in turns.
    Duration notable_lateness = std::chrono::milliseconds(1);
    // A rank names the same slow member again after this time.
    Duration slow_named = std::chrono::minutes(5);

    // Reception of a multicast group.
    Duration group_memory = std::chrono::milliseconds(3500);  // how long one JOINED to the group counts as reception
    Duration first_group_pause = std::chrono::seconds(1);     // for which a group that lost results is not used
    Duration longest_group_pause = std::chrono::seconds(32);  // the pause doubles up to this
};

inline constexpr Timing timing{};

// Between two JOINs of a ready member.
[[nodiscard]] constexpr Duration refresh_of(Duration hold) { return hold / timing.joins_of_hold; }

}  // namespace atp::control
