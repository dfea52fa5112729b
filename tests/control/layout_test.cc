// SPDX-License-Identifier: Apache-2.0
#include "control/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace atp::control {
namespace {

using Kind = Ascent::Kind;

// Racks of equally many hosts, each with one rank; the first `leaves` racks have a switch.
std::vector<LayoutRank> racks(std::size_t count, std::size_t hosts, std::size_t leaves, bool below_root = false) {
    std::vector<LayoutRank> ranks;
    for (std::size_t rack = 0; rack < count; ++rack) {
        for (std::size_t host = 0; host < hosts; ++host) {
            LayoutRank rank{.serves = true, .host = {}, .rack = "r" + std::to_string(rack)};
            rank.host = rank.rack + "h" + std::to_string(host);
            if (rack < leaves) rank.leaf = 100 + rack;
            if (below_root && rack >= leaves) rank.leaf = 7;
            rank.root = below_root ? 7 : rank.leaf;
            ranks.push_back(std::move(rank));
        }
    }
    return ranks;
}

void name_rates(std::vector<LayoutRank>& ranks, double host, double uplink) {
    for (LayoutRank& rank : ranks) rank.host_bits_per_s = host, rank.uplink_bits_per_s = uplink;
}

double busiest(LayoutKind kind, const std::vector<LayoutRank>& ranks) {
    const auto layout = layout_of(kind, ranks);
    EXPECT_TRUE(layout) << to_string(kind);
    return layout ? layout->busiest.tensors : 0;
}

TEST(Layout, HostsCarryWhatARingCarries) {
    for (const std::size_t hosts : {2U, 3U, 4U, 8U}) {
        const auto count = static_cast<double>(hosts);
        EXPECT_DOUBLE_EQ(busiest(LayoutKind::hosts, racks(1, hosts, 0)), 2 * (count - 1) / count);
    }
}

TEST(Layout, OneRootCarriesOneTensor) {
    EXPECT_DOUBLE_EQ(busiest(LayoutKind::one_root, racks(2, 4, 2, true)), 1);
    EXPECT_EQ(best_layout(racks(2, 4, 2, true))->kind, LayoutKind::one_root);
}

TEST(Layout, RanksOfOneHostShareItsLinkAndServeOnce) {
    std::vector<LayoutRank> ranks = racks(1, 2, 0);
    ranks.insert(ranks.begin() + 1, ranks.front());
    const auto layout = layout_of(LayoutKind::hosts, ranks);
    ASSERT_TRUE(layout);
    ASSERT_EQ(layout->shares.size(), 2U);
    EXPECT_EQ(layout->shares[0].server, 0);
    EXPECT_EQ(layout->shares[1].server, 2);
    EXPECT_DOUBLE_EQ(layout->busiest.tensors, 1.5) << "both ranks send half a tensor to the other host, which sends "
                                                      "half a one to the server here";
}

TEST(Layout, UplinkOfServersOnAllHostsCarriesEachHost) {
    auto ranks = racks(4, 2, 0);
    name_rates(ranks, 2, 2);
    const auto hosts = layout_of(LayoutKind::hosts, ranks);
    ASSERT_TRUE(hosts);
    EXPECT_TRUE(hosts->busiest.is_uplink);
    EXPECT_DOUBLE_EQ(hosts->busiest.tensors, 3);
    EXPECT_DOUBLE_EQ(busiest(LayoutKind::racks, ranks), 1.75) << "the links of hosts, as in a ring";
    EXPECT_EQ(best_layout(ranks)->kind, LayoutKind::racks);
}

TEST(Layout, FastUplinksNeedNoHostsAsLeaves) {
    auto ranks = racks(4, 2, 0);
    name_rates(ranks, 1, 2);
    EXPECT_EQ(best_layout(ranks)->kind, LayoutKind::hosts);
}

TEST(Layout, SwitchesOfAllRacksTakeLoadFromHostsAndUplinks) {
    const auto ranks = racks(4, 2, 4);
    const auto layout = best_layout(ranks);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->kind, LayoutKind::leaves);
    EXPECT_DOUBLE_EQ(layout->busiest.tensors, 1.5);
    for (const LayoutShare& share : layout->shares) {
        for (const Ascent& ascent : share.ascents) EXPECT_EQ(ascent.kind, Kind::by_switch);
    }
}

TEST(Layout, MoreSwitchesNeverPredictMoreTime) {
    for (const double uplink : {1.0, 2.0}) {
        double before = 1e9;
        for (std::size_t leaves = 0; leaves <= 4; ++leaves) {
            auto ranks = racks(4, 2, leaves);
            name_rates(ranks, 1, uplink);
            const double duration = best_layout(ranks)->duration;
            EXPECT_LE(duration, before * 1.02) << leaves << " leaves";
            before = duration;
        }
        auto ranks = racks(4, 2, 4, true);
        name_rates(ranks, 1, uplink);
        EXPECT_DOUBLE_EQ(best_layout(ranks)->duration, 1);
    }
}

TEST(Layout, HostsOfARackWithoutASwitchTakeTurns) {
    const auto layout = layout_of(LayoutKind::racks, racks(2, 2, 0));
    ASSERT_TRUE(layout);
    ASSERT_EQ(layout->shares.size(), 4U);
    const Ascent direct{};
    for (std::size_t share = 0; share < 4; ++share) {
        const std::size_t served = share / 2;
        for (std::size_t rank = 0; rank < 4; ++rank) {
            const auto leaf = static_cast<std::uint16_t>(rank / 2 * 2 + share % 2);
            const Ascent expected = rank / 2 == served ? direct : Ascent{.kind = Kind::by_rank, .leaf = leaf};
            EXPECT_EQ(layout->shares[share].ascents[rank], expected) << "share " << share << ", rank " << rank;
        }
    }
}

