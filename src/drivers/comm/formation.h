// SPDX-License-Identifier: Apache-2.0
// How ranks form a communicator. Each rank examines the path to its switch and announces the result to the other ranks.
// Rank 0 draws the job's number and token. From these, every rank computes the same plans.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/channel_driver.h"
#include "comm/communicator.h"
#include "comm/options.h"
#include "net/transport.h"
#include "store/rendezvous.h"
#include "switchd/node.h"

namespace atp::comm {

struct Formed {
    Formation formation;
    std::vector<std::unique_ptr<net::Transport>> sockets;     // one per plan
    std::vector<ChannelPlan> plans;                           // one per channel, then one per gather channel, if any
    std::vector<std::unique_ptr<switchd::SwitchNode>> nodes;  // which this rank runs for the job
    std::string layout;                                       // for the log
};

// Waits for all ranks up to the deadline. The error names the rank or the switch that is missing or disagrees.
// `ranks_of_workers`: for whom each rank of this rendezvous speaks; empty: for itself.
[[nodiscard]] Result<Formed> find_each_other(store::Rendezvous& rendezvous, const Options& options,
                                             std::span<const std::vector<std::uint16_t>> ranks_of_workers,
                                             Time deadline);
// Tells the ranks of a host what the one that speaks for it has formed, and waits for all ranks of the job.
[[nodiscard]] Result<Formation> spread_formation(store::Rendezvous& rendezvous, std::string_view name,
                                                 const Formation& formed, std::uint32_t speaker, Time deadline);

// Names under which ranks meet in the store, for Rendezvous::give_up().
[[nodiscard]] std::span<const std::string_view> names_of_formation();
[[nodiscard]] std::span<const std::string_view> names_of_host_level();
[[nodiscard]] std::span<const std::string_view> names_of_members();  // three to find hosts, one for the formation
[[nodiscard]] std::span<const std::string_view> names_of_members_and_network();
[[nodiscard]] std::span<const std::string_view> names_of_network();  // the first one is that of the layout
[[nodiscard]] std::span<const std::string_view> names_of_roots();    // some of those of the network

// `terms`: by rank, the options that must be equal. nullopt: they are.
[[nodiscard]] std::optional<Failure> dissent_about_terms(std::span<const std::string> terms);

}  // namespace atp::comm
