// SPDX-License-Identifier: Apache-2.0
// The rounds of a formation: names under which ranks leave messages in a store. docs/spec/formation.md#procedure is
// normative.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace atp::control {

// After `facts`, only ranks that need a round take part.
inline constexpr std::string_view round_facts = "facts";      // of all ranks
inline constexpr std::string_view round_shared = "shared";    // if some ranks expect to share memory
inline constexpr std::string_view round_switch = "switch";    // if rank 0 starts one: its address
inline constexpr std::string_view round_servers = "servers";  // if hosts serve the sums
inline constexpr std::string_view round_reached = "reached";  // if hosts serve the sums
inline constexpr std::string_view round_plan = "plan";        // for ranks that share memory on several hosts
// Of the ranks that speak for their hosts: what they see of the network, in up to five attempts.
inline constexpr std::array<std::string_view, 5> rounds_network{"network-0", "network-1", "network-2", "network-3",
                                                                "network-4"};
// Where a rank that gives up says so.
inline constexpr std::array formation_rounds{round_facts,       round_shared,      round_switch,      rounds_network[0],
                                             rounds_network[1], rounds_network[2], rounds_network[3], rounds_network[4],
                                             round_servers,     round_reached,     round_plan};

// The attempts to find a common root. A switch notices within a second that its parent changed, and until then ranks
// may see different trees.
//
// Ownership: a value. Calling order: name(), then look_again() if no plan came of that round, and so on. Threads: none.
// Failure: none.
class NetworkAttempts {
  public:
    static constexpr Duration pause = std::chrono::milliseconds(400);  // before the ranks ask their switches again

    [[nodiscard]] std::string_view name() const { return rounds_network[attempt_]; }
    // All ranks read the same messages, so all of them look again or none does.
    [[nodiscard]] bool look_again(const Error& error) {
        return error.reason == Reason::mismatched && ++attempt_ < rounds_network.size();
    }

  private:
    std::size_t attempt_ = 0;
};

}  // namespace atp::control
