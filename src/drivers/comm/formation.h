// SPDX-License-Identifier: Apache-2.0
// How ranks form a communicator: they gather facts and open sockets. From the facts of all ranks, control::JobPlanner
// makes the same plan on each. docs/protocol.md#rendezvous is normative.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/channel_driver.h"
#include "comm/host_formation.h"
#include "comm/options.h"
#include "net/transport.h"
#include "store/rendezvous.h"
#include "switchd/node.h"
#include "wire/control.h"

namespace atp::comm {

// Names under which ranks meet in the store. After `facts`, only ranks that need a round take part.
inline constexpr std::string_view round_facts = "facts";      // of all ranks
inline constexpr std::string_view round_shared = "shared";    // if some ranks expect to share memory
inline constexpr std::string_view round_switch = "switch";    // if rank 0 starts one: its address
inline constexpr std::string_view round_servers = "servers";  // if hosts serve the sums
inline constexpr std::string_view round_reached = "reached";  // likewise
inline constexpr std::string_view round_plan = "plan";        // for ranks that share memory on several hosts
// All names, for Rendezvous::give_up().
[[nodiscard]] std::span<const std::string_view> formation_rounds();

struct Formed {
    wire::JobPlan plan;
    std::string layout;                                       // for the log
    std::vector<std::unique_ptr<net::Transport>> sockets;     // one per channel plan
    std::vector<ChannelPlan> channels;                        // one per channel, then one per gather channel, if any
    std::vector<std::unique_ptr<switchd::SwitchNode>> nodes;  // which this rank runs for the job
};

// Before a rank uses the network: what its options do not name yet, rank 0 names.
[[nodiscard]] Result<void> prepare_network(store::Rendezvous& rendezvous, const wire::RankFacts& first,
                                           Options& options, Time deadline);

// Called by the ranks that speak for their hosts. Waits for all of them up to the deadline. The error names the rank
// or the switch that is missing or disagrees.
[[nodiscard]] Result<Formed> find_each_other(store::Rendezvous& rendezvous, const Options& options,
                                             const Meeting& meeting, Time deadline);

}  // namespace atp::comm
