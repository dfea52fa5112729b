// SPDX-License-Identifier: Apache-2.0
#include "control/switch_room.h"

#include <gtest/gtest.h>

#include <string>

namespace atp::control {
namespace {

using Answer = SwitchRoom::RoomAnswer;

const Time start{std::chrono::seconds(100)};

Owner host(unsigned number) {
    return Owner::of(nullptr, *wire::Address::parse("10.0.0." + std::to_string(number) + ":4790"));
}

Answer take(SwitchRoom& room, const JobKey& job, unsigned of = 1, Time now = start) {
    return room.take(job, host(of), now, true);
}

JobKey job(std::uint32_t number) { return {.job = number, .token = 0x5eed}; }

TEST(SwitchRoom, JobBeyondTheLimitIsRefusedUntilAnotherJobEnds) {
    SwitchRoom room(2, 10);
    EXPECT_EQ(take(room, job(1)), Answer::granted);
    EXPECT_EQ(take(room, job(2)), Answer::granted);
    EXPECT_EQ(take(room, job(3)), Answer::no_job);
    EXPECT_EQ(take(room, job(1)), Answer::granted)
        << "job 1 already counts, so its second channel needs no further job";
    room.give_back(job(1));
    EXPECT_EQ(take(room, job(3)), Answer::no_job) << "job 1 still has a channel";
    room.give_back(job(1));
    EXPECT_EQ(take(room, job(3)), Answer::granted);
}

TEST(SwitchRoom, ChannelBeyondTheLimitIsRefusedUntilAnotherChannelEnds) {
    SwitchRoom room(8, 2);
    EXPECT_EQ(take(room, job(1)), Answer::granted);
    EXPECT_EQ(take(room, job(1)), Answer::granted);
    EXPECT_EQ(take(room, job(1)), Answer::no_channel);
    EXPECT_EQ(take(room, job(2)), Answer::no_channel);
    room.give_back(job(1));
    EXPECT_EQ(take(room, job(2)), Answer::granted);
}

TEST(SwitchRoom, TwoIncarnationsAreTwoJobs) {
    SwitchRoom room(1, 10);
    EXPECT_EQ(take(room, {.job = 1, .token = 1}), Answer::granted);
    EXPECT_EQ(take(room, {.job = 1, .token = 2}), Answer::no_job);
    room.give_back({.job = 1, .token = 2});
    EXPECT_EQ(take(room, {.job = 1, .token = 2}), Answer::no_job);
}

TEST(SwitchRoom, DrainingRoomTakesNoNewJobAndLetsOthersGoOn) {
    SwitchRoom room(8, 10);
    EXPECT_EQ(take(room, job(1)), Answer::granted);
    room.drain(true);
    EXPECT_TRUE(room.drains());
    EXPECT_EQ(take(room, job(2)), Answer::draining);
    EXPECT_EQ(take(room, job(1)), Answer::granted) << "a further channel";
    EXPECT_EQ(room.jobs(), 1U);
    room.give_back(job(1));
    room.give_back(job(1));
    EXPECT_EQ(room.jobs(), 0U);
    EXPECT_EQ(take(room, job(1)), Answer::draining) << "it has given up its place";
    room.drain(false);
    EXPECT_EQ(take(room, job(2)), Answer::granted);
}

TEST(SwitchRoom, RefusedChannelDoesNotCount) {
    SwitchRoom room(1, 2);
    EXPECT_EQ(take(room, job(1)), Answer::granted);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(take(room, job(2)), Answer::no_job);
    EXPECT_EQ(take(room, job(1)), Answer::granted);
    room.give_back(job(2));  // job 2 has no channel
    EXPECT_EQ(take(room, job(1)), Answer::no_channel);
}

void fill(SwitchRoom& room, std::uint32_t jobs, unsigned of = 1) {
    for (std::uint32_t number = 1; number <= jobs; ++number) EXPECT_EQ(take(room, job(number), of), Answer::granted);
}

TEST(SwitchRoom, H98_NewestJobOfTheHostWithMostMakesRoomForAnotherHost) {
    SwitchRoom room(16, 100);
    fill(room, 16);
    EXPECT_EQ(take(room, job(99), 1), Answer::no_job) << "no host makes room for itself";
    EXPECT_EQ(take(room, job(50), 2), Answer::waits);
    EXPECT_TRUE(room.has_ending());
    EXPECT_TRUE(room.must_end(job(16)));
    EXPECT_EQ(take(room, job(50), 2), Answer::waits) << "job 16 has not ended yet";
    EXPECT_FALSE(room.must_end(job(15))) << "one job is enough";
    room.give_back(job(16));
    EXPECT_FALSE(room.has_ending());
    EXPECT_EQ(take(room, job(99), 1), Answer::no_job) << "the place is kept";
    EXPECT_EQ(take(room, job(50), 2), Answer::granted);
}

TEST(SwitchRoom, PlaceIsKeptAsLongAsTheNewcomerAsks) {
    SwitchRoom room(16, 100);
    fill(room, 16);
    EXPECT_EQ(take(room, job(50), 2), Answer::waits);
    room.give_back(job(16));
    EXPECT_EQ(take(room, job(99), 1, start + SwitchRoom::kept_for / 2), Answer::no_job);
    EXPECT_EQ(take(room, job(99), 1, start + SwitchRoom::kept_for), Answer::granted);
}

TEST(SwitchRoom, ProtectedJobsAndHostsWithinTheirShareKeepTheirPlaces) {
    SwitchRoom room(16, 100);
    fill(room, 16);
    for (std::uint32_t number = 1; number <= 16; ++number) room.protect(job(number), start + std::chrono::seconds(30));
    EXPECT_EQ(take(room, job(50), 2), Answer::no_job);
    EXPECT_EQ(take(room, job(50), 2, start + std::chrono::seconds(30)), Answer::waits);

    SwitchRoom shared(16, 100);
    for (std::uint32_t number = 0; number < 16; ++number) {
        EXPECT_EQ(take(shared, job(number), number / 2), Answer::granted);
    }
    EXPECT_EQ(take(shared, job(50), 99), Answer::no_job) << "each host has an eighth";
}

TEST(SwitchRoom, HostThatHasAsManyGetsNoPlaceOfAnother) {
    SwitchRoom room(16, 100);
    fill(room, 8, 1);
    for (std::uint32_t number = 9; number <= 15; ++number) EXPECT_EQ(take(room, job(number), 2), Answer::granted);
    EXPECT_EQ(take(room, job(16), 3), Answer::granted);
    EXPECT_EQ(take(room, job(50), 2), Answer::no_job) << "7 and 8: nobody would gain";
    EXPECT_EQ(take(room, job(51), 3), Answer::waits);
}

TEST(SwitchRoom, JobsOfATenantCountForItWhateverTheirHosts) {
    const Tenant greedy{.name = "greedy"};
    SwitchRoom room(16, 100);
    for (std::uint32_t number = 1; number <= 16; ++number) {
        const wire::Address from = *wire::Address::parse("10.0.1." + std::to_string(number) + ":4790");
        EXPECT_EQ(room.take(job(number), Owner::of(&greedy, from), start, true), Answer::granted);
    }
    EXPECT_EQ(take(room, job(50), 99), Answer::waits) << "16 hosts with one job each would all keep them";
}

TEST(SwitchRoom, ChannelsAreSharedLikeJobs) {
    SwitchRoom room(64, 16);
    for (int i = 0; i < 14; ++i) EXPECT_EQ(take(room, job(1), 1), Answer::granted);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(take(room, job(2), 2), Answer::granted);
    EXPECT_EQ(take(room, job(3), 3), Answer::waits);
    EXPECT_TRUE(room.must_end(job(1)));
    for (int i = 0; i < 14; ++i) room.give_back(job(1));
    EXPECT_EQ(take(room, job(3), 3), Answer::granted);
}

}  // namespace
}  // namespace atp::control
