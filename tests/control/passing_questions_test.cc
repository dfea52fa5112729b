// SPDX-License-Identifier: Apache-2.0
#include "control/passing_questions.h"

#include <gtest/gtest.h>

#include <string>

namespace atp::control {
namespace {

constexpr ChannelKey key{.job = 7, .token = 1, .channel = 0};

Time at(int second) { return Time{} + std::chrono::seconds(second); }
wire::Address address(const char* text) { return *wire::Address::parse(text); }
const wire::Address member = address("10.0.0.1:50000");
const wire::Address flooding = address("10.0.0.99:1");
const wire::Address parent = address("10.0.9.1:4790");

void ask(PassingQuestions& questions, const wire::Address& from, std::uint64_t nonce, Time now) {
    questions.ask({.bytes = {}, .from = from, .to = parent}, nonce, key,
                  {.place = {.channel = 0, .unit = 1, .mask = 3}}, now);
}
bool is_answered(PassingQuestions& questions, std::uint64_t nonce, Time now) {
    return questions.answer({.bytes = {}, .from = parent, .to = member}, nonce, key, now).has_value();
}

TEST(PassingQuestions, HaveOneAnswerWithinFiveSeconds) {
    PassingQuestions questions;
    ask(questions, member, 1, at(0));
    EXPECT_FALSE(is_answered(questions, 2, at(0))) << "another nonce";
    EXPECT_TRUE(is_answered(questions, 1, at(5)));
    EXPECT_FALSE(is_answered(questions, 1, at(5)));
    ask(questions, member, 1, at(5));
    EXPECT_FALSE(is_answered(questions, 1, at(11)));
    EXPECT_EQ(questions.size(), 0U);
}

TEST(PassingQuestions, ThatAreRepeatedWaitFromTheLastTime) {
    PassingQuestions questions;
    ask(questions, member, 1, at(0));
    ask(questions, member, 1, at(4));
    EXPECT_EQ(questions.size(), 1U);
    EXPECT_TRUE(is_answered(questions, 1, at(9)));
}

TEST(PassingQuestions, FloodOfAHostPushesOutNoOther) {
    PassingQuestions questions;
    ask(questions, member, 1, at(0));
    for (std::uint64_t nonce = 0; nonce < 10'000; ++nonce) ask(questions, flooding, nonce, at(0));
    EXPECT_EQ(questions.size(), 1 + PassingQuestions::most_of_a_host);
    EXPECT_TRUE(is_answered(questions, 1, at(1)));
    questions.forget_expired(at(6));
    EXPECT_EQ(questions.size(), 0U);
    ask(questions, flooding, 1, at(6));
    EXPECT_EQ(questions.size(), 1U) << "its limit is free again";
}

TEST(PassingQuestions, BeyondTheLimitTheOldestIsForgotten) {
    PassingQuestions questions;
    ask(questions, member, 1, at(0));
    for (unsigned host = 0; host < 8; ++host) {
        const wire::Address from = address(("10.1.0." + std::to_string(host) + ":1").c_str());
        for (std::uint64_t nonce = 0; nonce < PassingQuestions::most_of_a_host; ++nonce) {
            ask(questions, from, nonce, at(1));
        }
    }
    EXPECT_EQ(questions.size(), PassingQuestions::most);
    EXPECT_FALSE(is_answered(questions, 1, at(1)));
    ask(questions, member, 1, at(1));
    EXPECT_TRUE(is_answered(questions, 1, at(1)));
}

}  // namespace
}  // namespace atp::control
