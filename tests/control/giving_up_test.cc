// SPDX-License-Identifier: Apache-2.0
// What a rank that fails leaves for the others. tests/store/rendezvous_test.cc shows that they read it.
#include "control/giving_up.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

const Error own_error{
    .operation = Operation::join, .reason = Reason::rejected, .peer = "10.0.0.1:4790", .text = "full"};
const wire::GaveUp of_rank_2 = notice_of(2, {.operation = Operation::join, .reason = Reason::timed_out});

FactRound read(const std::vector<std::string>& values, std::uint32_t world = 3) {
    FactRound round(world, {0, 1, 2});
    for (std::uint32_t rank = 0; rank < values.size(); ++rank) round.take(rank, values[rank]);
    return round;
}

TEST(GivingUp, NewReasonIsToldInEveryRoundAndToTheRanksThatWaitInThis) {
    GivingUp rank(1, 3);
    rank.enter("facts");
    rank.enter("network-0");
    const auto farewell = rank.give_up(own_error, "facts");
    ASSERT_TRUE(farewell);
    EXPECT_TRUE(farewell->is_new);
    EXPECT_EQ(farewell->round, "network-0");
    EXPECT_EQ(farewell->ranks, 3U);
    EXPECT_FALSE(farewell->waits);
    const auto notice = notice_in(farewell->value);
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->rank, 1U);
    EXPECT_EQ(notice->text, "join 10.0.0.1:4790: rejected: full");
}

TEST(GivingUp, RankThatWasInNoRoundTellsThoseOfTheFirst) {
    EXPECT_EQ(GivingUp(1, 3).give_up(own_error, "facts")->round, "facts");
}

TEST(GivingUp, OnlyRankZeroWaitsForTheOthers) {
    EXPECT_TRUE(GivingUp(0, 3).give_up(own_error, "facts")->waits);
    EXPECT_FALSE(GivingUp(2, 3).give_up(own_error, "facts")->waits);
}

TEST(GivingUp, ReasonOfAnotherRankIsPassedOnOnceAndNotReplaced) {
    for (const bool by_round : {true, false}) {
        GivingUp rank(0, 3);
        if (by_round) rank.handle_round(read({stamped(3, ""), stamped(3, ""), stamped(of_rank_2)}));
        if (!by_round) rank.handle_notice(of_rank_2);
        const auto farewell = rank.give_up(own_error, "facts");
        ASSERT_TRUE(farewell);
        EXPECT_FALSE(farewell->is_new);
        EXPECT_EQ(farewell->value, stamped(of_rank_2));
        EXPECT_TRUE(farewell->waits);
        EXPECT_EQ(rank.give_up(own_error, "facts")->value, "");
    }
}

TEST(GivingUp, SecondReasonOfARankIsNotTold) {
    GivingUp rank(1, 3);
    EXPECT_TRUE(rank.give_up(own_error, "facts")->is_new);
    const auto again = rank.give_up(own_error, "facts");
    EXPECT_FALSE(again->is_new);
    EXPECT_EQ(again->value, "");
}

TEST(GivingUp, H94_RanksThatOnlyAnotherExpectsAreToldToo) {
    GivingUp rank(0, 3);
    rank.handle_round(read({stamped(3, ""), stamped(6, ""), stamped(3, "")}));
    rank.handle_round(read({stamped(3, "")}));
    EXPECT_EQ(rank.give_up(own_error, "facts")->ranks, 6U);
}

TEST(GivingUp, SecondProcessOfARankFailsAndLeavesNothing) {
    GivingUp rank(1, 3);
    rank.enter("facts");
    EXPECT_TRUE(rank.handle_arrivals(1));
    const auto second = rank.handle_arrivals(2);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().reason, Reason::mismatched);
    EXPECT_EQ(second.error().text,
              "'facts': rank 1 arrived twice: give each process its own rank, and each communicator its own name");
    EXPECT_FALSE(rank.give_up(second.error(), "facts"));
}

}  // namespace
}  // namespace atp::control
