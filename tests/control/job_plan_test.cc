// SPDX-License-Identifier: Apache-2.0
// Plans of jobs, from what their workers say of the network.
#include "control/job_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/fails.h"

namespace atp::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using AscentKind = Ascent::Kind;

constexpr std::uint64_t root = 100;
constexpr JobName name{.job = 7, .token = 9, .first_group = 300};

wire::Endpoint at(std::uint8_t host, std::uint16_t port) {
    wire::Endpoint endpoint{.family = 4, .port = port};
    endpoint.host[3] = std::byte{host};
    return endpoint;
}

// A worker that names the switch `leaf`, which is the root or a child of the root.
wire::NetworkFacts below(std::uint64_t leaf) {
    wire::NetworkFacts facts{.path = {{.id = leaf, .aggregators = 1000, .lanes = 352}}, .lanes = 360};
    if (leaf != root) facts.path.push_back({.id = root, .aggregators = 500, .lanes = 400});
    return facts;
}

// A worker on a host of its own that can serve, and names no switch.
wire::NetworkFacts serving(int host, std::string rack = {}) {
    return {.serves = true, .host = std::to_string(host), .uplink = std::move(rack)};
}

std::vector<std::uint32_t> numbers(std::size_t count) {
    std::vector<std::uint32_t> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0U);
    return ranks;
}

Result<JobPlanner> planned(const JobRules& rules, const std::vector<wire::NetworkFacts>& facts) {
    return JobPlanner::make(rules, name, numbers(facts.size()), facts);
}

// Facts of the last two rounds in which all reach all.
struct Served {
    std::vector<wire::ServerFacts> servers;
    std::vector<wire::ReachedFacts> reached;

    explicit Served(const JobPlanner& planner, std::size_t workers) : servers(workers), reached(workers) {
        for (const std::uint16_t worker : planner.servers()) {
            servers[worker].address = at(static_cast<std::uint8_t>(worker + 1), 1);
        }
        for (std::size_t worker = 0; worker < workers; ++worker) {
            reached[worker].lanes.assign(planner.servers().size(), 368);
            if (!planner.leads(static_cast<std::uint16_t>(worker))) continue;
            reached[worker].leaf = at(static_cast<std::uint8_t>(worker + 1), 2);
            reached[worker].leaf_aggregators = 300;
            reached[worker].leaf_lanes = 344;
        }
    }
};

void expect_refused(const Result<JobPlanner>& planner, Reason reason, const std::string& peer,
                    const std::string& text) {
    EXPECT_TRUE(fails(planner, {.reason = reason, .peer = peer, .text = HasSubstr(text)}));
}

// ------------------------------------------------------------------------------------------------ One switch above all

