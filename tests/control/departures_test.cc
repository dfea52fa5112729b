// SPDX-License-Identifier: Apache-2.0
#include "control/departures.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

using std::chrono::seconds;

constexpr ChannelKey channel{.job = 7, .token = 9, .channel = 3};
const HostKey host = HostKey::of(wire::Address::loopback(wire::Family::ipv4, 1));
const HostKey another{.family = 4, .host = {std::byte{9}}};
Time at(int second) { return Time{} + seconds(second); }

TEST(Departures, MessagesUpToTheLastOfTheProcessAreOld) {
    Departures departures;
    EXPECT_FALSE(departures.is_old(channel, 2, 5, 1));
    departures.note(channel, 2, host, 5, 8, at(3));
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
    departures.note(channel, 1, host, 5, 8, at(3));
    departures.note(channel, 2, host, 5, 8, at(5));
    EXPECT_EQ(departures.forget_expired(at(2)), at(3));
    EXPECT_EQ(departures.forget_expired(at(3)), at(5));
    EXPECT_FALSE(departures.is_old(channel, 1, 5, 1));
    EXPECT_TRUE(departures.is_old(channel, 2, 5, 1));
    EXPECT_EQ(departures.forget_expired(at(5)), never);
}

TEST(Departures, RememberMembersThatHadAPositionAlsoWithoutRoom) {
    Departures departures(2);
    departures.note(channel, 1, host, 5, 8, at(3));
    EXPECT_TRUE(departures.has_room(host));
    departures.note(channel, 2, host, 5, 8, at(4));
    EXPECT_FALSE(departures.has_room(host)) << "nobody may take a position now";
    departures.note(channel, 3, host, 5, 8, at(5));
    for (std::uint16_t position = 1; position <= 3; ++position)
        EXPECT_TRUE(departures.is_old(channel, position, 5, 8)) << position;
    EXPECT_EQ(departures.forget_expired(at(4)), at(5));
    EXPECT_TRUE(departures.has_room(host));
}

TEST(Departures, LaterDepartureOfThePositionOutlivesTheEarlierOne) {
    Departures departures(2);
    departures.note(channel, 1, host, 5, 8, at(3));
    departures.forget(channel, 1);
    departures.note(channel, 1, host, 5, 10, at(5));
    EXPECT_FALSE(departures.has_room(host)) << "a position in a loop takes room, too";
    EXPECT_EQ(departures.forget_expired(at(3)), at(5));
    EXPECT_TRUE(departures.is_old(channel, 1, 5, 10));
    EXPECT_EQ(departures.forget_expired(at(5)), never);
    EXPECT_FALSE(departures.is_old(channel, 1, 5, 10));
}

TEST(Departures, HostInALoopLeavesRoomForOthers) {
    Departures departures;
    for (std::size_t round = 0; round < Departures::most_of_host; ++round) {
        EXPECT_TRUE(departures.has_room(host));
        departures.note({.job = 7, .token = round + 1, .channel = 3}, 1, host, 5, 8, at(round == 0 ? 3 : 4));
    }
    EXPECT_FALSE(departures.has_room(host));
    EXPECT_TRUE(departures.has_room(another));
    departures.forget_expired(at(3));
    EXPECT_TRUE(departures.has_room(host));
}

}  // namespace
}  // namespace atp::control
