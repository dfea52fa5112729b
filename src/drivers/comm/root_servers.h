// SPDX-License-Identifier: Apache-2.0
// Servers on the hosts of a job: one rank of each host serves a part of the channels. Without switches, each link then
// carries what a ring's would.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/options.h"
#include "comm/switch_reach.h"
#include "store/rendezvous.h"
#include "switchd/node.h"

namespace atp::comm {

struct RootServer {
    std::uint32_t rank = 0;
    SwitchReach reach;
};

struct RootServers {
    std::vector<RootServer> roots;             // one of each host, equal on all ranks; channel c uses roots[c % size]
    std::unique_ptr<switchd::SwitchNode> own;  // nullptr: another rank of this host serves
    std::string why_one;                       // not empty: some ranks do not reach each other, so only rank 0 serves
};

// What a rank runs for its job.
struct ServedPart {
    std::uint64_t memory_bytes = 0;  // of aggregators; 0: a server only
    std::uint32_t lanes = 0;         // of an aggregator
};
// At the first free port of `listen`: host:port, host:0 or host:first-last.
[[nodiscard]] Result<std::unique_ptr<switchd::SwitchNode>> serve_at(const std::string& listen, const ServedPart& part);
[[nodiscard]] Result<wire::Address> host_of_listen(const std::string& listen);

[[nodiscard]] Result<RootServers> find_roots(store::Rendezvous& rendezvous, const Options& options, Time deadline);

}  // namespace atp::comm
