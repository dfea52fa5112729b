// SPDX-License-Identifier: Apache-2.0
#include "control/departures.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

using std::chrono::seconds;

constexpr ChannelKey channel{.job = 7, .token = 9, .channel = 3};
Time at(int second) { return Time{} + seconds(second); }

TEST(Departures, MessagesUpToTheLastOfTheProcessAreOld) {
    Departures departures;
    EXPECT_FALSE(departures.is_old(channel, 2, 5, 1));
    departures.note(channel, 2, 5, 8, at(3));
    EXPECT_TRUE(departures.is_old(channel, 2, 5, 8));
    EXPECT_TRUE(departures.is_old(channel, 2, 5, 1));
    EXPECT_FALSE(departures.is_old(channel, 2, 5, 9)) << "it joins again";
    EXPECT_FALSE(departures.is_old(channel, 2, 6, 1)) << "another process";
    EXPECT_FALSE(departures.is_old(channel, 3, 5, 1)) << "another position";
    EXPECT_FALSE(departures.is_old({.job = 7, .token = 10, .channel = 3}, 2, 5, 1)) << "another incarnation";
    departures.forget(channel, 2);
    EXPECT_FALSE(departures.is_old(channel, 2, 5, 1));
}

TEST(Departures, EntriesExpireAtTheirTime) {
    Departures departures;
    departures.note(channel, 1, 5, 8, at(3));
    departures.note(channel, 2, 5, 8, at(5));
    EXPECT_EQ(departures.forget_expired(at(2)), at(3));
    EXPECT_EQ(departures.forget_expired(at(3)), at(5));
    EXPECT_FALSE(departures.is_old(channel, 1, 5, 1));
    EXPECT_TRUE(departures.is_old(channel, 2, 5, 1));
    EXPECT_EQ(departures.forget_expired(at(5)), never);
}

TEST(Departures, RememberMembersThatHadAPositionAlsoWithoutRoom) {
    Departures departures(2);
    departures.note(channel, 1, 5, 8, at(3));
    EXPECT_TRUE(departures.has_room());
    departures.note(channel, 2, 5, 8, at(4));
    EXPECT_FALSE(departures.has_room()) << "nobody may take a position now";
    departures.note(channel, 3, 5, 8, at(5));
    for (std::uint16_t position = 1; position <= 3; ++position)
        EXPECT_TRUE(departures.is_old(channel, position, 5, 8)) << position;
    EXPECT_EQ(departures.forget_expired(at(4)), at(5));
    EXPECT_TRUE(departures.has_room());
}

TEST(Departures, LaterDepartureOfThePositionOutlivesTheEarlierOne) {
    Departures departures(2);
    departures.note(channel, 1, 5, 8, at(3));
    departures.forget(channel, 1);
    departures.note(channel, 1, 5, 10, at(5));
    EXPECT_FALSE(departures.has_room()) << "a position in a loop takes room, too";
    EXPECT_EQ(departures.forget_expired(at(3)), at(5));
    EXPECT_TRUE(departures.is_old(channel, 1, 5, 10));
    EXPECT_EQ(departures.forget_expired(at(5)), never);
    EXPECT_FALSE(departures.is_old(channel, 1, 5, 10));
}

}  // namespace
}  // namespace atp::control
