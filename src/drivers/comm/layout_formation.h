// SPDX-License-Identifier: Apache-2.0
// How ranks agree where their sums are added: by one switch above all of them, or by servers on their hosts, behind the
// switches of racks or hosts that take turns as one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/options.h"
#include "comm/root_servers.h"
#include "comm/switch_reach.h"
#include "control/layout.h"
#include "store/rendezvous.h"
#include "switchd/node.h"

namespace atp::comm {

// How this rank takes part in a share of the channels.
struct ShareOfRank {
    wire::Address switch_address;              // where it joins
    std::optional<std::uint16_t> switch_rank;  // whose process runs that switch
    wire::Address root;                        // of the job; no family: the parent of each switch
    std::optional<std::uint16_t> root_rank;
    bool in_path = false;  // a switch in the path adds before the one at `switch_address`
};

struct FormedLayout {
    control::Layout layout;
    std::vector<ShareOfRank> shares;     // channel c uses share c mod n
    SwitchReach reach;                   // of the switch that this rank names, or of the first server
    std::uint32_t lanes = 0;             // of the longest packet on all paths from this rank
    std::vector<wire::PathSwitch> path;  // the switches of this rank, whose tables limit the job; its own one first
    std::vector<std::unique_ptr<switchd::SwitchNode>> nodes;  // which this rank runs for the job
    std::string text;                                         // for the log

    [[nodiscard]] bool has_servers() const { return !layout.shares.empty(); }
};

[[nodiscard]] Result<FormedLayout> agree_on_layout(store::Rendezvous& rendezvous, const Options& options,
                                                   Time deadline);

}  // namespace atp::comm
