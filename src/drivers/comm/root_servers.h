// SPDX-License-Identifier: Apache-2.0
// A job without a switch: one rank of each host serves a part of the channels. Each link then carries what a ring's
// would.
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

[[nodiscard]] Result<RootServers> find_roots(store::Rendezvous& rendezvous, const Options& options, Time deadline);

}  // namespace atp::comm
