// SPDX-License-Identifier: Apache-2.0
// What each rank announces to all other ranks before they form a communicator, and what rank 0 decides for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/control.h"

namespace atp::control {

struct Announcement {
    std::vector<wire::PathSwitch> path;  // from this rank's switch to the last switch
    std::uint32_t lanes = 0;             // that fit a packet on the path from this rank to its switch
    std::string terms;                   // the options that must be equal on all ranks, with their names
    std::string rack;                    // of this rank; empty: none
    std::vector<std::string> servers;    // by channel: the address at which this rank can host its server
    bool hosts_switch = false;           // the process of this rank runs the first switch of `path`
};

struct Decision {
    std::uint32_t job = 0;
    std::uint64_t token = 0;
};

[[nodiscard]] std::string to_text(const Announcement& announcement);
[[nodiscard]] Result<Announcement> announcement_from(std::string_view text, std::uint32_t rank);
[[nodiscard]] std::string to_text(const Decision& decision);
[[nodiscard]] Result<Decision> decision_from(std::string_view text);

}  // namespace atp::control
