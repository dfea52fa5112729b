// SPDX-License-Identifier: Apache-2.0
#include "control/switch_room.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

using Answer = SwitchRoom::RoomAnswer;

JobKey job(std::uint32_t number) { return {.job = number, .token = 0x5eed}; }

TEST(SwitchRoom, JobBeyondTheLimitIsRefusedUntilAnotherJobEnds) {
    SwitchRoom room(2, 10);
    EXPECT_EQ(room.take(job(1)), Answer::granted);
    EXPECT_EQ(room.take(job(2)), Answer::granted);
    EXPECT_EQ(room.take(job(3)), Answer::no_job);
    EXPECT_EQ(room.take(job(1)), Answer::granted) << "job 1 already counts, so its second channel needs no further job";
    room.give_back(job(1));
    EXPECT_EQ(room.take(job(3)), Answer::no_job) << "job 1 still has a channel";
    room.give_back(job(1));
    EXPECT_EQ(room.take(job(3)), Answer::granted);
}

TEST(SwitchRoom, ChannelBeyondTheLimitIsRefusedUntilAnotherChannelEnds) {
    SwitchRoom room(8, 2);
    EXPECT_EQ(room.take(job(1)), Answer::granted);
    EXPECT_EQ(room.take(job(1)), Answer::granted);
    EXPECT_EQ(room.take(job(1)), Answer::no_channel);
    EXPECT_EQ(room.take(job(2)), Answer::no_channel);
    room.give_back(job(1));
    EXPECT_EQ(room.take(job(2)), Answer::granted);
}

TEST(SwitchRoom, TwoIncarnationsAreTwoJobs) {
    SwitchRoom room(1, 10);
    EXPECT_EQ(room.take({.job = 1, .token = 1}), Answer::granted);
    EXPECT_EQ(room.take({.job = 1, .token = 2}), Answer::no_job);
    room.give_back({.job = 1, .token = 2});
    EXPECT_EQ(room.take({.job = 1, .token = 2}), Answer::no_job);
}

TEST(SwitchRoom, RefusedChannelDoesNotCount) {
    SwitchRoom room(1, 2);
    EXPECT_EQ(room.take(job(1)), Answer::granted);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(room.take(job(2)), Answer::no_job);
    EXPECT_EQ(room.take(job(1)), Answer::granted);
    room.give_back(job(2));  // job 2 has no channel
    EXPECT_EQ(room.take(job(1)), Answer::no_channel);
}

}  // namespace
}  // namespace atp::control
