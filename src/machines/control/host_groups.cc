// SPDX-License-Identifier: Apache-2.0
#include "control/host_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace atp::control {
namespace {

// Of all places for lanes together: ranks of hosts with many ranks get shorter chunks.
constexpr std::size_t most_lanes_bytes = std::size_t{64} << 20U;
constexpr std::size_t usual_chunk_lanes = 65536;
constexpr std::size_t lane_step = 1024;  // chunks have a multiple of it
// Chunks on the network take longer than a sum in memory.
constexpr unsigned slots_on_host = 4;
constexpr unsigned slots_over_network = 8;

// Why not all ranks are on one host; empty: they seem to be.
std::string objection_to(std::span<const wire::RankFacts> facts) {
    const wire::RankFacts& first = facts.front();
    for (std::size_t rank = 0; rank < facts.size(); ++rank) {
        if (!facts[rank].shares) return "the host level is off";
        if (facts[rank].host_name != first.host_name) {
            return fmt::format("rank {} is on host {}, rank 0 on host {}", rank, facts[rank].host_name,
                               first.host_name);
        }
        if (facts[rank].kernel != first.kernel) {
            return fmt::format("rank {} is on another host than rank 0, or in another network namespace", rank);
        }
    }
    if (facts.size() > 1 && first.socket.empty()) return "rank 0 has no Unix socket";
    return {};
}

bool may_share(const wire::RankFacts& first, const wire::RankFacts& other) {
    return first.shares && other.shares && !first.socket.empty() && first.kernel == other.kernel &&
           first.host_name == other.host_name;
}

}  // namespace

std::size_t HostGroups::host_of(std::uint32_t rank) const {
    const auto own =
        std::ranges::find_if(ranks, [&](const auto& host) { return std::ranges::find(host, rank) != host.end(); });
    return static_cast<std::size_t>(own - ranks.begin());
}

std::size_t HostGroups::index_of(std::uint32_t rank) const {
    const auto& host = ranks[host_of(rank)];
    return static_cast<std::size_t>(std::ranges::find(host, rank) - host.begin());
}

std::vector<std::uint32_t> HostGroups::speakers() const {
    std::vector<std::uint32_t> first;
    for (const auto& host : ranks) first.push_back(host.front());
    return first;
}

bool HostGroups::any_shared() const {
    return std::ranges::any_of(ranks, [](const auto& host) { return host.size() > 1; });
}

HostGroups group_by_host(std::span<const wire::RankFacts> facts) {
    HostGroups groups{.ranks = {}, .why_apart = objection_to(facts)};
    const std::size_t most = groups.why_apart.empty() ? facts.size() : ATP_PART_RANK_MASK;
    for (std::size_t rank = 0; rank < facts.size(); ++rank) {
        const auto host = std::ranges::find_if(groups.ranks, [&](const std::vector<std::uint16_t>& other) {
            return other.size() < most && may_share(facts[other.front()], facts[rank]);
        });
        const auto rank16 = static_cast<std::uint16_t>(rank);
        if (host == groups.ranks.end()) {
            groups.ranks.push_back({rank16});
        } else {
            host->push_back(rank16);
        }
    }
    return groups;
}

void part_hosts(HostGroups& groups, std::span<const wire::SharedFacts> outcomes) {
    std::vector<std::vector<std::uint16_t>> parted;
    for (std::vector<std::uint16_t>& ranks : groups.ranks) {
        // The first rank fails because of another one, so its reason says the least.
        const auto failed = std::find_if(ranks.rbegin(), ranks.rend(),
                                         [&](std::uint16_t rank) { return !outcomes[rank].problem.empty(); });
        if (failed == ranks.rend()) {
            parted.push_back(std::move(ranks));
            continue;
        }
        groups.why_apart = fmt::format("rank {}: {}", *failed, outcomes[*failed].problem);
        for (const std::uint16_t rank : ranks) parted.push_back({rank});
    }
    std::ranges::sort(parted, {}, [](const auto& ranks) { return ranks.front(); });
    groups.ranks = std::move(parted);
}

HostMemoryPlan plan_memory(const HostGroups& groups) {
    const std::size_t most = std::ranges::max(groups.ranks, {}, &std::vector<std::uint16_t>::size).size();
    const unsigned slots = groups.ranks.size() > 1 ? slots_over_network : slots_on_host;
    const std::size_t lanes = most_lanes_bytes / ATP_LANE_BYTES / (slots * (most + 1)) / lane_step * lane_step;
    return {.slots = slots, .chunk_lanes = std::clamp(lanes, least_chunk_lanes, usual_chunk_lanes)};
}

}  // namespace atp::control
