// SPDX-License-Identifier: Apache-2.0
#include "protocol/round_trip.h"

#include <gtest/gtest.h>

#include <chrono>

namespace atp::protocol {
namespace {

using std::chrono::milliseconds;

constexpr Duration least_timeout = milliseconds(1);
constexpr Duration most_timeout = milliseconds(200);

TEST(RoundTrip, StartsAtTheLeastTimeout) { EXPECT_EQ(RoundTrip().timeout(least_timeout, most_timeout), least_timeout); }

TEST(RoundTrip, FirstTimeoutIsThreeTimesTheFirstMeasurement) {  // timeout: smoothed + 4 * variation; the first
                                                                // variation is half of the measurement
    RoundTrip round_trip;
    round_trip.measure(milliseconds(10));
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), milliseconds(30));
}

TEST(RoundTrip, LaterMeasurementsAreSmoothedAsInRfc6298) {
    RoundTrip round_trip;
    round_trip.measure(milliseconds(8));   // smoothed: 8, variation: 4
    round_trip.measure(milliseconds(16));  // variation: 4 + (8 - 4) / 4, smoothed: 8 + 8 / 8
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), milliseconds(9 + 4 * 5));
    for (int i = 0; i < 200; ++i) round_trip.measure(milliseconds(16));
    EXPECT_NEAR(static_cast<double>(round_trip.timeout(least_timeout, most_timeout).count()), 16e6, 1e4);
}

TEST(RoundTrip, TimeoutStaysWithinItsBounds) {
    RoundTrip round_trip;
    round_trip.measure(milliseconds(900));
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), most_timeout);
    RoundTrip quick;
    quick.measure(std::chrono::microseconds(1));
    EXPECT_EQ(quick.timeout(least_timeout, most_timeout), least_timeout);
}

TEST(RoundTrip, MinimumBecomesTwiceTheLongestLateRoundTrip) {
    RoundTrip round_trip;
    round_trip.note_late(milliseconds(20));
    round_trip.note_late(milliseconds(5));
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), least_timeout)
        << "a late round trip alone does not raise the minimum";
    round_trip.raise_minimum();
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), milliseconds(40));
    round_trip.raise_minimum();
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), milliseconds(40)) << "a second call keeps the minimum";
}

TEST(RoundTrip, ForgottenLateRoundTripsRaiseNoMinimum) {
    RoundTrip round_trip;
    round_trip.note_late(milliseconds(20));
    round_trip.forget_late();
    round_trip.raise_minimum();
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), least_timeout);
}

TEST(RoundTrip, ResetMinimumKeepsMeasurementsAndForgetsLateRoundTrips) {
    RoundTrip round_trip;
    round_trip.measure(milliseconds(2));
    round_trip.note_late(milliseconds(50));
    round_trip.raise_minimum();
    ASSERT_EQ(round_trip.timeout(least_timeout, most_timeout), milliseconds(100));
    round_trip.note_late(milliseconds(80));
    round_trip.reset_minimum();
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), milliseconds(6));
    round_trip.raise_minimum();
    EXPECT_EQ(round_trip.timeout(least_timeout, most_timeout), milliseconds(6))
        << "the reset also forgets the late round trip of 80 ms";
}

}  // namespace
}  // namespace atp::protocol
