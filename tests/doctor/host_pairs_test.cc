// SPDX-License-Identifier: Apache-2.0
#include "doctor/host_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "control/branch.h"
#include "control/fact_round.h"
#include "net/clock.h"
#include "net/udp_socket.h"
#include "store/memory_store.h"

namespace atp::doctor {
namespace {

using testing::HasSubstr;

// Findings of all ranks, by rank; each receives at its own address.
std::vector<PairFacts> facts_of(const std::vector<std::string>& listens) {
    store::MemoryStore store;
    std::vector<PairFacts> facts(listens.size());
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < listens.size(); ++rank) {
        ranks.emplace_back([&, rank] {
            store::Rendezvous rendezvous(
                store, {.prefix = "pairs", .rank = rank, .world = static_cast<std::uint32_t>(listens.size())});
            const Time deadline = net::after(net::now(), std::chrono::seconds(20));
            auto found = measure_pairs(rendezvous, listens[rank], std::chrono::seconds(5), deadline);
            EXPECT_TRUE(found) << to_string(found.error());
            if (found) facts[rank] = *std::move(found);
        });
    }
    for (std::thread& rank : ranks) rank.join();
    return facts;
}

TEST(HostPairs, HostsThatReachEachOtherPass) {
    const auto facts = facts_of({"127.0.0.2:0", "127.0.0.3:0", "127.0.0.4:0"});
    for (const PairFacts& each : facts) {
        EXPECT_TRUE(each.faults.empty());
        EXPECT_EQ(each.addresses, facts[0].addresses);
        EXPECT_GT(each.lanes, 62U);
    }
}

// An address of documentation, which no host has.
TEST(HostPairs, RankThatCannotReceiveIsNamedByAll) {
    for (const PairFacts& each : facts_of({"127.0.0.2:0", "203.0.113.9:0"})) {
        ASSERT_EQ(each.faults.size(), 1U);
        EXPECT_EQ(each.faults[0].from, 1U);
        EXPECT_EQ(each.faults[0].to, 1U);
        EXPECT_THAT(each.faults[0].why, HasSubstr("203.0.113.9"));
    }
}

// A socket that never answers stands for a host behind a firewall.
TEST(HostPairs, RankThatDoesNotAnswerIsNamed) {
    auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent);
    store::MemoryStore store;
    const Time deadline = net::after(net::now(), std::chrono::seconds(20));
    std::thread other([&] {
        store::Rendezvous rendezvous(store, {.prefix = "pairs", .rank = 1, .world = 2});
        const wire::ServerFacts place{.address = control::endpoint_of((*silent)->local())};
        const wire::ReachedFacts answers{.lanes = {360}};
        EXPECT_TRUE(rendezvous.all_gather("pair-addresses", control::message_text(place), deadline));
        EXPECT_TRUE(rendezvous.all_gather("pair-answers", control::message_text(answers), deadline));
    });
    store::Rendezvous rendezvous(store, {.prefix = "pairs", .rank = 0, .world = 2});
    const auto facts = measure_pairs(rendezvous, "127.0.0.2:0", std::chrono::milliseconds(300), deadline);
    other.join();
    ASSERT_TRUE(facts) << to_string(facts.error());
    ASSERT_EQ(facts->faults.size(), 1U);
    EXPECT_EQ(facts->faults[0].from, 0U);
    EXPECT_EQ(facts->faults[0].to, 1U);
    EXPECT_EQ(facts->addresses[1], to_string((*silent)->local()));
    EXPECT_EQ(facts->lanes, 360U) << "of the other direction";
}

}  // namespace
}  // namespace atp::doctor
