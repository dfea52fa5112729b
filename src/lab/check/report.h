// SPDX-License-Identifier: Apache-2.0
// Result of an exploration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/action.h"
#include "check/state_archive.h"

namespace atp::check {

struct TraceStep {
    Action::Kind kind = Action::Kind::deliver;
    std::uint16_t node = 0;  // for an action without a packet: the node of the action
    Bytes packet;            // for an action with a packet: destination node, then the bytes of the packet
    std::string text;        // one line for users
};

struct Violation {
    std::string what;
    std::vector<TraceStep> trace;  // from the initial state; the shortest, not counting the healed run at its end
    // Index of the first step without faults; the length of `trace` if there is no healed run.
    std::size_t healed_from = 0;
};

struct Report {
    std::string configuration;
    std::uint64_t states = 0;
    std::uint64_t transitions = 0;
    std::uint64_t healed_runs = 0;
    std::uint32_t depth = 0;
    bool exhausted = false;  // every reachable state was visited
    double seconds = 0;
    std::optional<Violation> violation;

    // Probability that two states have the same 64-bit fingerprint, so that one was not visited: about n^2 / 2^65.
    [[nodiscard]] double missed_probability() const {
        return static_cast<double>(states) * static_cast<double>(states) / 36893488147419103232.0;
    }
};

struct Progress {
    std::uint64_t states = 0;
    std::uint32_t depth = 0;
    std::uint64_t frontier = 0;
};

struct Limits {
    std::uint64_t max_states = 200'000'000;
    std::function<void(const Progress&)> progress;  // called from time to time; may be empty
};

}  // namespace atp::check
