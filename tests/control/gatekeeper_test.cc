// SPDX-License-Identifier: Apache-2.0
#include "control/gatekeeper.h"

#include <gtest/gtest.h>

#include <set>

#include "support/control_messages.h"
#include "wire/joining_message.h"

namespace atp::control {
namespace {

using std::chrono::seconds;

constexpr Secret secret{0x0123456789ABCDEF, 0xFEDCBA9876543210};
constexpr Time start_time{seconds(1000)};
wire::Address address(const char* text) { return *wire::Address::parse(text); }
const wire::Address sender = address("10.0.0.7:4791");

wire::Join join_with(std::uint64_t cookie) {
    wire::Join join = testing::join_of_worker();
    join.cookie = cookie;
    return join;
}

TEST(Gatekeeper, H67_JoinPassesWithTheCookieThatWasSentToItsAddress) {
    Gatekeeper keeper(secret);
    const auto retry = keeper.handle_join(join_with(0), sender, start_time);
    ASSERT_TRUE(retry);
    EXPECT_EQ(retry->nonce, join_with(0).nonce);
    EXPECT_EQ(retry->job, join_with(0).terms.job);
    EXPECT_EQ(retry->token, join_with(0).terms.token);
    EXPECT_EQ(retry->channel, join_with(0).terms.channel);
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
        const std::uint64_t cookie = keeper.cookie_of(sender, given_at);
        EXPECT_FALSE(keeper.handle_join(join_with(cookie), sender, given_at + seconds(60)));
        EXPECT_TRUE(keeper.handle_join(join_with(cookie), sender, given_at + seconds(120)));
    }
}

TEST(Gatekeeper, CookiesDifferForEachAddressAndAreNeverZero) {
    const Gatekeeper keeper(secret);
    std::set<std::uint64_t> cookies;
    for (std::uint16_t port = 1; port <= 1000; ++port) cookies.insert(keeper.cookie_of(sender.with_port(port), {}));
    EXPECT_EQ(cookies.size(), 1000U);
    EXPECT_FALSE(cookies.contains(0));
}

TEST(Gatekeeper, RetryIsShorterThanTheShortestJoin) {
    Gatekeeper keeper(secret);
    const auto retry = keeper.handle_join(join_with(0), sender, start_time);
    std::array<std::byte, wire::max_control_bytes> bytes{};
    EXPECT_LT(wire::encode(wire::JoiningMessage(*retry), bytes), wire::least_question_bytes);
    EXPECT_GE(wire::encode(wire::JoiningMessage(join_with(0)), bytes), wire::least_question_bytes);
}

}  // namespace
}  // namespace atp::control
