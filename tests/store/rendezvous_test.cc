// SPDX-License-Identifier: Apache-2.0
#include "store/rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "net/clock.h"
#include "store/memory_store.h"
#include "store_fixture.h"

namespace atp::store {
namespace {

using test::error_of;
using test::failed_with;
using test::longest_wait;
using test::says;
using test::shortly;

using Values = std::vector<std::string>;

Party party(std::uint32_t rank, std::uint32_t world, std::uint32_t generation = 0) {
    return {.prefix = "job", .generation = generation, .rank = rank, .world = world};
}

// Runs each rank's part in a thread of its own.
void run_ranks(std::uint32_t world, const std::function<void(std::uint32_t)>& part) {
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) ranks.emplace_back(part, rank);
    for (std::thread& rank : ranks) rank.join();
}

TEST(Rendezvous, EveryRankReceivesEveryValue) {
    MemoryStore store;
    run_ranks(5, [&](std::uint32_t rank) {
        Rendezvous meeting(store, party(rank, 5));
        const auto values = meeting.all_gather("addresses", "of " + std::to_string(rank), longest_wait());
        EXPECT_EQ(values, (Values{"of 0", "of 1", "of 2", "of 3", "of 4"})) << error_of(values);
        const auto again = meeting.all_gather("tokens", std::string(rank, 'x'), longest_wait());
        EXPECT_EQ(again, (Values{"", "x", "xx", "xxx", "xxxx"})) << error_of(again);
    });
}

TEST(Rendezvous, SixtyFourProcessesExchangeValues) {
    const auto server = test::serve();
    constexpr std::uint32_t world = 64;
    std::atomic<std::uint32_t> through = 0;
    run_ranks(world, [&](std::uint32_t rank) {
        const auto store = test::connect(server->local());
        Rendezvous meeting(*store, party(rank, world));
        const auto values =
            meeting.all_gather("addresses", std::string(1000, 'x') + std::to_string(rank), longest_wait());
        ASSERT_TRUE(values) << error_of(values);
        for (std::uint32_t at = 0; at < world; ++at) {
            EXPECT_EQ((*values)[at], std::string(1000, 'x') + std::to_string(at));
        }
        ASSERT_TRUE(rank != 0 || meeting.announce("token", "from 0"));
        const auto token = meeting.collect("token", {0}, longest_wait());
        EXPECT_EQ(token, Values{"from 0"}) << error_of(token);
        const auto met = meeting.barrier("ready", longest_wait());
        EXPECT_TRUE(met) << error_of(met);
        ++through;
    });
    EXPECT_EQ(through, world);
}

TEST(Rendezvous, MissingRanksAreNamed) {
    MemoryStore store;
    Rendezvous zero(store, party(0, 4));
    Rendezvous two(store, party(2, 4));
    ASSERT_TRUE(failed_with(two.all_gather("addresses", "", net::now()), Reason::timed_out));
    const auto met = zero.all_gather("addresses", "", shortly());
    ASSERT_TRUE(failed_with(met, Reason::timed_out)) << error_of(met);
    EXPECT_EQ(met.error().operation, Operation::rendezvous);
    EXPECT_GE(met.error().elapsed, std::chrono::milliseconds(20));
    EXPECT_EQ(met.error().text, "'addresses': ranks 1 and 3 of 4 did not arrive: check that these processes run");
    Rendezvous three(store, party(3, 4));
    const auto late = three.barrier("addresses", shortly());
    ASSERT_TRUE(failed_with(late, Reason::timed_out)) << error_of(late);
    EXPECT_EQ(late.error().text, "'addresses': rank 1 of 4 did not arrive: check that these processes run");
}

TEST(Rendezvous, FirstEightOfManyMissingRanksAreNamedOverTcp) {
    const auto server = test::serve();
    const auto store = test::connect(server->local());
    Rendezvous alone(*store, party(3, 300));
    const auto met = alone.barrier("ready", shortly());
    ASSERT_TRUE(failed_with(met, Reason::timed_out)) << error_of(met);
    EXPECT_EQ(
        met.error().text,
        "'ready': ranks 0, 1, 2, 4, 5, 6, 7, 8 and 291 more of 300 did not arrive: check that these processes run");
    EXPECT_EQ(met.error().peer, to_string(server->local()));
}

TEST(Rendezvous, CollectWaitsForTheNamedRanksOnly) {
    MemoryStore store;
    Rendezvous zero(store, party(0, 2));
    Rendezvous one(store, party(1, 2));
    const auto nobody = one.collect("token", {0}, shortly());
    ASSERT_TRUE(failed_with(nobody, Reason::timed_out)) << error_of(nobody);
    EXPECT_EQ(nobody.error().text, "'token': rank 0 of 2 did not arrive: check that these processes run");
    EXPECT_FALSE(one.has_come("token", 0));
    ASSERT_TRUE(zero.announce("token", "value"));
    EXPECT_TRUE(one.has_come("token", 0));
    EXPECT_EQ(one.collect("token", {0}, longest_wait()), Values{"value"});
}

TEST(Rendezvous, BarrierReturnsOnlyAfterTheLastRankCalledIt) {
    MemoryStore store;
    constexpr std::uint32_t world = 8;
    constexpr int rounds = 20;
    std::atomic<std::uint32_t> came = 0;
    run_ranks(world, [&](std::uint32_t rank) {
        Rendezvous meeting(store, party(rank, world));
        for (std::uint32_t round = 1; round <= rounds; ++round) {
            ++came;
            ASSERT_TRUE(meeting.barrier("round " + std::to_string(round), longest_wait()));
            EXPECT_GE(came, round * world);
        }
    });
}

TEST(Rendezvous, GenerationsAreSeparate) {
    MemoryStore store;
    Rendezvous former(store, party(0, 1));
    EXPECT_EQ(former.all_gather("addresses", "old", longest_wait()), Values{"old"});
    run_ranks(2, [&](std::uint32_t rank) {
        Rendezvous next(store, party(rank, 2, 1));
        EXPECT_EQ(next.all_gather("addresses", "new", longest_wait()), (Values{"new", "new"}));
    });
    Rendezvous eleventh(store, party(0, 1, 11));
    EXPECT_EQ(eleventh.all_gather("addresses", "eleventh", longest_wait()), Values{"eleventh"});
}

const std::vector<std::string_view> all_names{"addresses", "token"};

Error refused_by_switch() {
    return {.operation = Operation::join, .reason = Reason::rejected, .peer = "10.0.0.1:4790", .text = "it is full"};
}

TEST(Rendezvous, RankThatGivesUpFailsTheOthersAtOnce) {
    const auto server = test::serve();
    run_ranks(3, [&](std::uint32_t rank) {
        if (rank == 2) return;  // never arrives
        const auto store = test::connect(server->local());
        Rendezvous meeting(*store, party(rank, 3));
        if (rank == 1) {
            meeting.give_up(refused_by_switch(), all_names);
            return;
        }
        const auto values = meeting.all_gather("addresses", "", longest_wait());
        ASSERT_TRUE(failed_with(values, Reason::rejected)) << error_of(values);
        EXPECT_EQ(values.error().peer, "rank 1");
        EXPECT_TRUE(says(error_of(values), "it is full")) << error_of(values);
    });
}

TEST(Rendezvous, LateRankLearnsTheFirstReason) {
    MemoryStore store;
    Rendezvous zero(store, party(0, 3));
    Rendezvous one(store, party(1, 3));
    Rendezvous two(store, party(2, 3));
    EXPECT_FALSE(one.given_up());
    ASSERT_TRUE(failed_with(zero.all_gather("addresses", "", net::now()), Reason::timed_out));
    zero.give_up(refused_by_switch(), all_names);
    EXPECT_TRUE(failed_with(one.all_gather("addresses", "", longest_wait()), Reason::rejected));
    const auto token = two.collect("token", {0}, longest_wait());
    EXPECT_TRUE(failed_with(token, Reason::rejected));
    // They know the reason, so a later report of their own does not replace it.
    one.give_up({.operation = Operation::join, .reason = Reason::failed, .text = "consequence"}, all_names);
    const auto reason = two.given_up();
    ASSERT_TRUE(reason);
    EXPECT_EQ(reason->value().peer, "rank 0");
    EXPECT_EQ(reason->value().reason, Reason::rejected);
}

// Rank 0 is past the operation in which the others learn the reason, and waits for them in the next one.
TEST(Rendezvous, RankThatWaitsForOneThatLearnedTheReasonFailsToo) {
    MemoryStore store;
    Rendezvous zero(store, party(0, 3));
    Rendezvous one(store, party(1, 3));
    Rendezvous two(store, party(2, 3));
    ASSERT_TRUE(one.announce("addresses", ""));
    two.give_up(refused_by_switch(), all_names);
    ASSERT_TRUE(one.given_up());
    one.give_up({.operation = Operation::join, .reason = Reason::failed, .text = "consequence"}, all_names);
    const auto values = zero.all_gather(all_names[1], "", longest_wait());
    ASSERT_TRUE(failed_with(values, Reason::rejected)) << error_of(values);
    EXPECT_EQ(values.error().peer, "rank 2");
}

TEST(Rendezvous, SecondProcessOfARankLeavesTheOthersRunning) {
    MemoryStore store;
    Rendezvous zero(store, party(0, 2));
    Rendezvous again(store, party(0, 2));
    Rendezvous one(store, party(1, 2));
    ASSERT_TRUE(failed_with(zero.all_gather("addresses", "", net::now()), Reason::timed_out));
    const auto taken = again.all_gather("addresses", "", longest_wait());
    ASSERT_TRUE(failed_with(taken, Reason::mismatched));
    again.give_up(taken.error(), all_names);
    EXPECT_TRUE(one.all_gather("addresses", "", longest_wait()));
    EXPECT_FALSE(one.given_up());
}

TEST(Rendezvous, RankOfAWiderWorldLearnsFromTheOthersThatItDiffers) {
    MemoryStore store;
    run_ranks(4, [&](std::uint32_t rank) {
        Rendezvous meeting(store, party(rank, rank == 2 ? 6 : 4));
        const auto met = meeting.all_gather("addresses", "", longest_wait());
        ASSERT_TRUE(failed_with(met, Reason::mismatched)) << error_of(met);
        EXPECT_EQ(met.error().text, "rank 2 expects a world of 6 ranks, the others 4: use one world size");
        meeting.give_up(met.error(), all_names);
    });
}

// Its process may serve the store, and end as soon as it has failed.
TEST(Rendezvous, RankZeroThatGivesUpWaitsUntilTheOthersKnow) {
    MemoryStore store;
    std::atomic<bool> told = false;
    std::thread late([&] {
        Rendezvous one(store, party(1, 3));
        ASSERT_TRUE(one.announce("addresses", ""));
        EXPECT_TRUE(store.get("job/0/gave-up", longest_wait()));
        const auto values = one.collect("addresses", {0, 1, 2}, longest_wait());
        ASSERT_TRUE(failed_with(values, Reason::rejected)) << error_of(values);
        told = true;
        one.give_up(values.error(), all_names);
    });
    Rendezvous zero(store, party(0, 3));
    ASSERT_TRUE(store.get("job/0/addresses/1", longest_wait()));
    zero.give_up(refused_by_switch(), all_names);
    EXPECT_TRUE(told) << "rank 2 never came, so nobody waits for it";
    late.join();
}

TEST(Rendezvous, InvalidNameOrPartyIsRefused) {
    MemoryStore store;
    Rendezvous good(store, party(0, 1));
    EXPECT_TRUE(failed_with(good.barrier("", longest_wait()), Reason::malformed));
    EXPECT_TRUE(failed_with(good.barrier("a/b", longest_wait()), Reason::malformed));
    Rendezvous outside(store, party(2, 2));
    EXPECT_TRUE(failed_with(outside.barrier("ready", longest_wait()), Reason::malformed));
    EXPECT_TRUE(failed_with(outside.collect("ready", {0}, longest_wait()), Reason::malformed));
    Rendezvous nameless(store, {.prefix = "", .generation = 0, .rank = 0, .world = 1});
    EXPECT_TRUE(failed_with(nameless.barrier("ready", longest_wait()), Reason::malformed));
}

TEST(Rendezvous, ClosedStoreFailsTheRendezvous) {
    MemoryStore store;
    std::thread closer([&] {
        EXPECT_TRUE(store.get("job/0/ready/0", longest_wait()));
        store.close();
    });
    Rendezvous zero(store, party(0, 2));
    const auto met = zero.barrier("ready", longest_wait());
    closer.join();
    EXPECT_TRUE(failed_with(met, Reason::closed)) << error_of(met);
}

}  // namespace
}  // namespace atp::store
