// SPDX-License-Identifier: Apache-2.0
// How ranks find out that they can share memory: by trying, because neither host names nor counts of local ranks prove
// it (H41, docs/spec/hazards.md#h41). control::HostGroups decides who tries with whom.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/options.h"
#include "control/host_groups.h"
#include "shm/host_link.h"
#include "store/rendezvous.h"

namespace atp::comm {

// What one rank has of the memory of its host.
struct SharedHost {
    std::unique_ptr<shm::HostMemory> memory;  // nullptr: the rank shares no memory
    std::optional<shm::HostLink> link;        // before share_memory(): a listener; nullopt: the only rank
};

// The ranks of a job by the memory that they share. All ranks find the same groups.
struct Meeting {
    std::vector<wire::RankFacts> facts;  // by rank
    control::HostGroups groups;
    SharedHost shared;
    std::size_t chunk_lanes = 0;  // in the memory of each host
};

// Whether the ranks try to share memory.
[[nodiscard]] bool may_share(const Options& options);

// Tells all ranks who this one is.
[[nodiscard]] Result<Meeting> meet(store::Rendezvous& rendezvous, const Options& options, Time deadline);
// Then shares memory with the ranks of its host.
[[nodiscard]] Result<void> share_memory(store::Rendezvous& rendezvous, Meeting& meeting, Time deadline);

}  // namespace atp::comm