TEST(JobPlan, OneSwitchLimitsTheTerms) {
    const auto planner = planned({.channels = 2, .audit = true, .scale = 3}, {below(root), below(root)});
    ASSERT_TRUE(planner) << to_string(planner.error());
    EXPECT_FALSE(planner->has_servers());
    const wire::JobPlan& plan = planner->plan();
    EXPECT_EQ(plan.job, 7U);
    EXPECT_EQ(plan.channels, 2U);
    EXPECT_EQ(plan.lanes, 352U) << "of the switch, whose aggregators are shorter than the path allows";
    EXPECT_EQ(plan.aggregators, 1000U);
    EXPECT_EQ(plan.window, 128U) << "128 packets of 1,464 bytes fit in 256 KiB";
    EXPECT_EQ(plan.units, 1U);
    EXPECT_EQ(plan.levels, 1U);
    EXPECT_EQ(plan.layout, 0U);
    EXPECT_EQ(planner->sockets(), 4U);
    const PlannedChannel channel = planner->channel(3, 1);
    EXPECT_EQ(channel.terms.channel, 3U);
    EXPECT_EQ(channel.terms.token, 9U);
    EXPECT_EQ(channel.window, 128U);
    EXPECT_EQ(channel.channels, 2U) << "two share the first window: gathers are never in use beside them";
    EXPECT_EQ(channel.terms.window_log2, 9U) << "four times as many slots";
    EXPECT_TRUE(channel.terms.audit);
    EXPECT_EQ(channel.terms.mask1, 1U);
    EXPECT_EQ(channel.terms.server.family, 0U);
    EXPECT_EQ(channel.unit.members, 2U);
    EXPECT_EQ(channel.unit.mask0, 3U);
    EXPECT_THAT(channel.unit.ranks, ElementsAre(1));
    EXPECT_EQ(channel.level, 0U);
    EXPECT_EQ(channel.join_at.family, 0U);
    EXPECT_EQ(channel.thread, 1U) << "a gather channel has the thread of its channel";
    EXPECT_EQ(channel.bypass_above, 0x3FFF'FFFFU) << "two of them fit in int32";
    EXPECT_FALSE(channel.min_timeout);
}

TEST(JobPlan, NarrowestPathAndSmallestTableOfAllWorkersCount) {
    std::vector<wire::NetworkFacts> facts{below(7), below(7), below(root)};
    facts[1].lanes = 200;
    facts[1].path[0].aggregators = 0;  // forwards everything: no limit
    facts[1].path[0].lanes = 8;
    const auto planner = planned({}, facts);
    ASSERT_TRUE(planner) << to_string(planner.error());
    EXPECT_EQ(planner->plan().lanes, 200U);
    EXPECT_EQ(planner->plan().aggregators, 500U);
    EXPECT_EQ(planner->plan().units, 2U);
    EXPECT_EQ(planner->plan().levels, 2U);
    EXPECT_TRUE(planner->channel(0, 2).unit.direct);
    EXPECT_EQ(planner->channel(0, 2).level, 1U);
}

TEST(JobPlan, SwitchesWithoutMemoryLeaveOneAggregator) {
    std::vector<wire::NetworkFacts> facts{below(root)};
    facts[0].path[0].aggregators = 0;
    const auto planner = planned({.lanes = 64, .window = 16}, facts);
    ASSERT_TRUE(planner);
    EXPECT_EQ(planner->plan().aggregators, 1U);
    EXPECT_EQ(planner->plan().lanes, 64U);
    EXPECT_EQ(planner->plan().window, 16U);
}

TEST(JobPlan, WorkerBehindASwitchInThePathJoinsAtLevelOne) {
    std::vector<wire::NetworkFacts> facts{below(root), below(root), below(root)};
    facts[0].rack = facts[1].rack = "a rack";
    const auto planner = planned({}, facts);
    ASSERT_TRUE(planner) << to_string(planner.error());
    EXPECT_EQ(planner->channel(0, 0).level, 1U);
    EXPECT_EQ(planner->channel(0, 0).place.hop, 0U);
    EXPECT_EQ(planner->channel(0, 1).unit.members, 2U);
}

TEST(JobPlan, ProcessOfAWorkerThatRunsItsSwitchIsNamed) {
    std::vector<wire::NetworkFacts> facts{below(root), below(7), below(7), below(root)};
    EXPECT_EQ(planned({}, facts)->channel(0, 1).switch_rank, std::nullopt);
    facts[2].hosts_switch = facts[3].hosts_switch = true;
    const auto planner = planned({}, facts);
    EXPECT_EQ(planner->channel(0, 1).switch_rank, 2);
    EXPECT_EQ(planner->channel(0, 0).switch_rank, 3);
}

TEST(JobPlan, ColocatedServersTakeTurns) {
    std::vector<wire::NetworkFacts> facts{below(root), below(root)};
    for (std::uint8_t worker = 0; worker < 2; ++worker) {
        for (std::uint16_t channel = 0; channel < 4; ++channel) facts[worker].sockets.push_back(at(worker, channel));
    }
    const JobRules rules{.channels = 2, .layout = LayoutKind::one_root, .colocated = true};
    const auto planner = planned(rules, facts);
    ASSERT_TRUE(planner) << to_string(planner.error());
    EXPECT_EQ(planner->channel(3, 0).terms.server, at(1, 3));
    EXPECT_EQ(planner->channel(3, 0).server_rank, 1);
    facts[1].sockets.pop_back();
    expect_refused(planned(rules, facts), Reason::malformed, "rank 1", "it names 3 sockets for 4 channels");
}

TEST(JobPlan, DedicatedServersTakeTurns) {
    const auto planner = planned({.channels = 3, .layout = LayoutKind::one_root, .dedicated = {at(1, 1), at(2, 2)}},
                                 {below(root), below(root)});
    ASSERT_TRUE(planner);
    EXPECT_EQ(planner->channel(2, 0).terms.server, at(1, 1));
    EXPECT_EQ(planner->channel(1, 1).terms.server, at(2, 2));
    EXPECT_FALSE(planner->channel(1, 1).server_rank);
}

TEST(JobPlan, ResultsByMulticastHaveAGroup) {
    const JobRules rules{.multicast = {.requested = true}};
    const auto planner = planned(rules, {below(root)});
    ASSERT_TRUE(planner);
    EXPECT_EQ(planner->channel(0, 0).terms.group, group_of(rules.multicast, name.first_group, 0));
}

// Hosts that see the groups learn nothing of the token.
TEST(JobPlan, GroupsFollowFromTheDrawAndNotFromTheToken) {
    const auto groups_of = [](const JobName& drawn) {
        const auto planner =
            JobPlanner::make({.channels = 4, .multicast = {.requested = true}}, drawn, {0}, {below(root)}).value();
        std::vector<wire::Endpoint> groups;
        for (std::uint32_t number = 0; number < 4; ++number) groups.push_back(planner.channel(number, 0).terms.group);
        return groups;
    };
    const auto groups = groups_of(name);
    EXPECT_EQ(groups_of({.job = 8, .token = 0x1234567890ABCDEF, .first_group = name.first_group}), groups);
    const auto others = groups_of({.job = name.job, .token = name.token, .first_group = 4});
    for (const wire::Endpoint& other : others) EXPECT_EQ(std::ranges::count(groups, other), 0);
}

TEST(JobPlan, WorkersThatSeeDifferentRootsAreMismatched) {
    wire::NetworkFacts other = below(root);
    other.path[0].id = 9;
    expect_refused(planned({}, {below(root), other}), Reason::mismatched, "", "ranks 0 and 1 have no common parent");
}

TEST(JobPlan, RankThatNamesNoSwitchIsNamedWithItsOwnNumber) {
    const auto planner = JobPlanner::make({.layout = LayoutKind::one_root}, name, {0, 4}, {below(root), serving(1)});
    expect_refused(planner, Reason::unsupported, "rank 4", "rank 4 names no switch");
}

TEST(JobPlan, RankThatNeitherNamesASwitchNorServesIsNamed) {
    wire::NetworkFacts nothing;
    expect_refused(planned({}, {serving(0), nothing}), Reason::unsupported, "rank 1",
                   "rank 1 has no address to listen at, which the layout \"hosts\" needs");
}

TEST(JobPlan, LayoutThatTheRanksCannotFormIsRefused) {
    expect_refused(planned({.layout = LayoutKind::leaves}, {below(root), below(root)}), Reason::unsupported, "rank 0",
                   "which the layout \"leaves\" needs of all ranks");
    std::vector<wire::NetworkFacts> many;
    for (int host = 0; host < 33; ++host) many.push_back(serving(host));
    for (const auto layout : {std::optional<LayoutKind>(), std::optional(LayoutKind::hosts)}) {
        expect_refused(planned({.layout = layout}, many), Reason::unsupported, "",
                       "\"hosts\" would need more than 32 units");
    }
}

TEST(JobPlan, MoreRanksThanABitmapHasBitsAreRefused) {
    expect_refused(planned({}, std::vector<wire::NetworkFacts>(33, below(root))), Reason::too_large, "",
                   "33 ranks name one switch");
}

// ---------------------------------------------------------------------------------------------------- Hosts that serve

TEST(JobPlan, HostsServeSharesOfTheChannels) {
    auto planner = planned({.channels = 1}, {serving(0), serving(1), serving(1), serving(2)});
    ASSERT_TRUE(planner) << to_string(planner.error());
    ASSERT_TRUE(planner->has_servers());
    EXPECT_THAT(planner->servers(), ElementsAre(0, 1, 3)) << "the first of each host";
    EXPECT_THAT(planner->text(), HasSubstr("3 hosts serve the sums; busiest is the link of rank 1"));
    const Served served(*planner, 4);
    ASSERT_TRUE(planner->settle(served.servers, served.reached));
    EXPECT_EQ(planner->channels(), 3U) << "as many for each share";
    EXPECT_EQ(planner->plan().lanes, 368U);
    EXPECT_EQ(planner->plan().window, 32U) << "a quarter of 128";
    const PlannedChannel channel = planner->channel(1, 3);
    EXPECT_EQ(channel.join_at, at(2, 1));
    EXPECT_EQ(channel.switch_rank, 1);
    EXPECT_EQ(channel.root_rank, 1);
    EXPECT_EQ(channel.terms.root.family, 0U) << "one unit";
    EXPECT_EQ(channel.thread, 0U);
    EXPECT_EQ(channel.min_timeout, std::chrono::milliseconds(50));
    EXPECT_EQ(planner->plan().layout, static_cast<unsigned>(LayoutKind::hosts));
}

TEST(JobPlan, JobOfOneHostHasNoRootAndNoBusyLink) {
    auto planner = planned({}, {serving(0)});
    ASSERT_TRUE(planner);
    const Served served(*planner, 1);
    ASSERT_TRUE(planner->settle(served.servers, served.reached));
    EXPECT_EQ(planner->channel(0, 0).terms.root.family, 0U);
    EXPECT_EQ(planner->plan().units, 1U);
}

TEST(JobPlan, RatesOfLinksAreInTheText) {
    std::vector<wire::NetworkFacts> facts{serving(0), serving(1)};
    facts[0].host_bits_per_s = facts[1].host_bits_per_s = 5e8;
    EXPECT_THAT(planned({}, facts)->text(), HasSubstr("at 500 Mbit/s"));
    std::vector<wire::NetworkFacts> racks{below(7), below(7), below(8), below(8)};
    for (wire::NetworkFacts& rank : racks) rank.uplink_bits_per_s = 1e6, rank.host_bits_per_s = 1e9;
    EXPECT_THAT(planned({.layout = LayoutKind::one_root}, racks)->text(),
                HasSubstr("the link above the rack of rank 0"));
}

TEST(JobPlan, SwitchesOfRacksAddBelowServersOnHosts) {
    std::vector<wire::NetworkFacts> facts;
    for (int rank = 0; rank < 4; ++rank) {
        facts.push_back(serving(rank));
        facts.back().path = {{.id = rank < 2 ? 7U : 8U, .aggregators = 1000, .lanes = 352}};
        facts.back().lanes = 360;
    }
    auto planner = planned({.layout = LayoutKind::leaves}, facts);
    ASSERT_TRUE(planner) << to_string(planner.error());
    EXPECT_TRUE(planner->climbs(0));
    EXPECT_THAT(planner->text(), HasSubstr("2 switches add for their racks"));
    const Served served(*planner, 4);
    ASSERT_TRUE(planner->settle(served.servers, served.reached));
    EXPECT_EQ(planner->plan().lanes, 352U);
    EXPECT_EQ(planner->plan().aggregators, 1000U);
    const PlannedChannel channel = planner->channel(0, 3);
    EXPECT_EQ(channel.join_at.family, 0U) << "its own switch";
    EXPECT_FALSE(channel.switch_rank);
    EXPECT_EQ(channel.root_rank, 0);
    EXPECT_EQ(channel.terms.root, at(1, 1));
    EXPECT_EQ(planner->plan().units, 2U);
}

TEST(JobPlan, HostsOfARackTakeTurnsToAdd) {
    const std::vector<wire::NetworkFacts> facts{serving(0, "a"), serving(1, "a"), serving(2, "b"), serving(3, "b")};
    auto planner = planned({.layout = LayoutKind::racks}, facts);
    ASSERT_TRUE(planner) << to_string(planner.error());
    EXPECT_TRUE(planner->leads(3));
    EXPECT_THAT(planner->text(), HasSubstr("4 hosts take turns to add for theirs"));
    Served served(*planner, 4);
    ASSERT_TRUE(planner->settle(served.servers, served.reached));
    EXPECT_EQ(planner->plan().lanes, 344U) << "of the switches that ranks run";
    EXPECT_EQ(planner->plan().aggregators, 300U);
    const PlannedChannel channel = planner->channel(1, 2);
    EXPECT_EQ(channel.switch_rank, 3) << "share 1 is served by rank 1, and rank 3 adds for rack b";
    EXPECT_EQ(channel.join_at, at(4, 2));
    EXPECT_EQ(channel.root_rank, 1);

    auto again = planned({.layout = LayoutKind::racks}, facts);
    served.reached[3].leaf = {};
    const auto settled = again->settle(served.servers, served.reached);
    EXPECT_TRUE(fails(settled, {.peer = "rank 3", .text = HasSubstr("no switch for its rack")}));
}

TEST(JobPlan, SwitchInThePathAddsBelowServersOnHosts) {
    std::vector<wire::NetworkFacts> facts{serving(0), serving(1), serving(2)};
    facts[1].rack = facts[2].rack = "behind it";
    auto planner = planned({.layout = LayoutKind::leaves}, facts);
    ASSERT_TRUE(planner) << to_string(planner.error());
    const Served served(*planner, 3);
    ASSERT_TRUE(planner->settle(served.servers, served.reached));
    const PlannedChannel channel = planner->channel(0, 2);
    EXPECT_EQ(channel.level, 1U);
    EXPECT_EQ(channel.join_at, at(1, 1));
    EXPECT_EQ(channel.unit.mask0, 3U);
}

void cut(Served& served, std::size_t from, std::uint16_t to) {
    served.reached[from].lanes[to] = 0;
    served.reached[from].faults = {{.to = to, .why = "no answer"}};
}

TEST(JobPlan, OneHostServesAllIfSomeDoNotReachEachOther) {
    auto planner = planned({}, {serving(0), serving(1), serving(2)});
    Served served(*planner, 3);
    served.reached[0].lanes[0] = 100;
    cut(served, 2, 1);
    ASSERT_TRUE(planner->settle(served.servers, served.reached));
    EXPECT_EQ(planner->text(), "rank 0 serves all sums, because rank 2 does not reach rank 1: no answer");
    EXPECT_THAT(planner->servers(), ElementsAre(0));
    EXPECT_EQ(planner->plan().lanes, 100U) << "only the paths to rank 0 count";
    EXPECT_EQ(planner->channels(), 1U);
}

// Two racks without a switch of their own, below slow links: hosts of a rack add before these.
TEST(JobPlan, OneSwitchServesAllIfRanksNameOneAndDoNotReachEachOther) {
    std::vector<wire::NetworkFacts> facts;
    for (int rank = 0; rank < 4; ++rank) {
        facts.push_back(below(root));
        facts.back().serves = true;
        facts.back().host = std::to_string(rank);
        facts.back().uplink = rank < 2 ? "a" : "b";
        facts.back().uplink_bits_per_s = 1e6;
        facts.back().host_bits_per_s = 1e9;
    }
    for (const auto layout : {std::optional<LayoutKind>(), std::optional(LayoutKind::racks)}) {
        auto planner = planned({.layout = layout}, facts);
        ASSERT_TRUE(planner && planner->has_servers());
        Served served(*planner, 4);
        cut(served, 1, 2);
        ASSERT_TRUE(planner->settle(served.servers, served.reached));
        EXPECT_EQ(planner->has_servers(), layout.has_value()) << planner->text();
        EXPECT_EQ(planner->text(), std::string(layout ? "rank 0 serves all sums" : "one switch above all ranks adds") +
                                       ", because rank 1 does not reach rank 2: no answer");
    }
}

TEST(JobPlan, ContradictionsOfTheLastRoundsNameTheirRank) {
    const std::vector<wire::NetworkFacts> facts{serving(0), serving(1)};
    const auto refused = [&](auto change, const std::string& text) {
        auto planner = planned({}, facts);
        Served served(*planner, 2);
        change(served);
        const auto settled = planner->settle(served.servers, served.reached);
        EXPECT_TRUE(fails(settled, {.peer = "rank 1", .text = HasSubstr(text)}));
    };
    refused([](Served& served) { served.servers[1].address = {}; }, "it has no server");
    refused([](Served& served) { served.reached[1].lanes.pop_back(); }, "it names 1 servers, not 2");
    refused([](Served& served) { served.reached[1].lanes[0] = 0; }, "does not reach rank 0");
    refused([](Served& served) { served.reached[1].lanes[1] = 0; }, "it names no fault of a server");
}

// Otherwise all ranks would divide by the length of a fragment.
TEST(JobPlan, PathWithoutRoomForAnElementNamesItsRank) {
    wire::NetworkFacts narrow = below(root);
    for (const std::uint16_t lanes : std::initializer_list<std::uint16_t>{0, 1}) {
        narrow.path.front().lanes = lanes;
        const auto planner = planned({.audit = true}, {below(root), narrow, narrow});
        expect_refused(planner, Reason::malformed, "rank 1",
                       "packets of " + std::to_string(lanes) + " lanes on its path have no room");
    }
    EXPECT_TRUE(planned({}, {below(root), narrow}));
    std::vector<wire::NetworkFacts> facts;
    for (int host = 0; host < 4; ++host) facts.push_back(serving(host, host < 2 ? "left" : "right"));
    auto planner = planned({.layout = LayoutKind::racks}, facts);
    ASSERT_TRUE(planner);
    Served served(*planner, 4);
    served.reached[2].leaf_lanes = 0;
    EXPECT_TRUE(fails(planner->settle(served.servers, served.reached),
                      {.peer = "rank 2", .text = HasSubstr("packets of 0 lanes on its path have no room")}));
}

// Any store writer may change what ranks say of the network and of servers.
TEST(JobPlan, FactsOfAnyKindGiveAPlanOrAnError) {
    std::minstd_rand chance(1);
    const auto below_number = [&chance](std::size_t end) { return static_cast<std::uint32_t>(chance() % end); };
    const auto name_of_some = [&](const char* kind) {
        return below_number(2) == 0 ? std::string() : kind + std::to_string(below_number(3));
    };
    unsigned plans = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<wire::NetworkFacts> facts(1 + below_number(6));
        for (wire::NetworkFacts& each : facts) {
            each = {.serves = below_number(4) != 0, .host = name_of_some("h"), .rack = {}, .uplink = name_of_some("u")};
            for (std::uint32_t left = below_number(4); left != 0; --left) {
                each.path.push_back({.id = below_number(4),
                                     .aggregators = below_number(3),
                                     .lanes = static_cast<std::uint16_t>(below_number(400))});
            }
            if (each.path.empty()) continue;
            each.lanes = 1 + below_number(400);
            each.hosts_switch = below_number(2) == 0;
            each.rack = below_number(3) == 0 ? "rack" : "";
        }
        const bool any_layout = below_number(2) == 0;
        auto planner = planned({.channels = 2,
                                .audit = below_number(2) == 0,
                                .layout = any_layout ? std::nullopt : std::optional(LayoutKind(below_number(4)))},
                               facts);
        if (!planner) continue;
        if (planner->has_servers()) {
            Served served(*planner, facts.size());
            served.servers[below_number(facts.size())].address = at(1, 1);
            wire::ReachedFacts& some = served.reached[below_number(facts.size())];
            some.lanes.assign(below_number(4), below_number(3));
            some.faults.resize(below_number(2));
            some.leaf_lanes = static_cast<std::uint16_t>(below_number(3));
            if (!planner->settle(served.servers, served.reached)) continue;
        }
        ++plans;
        for (std::uint32_t number = 0; number < planner->sockets(); ++number) {
            for (std::uint16_t worker = 0; worker < facts.size(); ++worker) {
                const auto channel = planner->channel(number, worker);
                EXPECT_GT(channel.terms.lanes, channel.terms.audit ? 1 : 0);
            }
        }
    }
    EXPECT_GT(plans, 100U);
}

TEST(JobPlan, ManyChannelsOfManySharesAreAtMostSixtyFour) {
    std::vector<wire::NetworkFacts> facts;
    for (int host = 0; host < 5; ++host) facts.push_back(serving(host));
    EXPECT_EQ(planned({.channels = 64, .layout = LayoutKind::hosts}, facts)->channels(), 60U);
    EXPECT_EQ(planned({.channels = 2, .layout = LayoutKind::hosts, .gathers = false}, facts)->sockets(), 10U);
}

}  // namespace
}  // namespace atp::control
