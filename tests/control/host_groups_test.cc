// SPDX-License-Identifier: Apache-2.0
// Which ranks share memory.
#include "control/host_groups.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

using Hosts = std::vector<std::vector<std::uint16_t>>;

wire::RankFacts rank_on(std::string kernel, std::string host_name = {}) {
    return {.shares = true, .kernel = std::move(kernel), .host_name = std::move(host_name), .socket = "s"};
}

HostGroups groups_of(const std::vector<wire::RankFacts>& facts) { return group_by_host(facts); }

TEST(HostGroups, RanksOfOneKernelAndNameAreOneHost) {
    const HostGroups groups = groups_of(std::vector<wire::RankFacts>(100, rank_on("k")));
    ASSERT_EQ(groups.ranks.size(), 1U);
    EXPECT_EQ(groups.ranks[0].size(), 100U) << "no limit on one host";
    EXPECT_EQ(groups.why_apart, "");
    EXPECT_TRUE(groups.any_shared());
}

TEST(HostGroups, HostsFollowTheirFirstRanks) {
    const HostGroups groups = groups_of({rank_on("b"), rank_on("a"), rank_on("b"), rank_on("c"), rank_on("a")});
    EXPECT_EQ(groups.ranks, (Hosts{{0, 2}, {1, 4}, {3}}));
    EXPECT_EQ(groups.why_apart, "rank 1 is on another host than rank 0, or in another network namespace");
    EXPECT_EQ(groups.speakers(), (std::vector<std::uint32_t>{0, 1, 3}));
    EXPECT_EQ(groups.host_of(4), 1U);
    EXPECT_EQ(groups.index_of(4), 1U);
    EXPECT_FALSE(groups.speaks(4));
    EXPECT_TRUE(groups.speaks(3));
}

TEST(HostGroups, NamesOfHostsSeparateRanks) {
    const HostGroups groups = groups_of({rank_on("k", "x"), rank_on("k", "y z")});
    EXPECT_EQ(groups.ranks, (Hosts{{0}, {1}}));
    EXPECT_EQ(groups.why_apart, "rank 1 is on host y z, rank 0 on host x");
    EXPECT_FALSE(groups.any_shared());
}

TEST(HostGroups, RankThatSharesWithNobodyIsAlone) {
    std::vector<wire::RankFacts> facts(3, rank_on("k"));
    facts[1].shares = false;
    const HostGroups groups = groups_of(facts);
    EXPECT_EQ(groups.ranks, (Hosts{{0, 2}, {1}}));
    EXPECT_EQ(groups.why_apart, "the host level is off");
}

TEST(HostGroups, FirstRankWithoutASocketIsAlone) {
    std::vector<wire::RankFacts> facts(3, rank_on("k"));
    facts[0].socket.clear();
    const HostGroups groups = groups_of(facts);
    EXPECT_EQ(groups.ranks, (Hosts{{0}, {1, 2}}));
    EXPECT_EQ(groups.why_apart, "rank 0 has no Unix socket");
    facts.resize(1);
    EXPECT_EQ(groups_of(facts).why_apart, "") << "a job of one rank needs none";
}

TEST(HostGroups, GroupsOnSeveralHostsHaveAsManyRanksAsAPacketCounts) {
    std::vector<wire::RankFacts> facts(100, rank_on("k"));
    facts.push_back(rank_on("other"));
    const HostGroups groups = groups_of(facts);
    ASSERT_EQ(groups.ranks.size(), 3U);
    EXPECT_EQ(groups.ranks[0].size(), std::size_t{ATP_PART_RANK_MASK});
    EXPECT_EQ(groups.ranks[1].size(), 100U - ATP_PART_RANK_MASK);
}

TEST(HostGroups, H41_HostWhereOneRankFailsIsParted) {
    HostGroups groups = groups_of({rank_on("a"), rank_on("a"), rank_on("b"), rank_on("a"), rank_on("b")});
    std::vector<wire::SharedFacts> outcomes(5);
    outcomes[0].problem = "no answer";
    outcomes[3].problem = "refused";
    part_hosts(groups, outcomes);
    EXPECT_EQ(groups.ranks, (Hosts{{0}, {1}, {2, 4}, {3}}));
    EXPECT_EQ(groups.why_apart, "rank 3: refused") << "the first rank fails because of another one";
}

TEST(HostGroups, ChunksShrinkWithTheLargestHost) {
    const auto plan = [](std::size_t ranks, bool others) {
        std::vector<wire::RankFacts> facts(ranks, rank_on("a"));
        if (others) facts.push_back(rank_on("b"));
        return plan_memory(groups_of(facts));
    };
    EXPECT_EQ(plan(2, false).slots, 4U);
    EXPECT_EQ(plan(2, false).chunk_lanes, 65536U);
    EXPECT_EQ(plan(2, true).slots, 8U);
    EXPECT_EQ(plan(50, true).chunk_lanes, 40960U);
    EXPECT_EQ(plan(900, false).chunk_lanes, least_chunk_lanes);
}

}  // namespace
}  // namespace atp::control
