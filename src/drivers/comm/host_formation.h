// SPDX-License-Identifier: Apache-2.0
// How ranks find out that they can share memory: by trying, because neither host names nor counts of local ranks prove
// it (H41, docs/protocol.md#h41).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/options.h"
#include "shm/host_link.h"
#include "store/rendezvous.h"

namespace atp::comm {

// What one rank has of the memory of its host.
struct SharedHost {
    std::unique_ptr<shm::HostMemory> memory;  // nullptr: the rank shares no memory
    std::optional<shm::HostLink> link;        // nullopt: the only rank
};

// The ranks of a job by the memory that they share. All ranks find the same hosts.
struct Hosts {
    std::vector<std::vector<std::uint16_t>> ranks;  // of each host; the first one speaks for it. Hosts follow that rank
    std::size_t own = 0;                            // host of this rank
    SharedHost shared;
    std::size_t chunk_lanes = 0;  // in the memory of each host
    std::string why_apart;        // why some ranks that seemed to be on one host share no memory; empty: none

    [[nodiscard]] const std::vector<std::uint16_t>& own_ranks() const { return ranks[own]; }
    [[nodiscard]] bool any_shared() const { return ranks.size() != ranks_in_all(); }
    [[nodiscard]] std::size_t ranks_in_all() const {
        std::size_t count = 0;
        for (const auto& host : ranks) count += host.size();
        return count;
    }
};

// Whether the ranks try to share memory.
[[nodiscard]] bool may_share(const Options& options);

// `names`: three for the rendezvous. `all_or_none`: if some ranks seem to be on another host, no rank tries, and
// `why_apart` names one of them. An error ends the formation.
[[nodiscard]] Result<Hosts> find_hosts(store::Rendezvous& rendezvous, std::span<const std::string_view> names,
                                       const Options& options, bool all_or_none, Time deadline);

}  // namespace atp::comm
