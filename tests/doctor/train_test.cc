// SPDX-License-Identifier: Apache-2.0
#include "doctor/train.h"

#include <gtest/gtest.h>

namespace atp::doctor {
namespace {

Train train_of(unsigned count) {
    Train train(64);
    for (unsigned i = 0; i < count; ++i) train.handle_sent();
    return train;
}

TEST(Train, AnswersInOrderCountNoFault) {
    Train train = train_of(3);
    for (unsigned i = 0; i < 3; ++i) train.handle_answer(i, wire::Ecn::capable_0);
    EXPECT_TRUE(train.complete());
    EXPECT_EQ(train.report().lost(), 0U);
    EXPECT_EQ(train.report().overtaken, 0U);
    EXPECT_EQ(train.report().repeated, 0U);
    EXPECT_EQ(train.report().marks[2], 3U);
}

TEST(Train, MissingAnswersCountAsLost) {
    Train train = train_of(4);
    train.handle_answer(1, wire::Ecn::not_capable);
    EXPECT_FALSE(train.complete());
    EXPECT_EQ(train.report().lost(), 3U);
}

TEST(Train, SecondAnswerCountsAsRepeated) {
    Train train = train_of(2);
    train.handle_answer(0, wire::Ecn::not_capable);
    train.handle_answer(0, wire::Ecn::not_capable);
    EXPECT_EQ(train.report().answered, 1U);
    EXPECT_EQ(train.report().repeated, 1U);
}

TEST(Train, OvertakenAnswersAreCountedWithTheirLargestDistance) {
    Train train = train_of(5);
    for (const unsigned number : {1U, 2U, 4U, 0U, 3U}) train.handle_answer(number, wire::Ecn::not_capable);
    EXPECT_EQ(train.report().overtaken, 2U);   // 0 and 3
    EXPECT_EQ(train.report().most_newer, 3U);  // 1, 2 and 4 before 0
}

TEST(Train, AnswersWithoutAProbeAreIgnored) {
    Train train = train_of(2);
    train.handle_answer(2, wire::Ecn::congested);
    train.handle_answer(~0ULL, wire::Ecn::congested);
    EXPECT_EQ(train.report().answered, 0U);
    EXPECT_EQ(train.report().marks[3], 0U);
}

}  // namespace
}  // namespace atp::doctor
