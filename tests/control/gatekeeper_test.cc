// SPDX-License-Identifier: Apache-2.0
#include "control/gatekeeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/control_messages.h"
#include "wire/joining_message.h"

namespace atp::control {
namespace {

using Question = Gatekeeper::Question;
using std::chrono::seconds;

constexpr Secret secret{0x0123456789ABCDEF, 0xFEDCBA9876543210};
constexpr Time start_time{seconds(1000)};
wire::Address address(const char* text) { return *wire::Address::parse(text); }
const wire::Address sender = address("10.0.0.7:4791");

std::vector<std::byte> join_with(std::uint64_t cookie) {
    wire::Join join = testing::join_of_worker();
    join.cookie = cookie;
    return testing::encoded(join, wire::least_question_bytes);
}

TEST(Gatekeeper, H67_JoinPassesWithTheCookieThatWasSentToItsAddress) {
    Gatekeeper keeper(secret);
    const auto retry = keeper.handle_join(join_with(0), sender, start_time);
    ASSERT_TRUE(retry);
    const wire::Join join = testing::join_of_worker();
    EXPECT_EQ(retry->nonce, join.nonce);
    EXPECT_EQ(retry->job, join.terms.job);
    EXPECT_EQ(retry->token, join.terms.token);
    EXPECT_EQ(retry->channel, join.terms.channel);
    EXPECT_FALSE(keeper.handle_join(join_with(retry->cookie), sender, start_time));
    EXPECT_EQ(keeper.retries(), 1U);
    for (const char* other : {"10.0.0.8:4791", "10.0.0.7:4792", "[2001:db8::1]:4791"}) {
        EXPECT_TRUE(keeper.handle_join(join_with(retry->cookie), address(other), start_time)) << other;
    }
    Gatekeeper of_another_secret({1, 2});
    EXPECT_TRUE(of_another_secret.handle_join(join_with(retry->cookie), sender, start_time));
}

TEST(Gatekeeper, CookieIsValidForOneToTwoMinutes) {
    Gatekeeper keeper(secret);
    for (int second = 0; second < 60; ++second) {
        const Time given_at = start_time + seconds(second);
        const std::uint64_t cookie = keeper.cookie_of(Question::join, sender, given_at);
        EXPECT_FALSE(keeper.handle_join(join_with(cookie), sender, given_at + seconds(60)));
        EXPECT_TRUE(keeper.handle_join(join_with(cookie), sender, given_at + seconds(120)));
    }
}

TEST(Gatekeeper, CookiesOfASwitchWithTenantsAreValidForOneToTwoShortPeriods) {
    EXPECT_EQ(Gatekeeper::short_period(seconds(3)), seconds(3));
    EXPECT_EQ(Gatekeeper::short_period(std::chrono::milliseconds(100)), seconds(2));
    Gatekeeper keeper(secret, {}, {.boot = 7, .name = "leaf"}, Gatekeeper::short_period(seconds(3)));
    const std::uint64_t cookie = keeper.cookie_of(Question::join, sender, start_time);
    EXPECT_FALSE(keeper.handle_join(join_with(cookie), sender, start_time + seconds(3)));
    const auto retry = keeper.handle_join(join_with(cookie), sender, start_time + seconds(6));
    ASSERT_TRUE(retry);
    EXPECT_EQ(retry->boot, 7U);
    EXPECT_EQ(retry->name, "leaf");
}

TEST(Gatekeeper, CookiesDifferForEachAddressAndQuestionAndAreNeverZero) {
    const Gatekeeper keeper(secret);
    std::set<std::uint64_t> cookies;
    for (std::uint16_t port = 1; port <= 1000; ++port) {
        cookies.insert(keeper.cookie_of(Question::join, sender.with_port(port), {}));
        cookies.insert(keeper.cookie_of(Question::stats, sender.with_port(port), {}));
    }
    EXPECT_EQ(cookies.size(), 2000U);
    EXPECT_FALSE(cookies.contains(0));
}

TEST(Gatekeeper, RetryIsShorterThanTheShortestJoin) {
    Gatekeeper keeper(secret);
    const auto retry = keeper.handle_join(join_with(0), sender, start_time);
    std::array<std::byte, wire::max_control_bytes> bytes{};
    EXPECT_LT(wire::encode(wire::JoiningMessage(*retry), bytes), wire::least_question_bytes);
    EXPECT_GE(wire::encode(wire::JoiningMessage(testing::join_of_worker()), bytes), wire::least_question_bytes);
}

// Whoever sends it: a switch must not decode what it may not answer.
TEST(Gatekeeper, JoinIsAskedForItsCookieBeforeTheRestOfItIsRead) {
    Gatekeeper keeper(secret);
    std::vector<std::byte> bytes = join_with(0);
    std::fill(bytes.begin() + 115, bytes.end(), std::byte{0xFF});
    EXPECT_FALSE(wire::decode<wire::Join>(bytes));
    EXPECT_TRUE(keeper.handle_join(bytes, sender, start_time));
    bytes.resize(wire::least_question_bytes - 1);
    EXPECT_FALSE(keeper.handle_join(bytes, sender, start_time)) << "too short for an answer";
    EXPECT_FALSE(keeper.handle_join(testing::encoded(wire::Hello{}, wire::least_question_bytes), sender, start_time));
}

TEST(Gatekeeper, CookieOfAStatsJoinsNothingAndThatOfAJoinReadsNothing) {
    Gatekeeper keeper(secret);
    const auto retry = keeper.handle_stats({.nonce = 5, .snapshot = 3, .part = 2}, sender, start_time);
    ASSERT_TRUE(retry);
    EXPECT_EQ(retry->nonce, 5U);
    EXPECT_EQ(retry->job, 0U);
    EXPECT_EQ(retry->token, 0U);
    EXPECT_FALSE(keeper.handle_stats({.nonce = 5, .cookie = retry->cookie}, sender, start_time));
    EXPECT_TRUE(keeper.handle_join(join_with(retry->cookie), sender, start_time));
    const auto of_join = keeper.handle_join(join_with(0), sender, start_time);
    EXPECT_TRUE(keeper.handle_stats({.nonce = 5, .cookie = of_join->cookie}, sender, start_time));
}

}  // namespace
}  // namespace atp::control
