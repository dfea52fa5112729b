// SPDX-License-Identifier: Apache-2.0
#include "control/address_buckets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Secret secret{1, 2};
constexpr EventRate five_at_once{.each = milliseconds(50), .most = milliseconds(250)};
wire::Address address(const std::string& text) { return *wire::Address::parse(text); }

unsigned taken(AddressBuckets& buckets, const wire::Address& from, unsigned tries, Time now) {
    unsigned count = 0;
    for (unsigned i = 0; i < tries; ++i) count += buckets.take(from, now) ? 1U : 0U;
    return count;
}

TEST(AddressBuckets, HostHasABurstAndThenARate) {
    AddressBuckets buckets(secret, five_at_once);
    Time now{seconds(100)};
    const wire::Address host = address("10.0.0.1:1000");
    EXPECT_EQ(taken(buckets, host, 100, now), 5U);
    EXPECT_EQ(taken(buckets, address("10.0.0.1:1001"), 100, now), 0U) << "a host has many ports";
    EXPECT_EQ(taken(buckets, address("10.0.0.2:1000"), 100, now), 5U);
    now += milliseconds(100);
    EXPECT_EQ(taken(buckets, host, 100, now), 2U);
    now += seconds(10);
    EXPECT_EQ(taken(buckets, host, 100, now), 5U);
}

TEST(AddressBuckets, HostOfIpv6IsANetworkOf64Bits) {
    AddressBuckets buckets(secret, five_at_once);
    const Time now{seconds(100)};
    EXPECT_EQ(taken(buckets, address("[2001:db8::1]:1"), 100, now), 5U);
    EXPECT_EQ(taken(buckets, address("[2001:db8::2:3]:1"), 100, now), 0U);
    EXPECT_EQ(taken(buckets, address("[2001:db8:0:1::1]:1"), 100, now), 5U);
}

TEST(AnswerLimit, HostsThatAskNowAndThenGetAnswersBesideAFlood) {
    AnswerLimit limit(secret);
    Time now{seconds(100)};
    unsigned flood = 0;
    unsigned others = 0;
    for (unsigned i = 0; i < 100'000; ++i) {
        now += std::chrono::microseconds(10);
        flood += limit.admit(address("10.0.0.66:1"), now) ? 1U : 0U;
        if (i % 100 == 0) others += limit.admit(address(fmt::format("10.0.1.{}:1", i / 100 % 200)), now) ? 1U : 0U;
    }
    EXPECT_EQ(others, 1000U);
    EXPECT_LT(flood, 25'000U);
    EXPECT_EQ(limit.dropped(), 100'000U - flood);
}

// Nobody can tell forged addresses from others: the answers are bounded in all.
TEST(AnswerLimit, FloodFromForgedAddressesGetsABoundedNumberOfAnswers) {
    AnswerLimit limit(secret);
    Time now{seconds(100)};
    unsigned answers = 0;
    for (unsigned i = 0; i < 100'000; ++i) {
        now += std::chrono::microseconds(10);
        answers +=
            limit.admit(address(fmt::format("10.{}.{}.{}:1", 1 + i / 65'536, i / 256 % 256, i % 256)), now) ? 1U : 0U;
    }
    EXPECT_NEAR(answers, 24'000U, 100U) << "20,000 in a second, and 4,000 at once";
}

TEST(AnswerLimit, QuestionsBelowHalfOfTheLimitAreNotCountedForEachHost) {
    AnswerLimit limit(secret);
    const Time now{seconds(100)};
    for (unsigned i = 0; i < 2000; ++i)
        EXPECT_TRUE(limit.admit(address("10.0.0.1:1"), now)) << "a host with many ranks";
}

}  // namespace
}  // namespace atp::control