TEST(Layout, HostsBehindASwitchServeTwiceAsMuchAsOthers) {
    const auto layout = best_layout(racks(4, 2, 2));
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->kind, LayoutKind::racks);
    std::vector<int> shares(8);
    for (const LayoutShare& share : layout->shares) ++shares[share.server];
    EXPECT_EQ(shares, (std::vector<int>{2, 2, 2, 2, 1, 1, 1, 1}));
    EXPECT_NEAR(layout->busiest.tensors, 5.0 / 3, 1e-9) << "as in a ring of two racks and four hosts";
}

TEST(Layout, RootWithoutSwitchesOfRacksLoadsUplinksByHosts) {
    auto ranks = racks(4, 2, 2, true);
    name_rates(ranks, 1, 1);
    EXPECT_DOUBLE_EQ(busiest(LayoutKind::one_root, ranks), 2) << "both hosts of a rack without a switch";
    EXPECT_EQ(best_layout(ranks)->kind, LayoutKind::racks);
    EXPECT_NEAR(best_layout(ranks)->busiest.tensors, 5.0 / 3, 1e-9);
    name_rates(ranks, 1, 2);
    EXPECT_EQ(best_layout(ranks)->kind, LayoutKind::one_root);
}

TEST(Layout, SwitchInThePathAddsForItsRack) {
    auto ranks = racks(2, 4, 0);
    for (LayoutRank& rank : ranks) rank.in_path = true;
    const auto layout = best_layout(ranks);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->kind, LayoutKind::leaves);
    EXPECT_EQ(layout->shares.front().ascents.back().kind, Kind::in_path);
    EXPECT_DOUBLE_EQ(layout->busiest.tensors, 1.25);
    for (LayoutRank& rank : ranks) rank.leaf = rank.root = 5;
    EXPECT_EQ(best_layout(ranks)->kind, LayoutKind::one_root);
}

TEST(Layout, TwoSwitchesOfARackSendTwoSums) {
    auto ranks = racks(2, 4, 2);
    EXPECT_DOUBLE_EQ(busiest(LayoutKind::leaves, ranks), 1.25);
    ranks[0].leaf = ranks[1].leaf = ranks[0].root = ranks[1].root = 99;
    name_rates(ranks, 2, 1);
    EXPECT_GT(busiest(LayoutKind::leaves, ranks), 1.25);
}

TEST(Layout, LoneHostOfARackSendsToTheServer) {
    const auto layout = layout_of(LayoutKind::racks, racks(3, 1, 0));
    ASSERT_TRUE(layout);
    for (const LayoutShare& share : layout->shares) {
        for (const Ascent& ascent : share.ascents) EXPECT_EQ(ascent.kind, Kind::direct);
    }
}

TEST(Layout, SlowUplinkIsNamedWithItsRate) {
    auto ranks = racks(2, 4, 2, true);
    name_rates(ranks, 25e9, 10e9);
    const auto layout = best_layout(ranks);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->kind, LayoutKind::one_root);
    EXPECT_TRUE(layout->busiest.is_uplink);
    EXPECT_DOUBLE_EQ(layout->busiest.bits_per_s, 10e9);
}

TEST(Layout, LinkWithoutARateCountsAsTheSlowestNamedHost) {
    auto ranks = racks(1, 3, 0);
    ranks[1].host_bits_per_s = 5;
    ranks[2].host_bits_per_s = 10;
    const auto layout = layout_of(LayoutKind::hosts, ranks);
    ASSERT_TRUE(layout);
    EXPECT_DOUBLE_EQ(layout->busiest.bits_per_s, 5);
    EXPECT_EQ(layout->busiest.rank, 0);
}

TEST(Layout, RankWithoutAnAddressExcludesServers) {
    auto ranks = racks(2, 2, 2);
    ranks[3].serves = false;
    EXPECT_FALSE(best_layout(ranks));
    EXPECT_FALSE(layout_of(LayoutKind::hosts, ranks));
    auto below_root = racks(2, 2, 2, true);
    below_root[3].serves = false;
    EXPECT_EQ(best_layout(below_root)->kind, LayoutKind::one_root);
}

TEST(Layout, RanksOfOneHostUseTheSwitchThatTheyName) {
    auto ranks = racks(1, 3, 1);
    for (LayoutRank& rank : ranks) rank.host = "one";
    EXPECT_EQ(best_layout(ranks)->kind, LayoutKind::one_root);
    for (LayoutRank& rank : ranks) rank.leaf = rank.root = 0;
    EXPECT_EQ(best_layout(ranks)->kind, LayoutKind::hosts);
}

TEST(Layout, MoreUnitsThanTheBitmapHasAreRefused) {
    EXPECT_TRUE(layout_of(LayoutKind::hosts, racks(1, 32, 0)));
    EXPECT_FALSE(layout_of(LayoutKind::hosts, racks(1, 33, 0)));
    EXPECT_TRUE(layout_of(LayoutKind::leaves, racks(32, 2, 32)));
    EXPECT_FALSE(layout_of(LayoutKind::leaves, racks(33, 2, 33)));
}

}  // namespace
}  // namespace atp::control
