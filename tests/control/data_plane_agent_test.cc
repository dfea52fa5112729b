// SPDX-License-Identifier: Apache-2.0
#include "control/data_plane_agent.h"

#include <gtest/gtest.h>

#include <vector>

#include "fake_plane.h"
#include "wire/control.h"

namespace atp::control {
namespace {

using std::chrono::seconds;

Time at(int second) { return Time{} + seconds(second); }

constexpr JobKey job{7, 0x5EED};

std::vector<std::byte> encoded(const auto& message) {
    std::vector<std::byte> bytes(1024);
    bytes.resize(wire::encode(message, bytes));
    return bytes;
}

// A JOIN and its JOINED pass.
void join(DataPlaneAgent& agent, Time now, std::uint64_t group_number = 0) {
    wire::Join join;
    join.terms.job = job.job;
    join.terms.token = job.token;
    join.terms.lanes = 62;
    join.terms.window_log2 = 8;
    join.terms.aggregators = 4096;
    join.terms.mask1 = 1;
    join.terms.scale = 1e8;
    join.nonce = 3;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
    const wire::Joined joined{
        .nonce = 3, .job = job.job, .token = job.token, .channel = 0, .group_number = group_number};
    const wire::Address member = *wire::Address::parse("10.0.0.1:50000");
    const wire::Address parent = *wire::Address::parse("10.0.0.9:4790");
    agent.handle_message({.bytes = encoded(join), .from = member, .to = parent}, now);
    agent.handle_message({.bytes = encoded(joined), .from = parent, .to = member}, now);
}

TEST(DataPlaneAgent, AdmitsAJobFromItsJoinAndRemovesItWhenJoinsStop) {
    FakePlane plane;
    DataPlaneAgent agent(plane, 4, seconds(3), 0);
    join(agent, at(0));
    ASSERT_TRUE(plane.held.contains(job));
    EXPECT_EQ(plane.held.at(job).level, 0);
    agent.poll(at(2));
    EXPECT_TRUE(plane.held.contains(job));
    agent.poll(at(4));
    EXPECT_TRUE(plane.held.empty());
}

TEST(DataPlaneAgent, LearnsThePlaceOfEachJoinAgainWhenItIsRepeated) {
    FakePlane plane;
    DataPlaneAgent agent(plane, 4, seconds(3), 0);
    join(agent, at(0));
    join(agent, at(1));
    const AdmittedPlace place{.channel = 0, .unit = 1, .mask = 3};
    EXPECT_EQ(plane.places, (std::vector{place, place}));
}

TEST(DataPlaneAgent, LearnsTheNumberOfAGroup) {
    FakePlane plane;
    DataPlaneAgent agent(plane, 4, seconds(3), 0);
    join(agent, at(0));
    join(agent, at(1), 77);
    EXPECT_EQ(plane.groups.at(job), 77U);
}

TEST(DataPlaneAgent, ForwardsAJobUnaggregatedOfWhichOnlyAPartPasses) {
    FakePlane plane;
    DataPlaneAgent agent(plane, 4, seconds(60), 0);
    join(agent, at(0));
    for (int second = 1; second < 6; ++second) {
        agent.poll(at(second));
        plane.packets.events[ATP_EVENT_CLAIMED] += 100;  // claimed here, completed elsewhere
        plane.packets.events[ATP_EVENT_FETCHED] += 100;
    }
    EXPECT_EQ(plane.held.at(job).level, ATP_LEVELS);
    EXPECT_EQ(agent.passing(), std::vector<std::uint32_t>{job.job});
}

TEST(DataPlaneAgent, TakesOverTheJobsOfAnEarlierProcess) {
    FakePlane plane;
    plane.held[job] = {.job = job.job, .token = job.token, .level = ATP_LEVELS};
    DataPlaneAgent agent(plane, 4, seconds(3), 1);
    agent.take_over(at(0));
    EXPECT_EQ(plane.held.at(job).level, 1);
    agent.poll(at(4));
    EXPECT_TRUE(plane.held.empty()) << "no JOIN came";
}

TEST(DataPlaneAgent, JobForWhichThePlaneHadNoRoomIsTriedAgain) {
    FakePlane plane;
    plane.has_room = false;
    DataPlaneAgent agent(plane, 4, seconds(3), 0);
    join(agent, at(0));
    EXPECT_EQ(agent.not_admitted(), 1U);
    EXPECT_TRUE(plane.places.empty());
    plane.has_room = true;
    join(agent, at(1));
    EXPECT_TRUE(plane.held.contains(job));
}

TEST(DataPlaneAgent, RefusesJobsBeyondItsLimit) {
    FakePlane plane;
    DataPlaneAgent agent(plane, 0, seconds(3), 0);
    join(agent, at(0));
    EXPECT_TRUE(plane.held.empty());
    EXPECT_TRUE(plane.places.empty());
    EXPECT_EQ(agent.not_admitted(), 1U);
}

}  // namespace
}  // namespace atp::control
