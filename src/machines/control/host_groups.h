// SPDX-License-Identifier: Apache-2.0
// Which ranks share the memory of their host, and who speaks for a host in the network. All ranks compute the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wire/control.h"

namespace atp::control {

struct HostGroups {
    std::vector<std::vector<std::uint16_t>> ranks;  // of each host; the first one speaks for it. Hosts follow that rank
    std::string why_apart;  // why some ranks that could be on one host share no memory; empty: all share

    [[nodiscard]] std::size_t host_of(std::uint32_t rank) const;
    // Position in its host.
    [[nodiscard]] std::size_t index_of(std::uint32_t rank) const;
    [[nodiscard]] bool speaks(std::uint32_t rank) const { return index_of(rank) == 0; }
    [[nodiscard]] std::vector<std::uint32_t> speakers() const;
    // Some host has several ranks.
    [[nodiscard]] bool any_shared() const;
};

// Ranks that expect to share memory. If all ranks are on one host, they are one group of any size; on several hosts, a
// group has as many ranks as the field `part` of a packet counts.
[[nodiscard]] HostGroups group_by_host(std::span<const wire::RankFacts> facts);
// The ranks of a host where one failed to share are alone from now on.
void part_hosts(HostGroups& groups, std::span<const wire::SharedFacts> outcomes);

// Of the memory of each host. Chunks are equally long on all hosts.
struct HostMemoryPlan {
    unsigned slots = 0;
    std::size_t chunk_lanes = 0;
};
inline constexpr std::size_t least_chunk_lanes = 16 * 1024;
// For groups that no host has parted yet.
[[nodiscard]] HostMemoryPlan plan_memory(const HostGroups& groups);

}  // namespace atp::control
