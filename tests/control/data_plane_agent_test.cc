// SPDX-License-Identifier: Apache-2.0
#include "control/data_plane_agent.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "wire/control.h"
#include "wire/message_code.h"

namespace atp::control {
namespace {

using std::chrono::seconds;

Time at(int second) { return Time{} + seconds(second); }

// Remembers what it was told.
class FakePlane final : public DataPlane {
  public:
    [[nodiscard]] bool admit(const AdmittedJob& job) override {
        if (has_room) held[job.key()] = job;
        return has_room;
    }
    void dismiss(const JobKey& job) override { held.erase(job); }
    void learn_place(const JobKey& job, const AdmittedPlace& place) override {
        if (held.contains(job)) places.push_back(place);
    }
    void learn_group(const ChannelKey& channel, std::uint64_t group_number) override {
        groups[channel.of_job()] = group_number;
    }
    void set_slice(const JobKey& job, const atp_range& slice, std::uint32_t weight) override {
        EXPECT_TRUE(slices.contains(job) || held.at(job).level == ATP_LEVELS) << "it aggregates without a slice";
        slices[job] = slice;
        weights[job] = weight;
    }
    void end_changes() override { ++ended; }
    [[nodiscard]] std::optional<atp_range> slice_of(const JobKey& job) const override {
        const auto found = slices.find(job);
        return found == slices.end() ? std::nullopt : std::optional(found->second);
    }
    void set_level(const JobKey& job, std::uint8_t level) override { held.at(job).level = level; }
    [[nodiscard]] std::vector<AdmittedJob> jobs() const override {
        std::vector<AdmittedJob> all;
        for (const auto& [key, job] : held) all.push_back(job);
        return all;
    }
    [[nodiscard]] std::optional<protocol::SwitchCounters> packets_of(const JobKey& job) const override {
        return held.contains(job) ? std::optional(packets) : std::nullopt;
    }

    bool has_room = true;
    std::map<JobKey, AdmittedJob> held;
    std::map<JobKey, std::uint64_t> groups;
    std::vector<AdmittedPlace> places;
    std::map<JobKey, atp_range> slices;
    std::map<JobKey, std::uint32_t> weights;
    int ended = 0;
    protocol::SwitchCounters packets;
};

constexpr JobKey job{7, 0x5EED};

std::vector<std::byte> encoded(const auto& message) {
    std::vector<std::byte> bytes(1024);
    bytes.resize(wire::encode(message, bytes));
    return bytes;
}

// A JOIN and its JOINED pass. `code`: of the JOIN; nullopt: none.
void join(DataPlaneAgent& agent, Time now, std::uint64_t group_number = 0, const JobKey& of = job,
          const std::optional<wire::JoinCode>& code = {}) {
    wire::Join join;
    join.terms.job = of.job;
    join.terms.token = of.token;
    join.terms.lanes = 62;
    join.terms.window_log2 = 8;
    join.terms.aggregators = 4096;
    join.terms.mask1 = 1;
    join.terms.scale = 1e8;
    join.nonce = 3;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
    const wire::Joined joined{.nonce = 3, .job = of.job, .token = of.token, .channel = 0, .group_number = group_number};
    const wire::Address member = *wire::Address::parse("10.0.0.1:50000");
    const wire::Address parent = *wire::Address::parse("10.0.0.9:4790");
    std::vector<std::byte> bytes = encoded(join);
    if (code) {
        const std::size_t size = bytes.size();
        bytes.resize(size + wire::longest_code_bytes);
        bytes.resize(wire::append_code(*code, bytes, size));
    }
    agent.handle_message({.bytes = bytes, .from = member, .to = parent}, now);
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

// A switch in the path with the tenants a and b, of weights 3 and 1, and 1024 aggregators.
class SlicedDataPlane : public ::testing::Test {
  protected:
    static constexpr std::uint32_t key_of_a = 11;
    static constexpr std::uint32_t key_of_b = 22;
    static constexpr std::uint32_t key_of_fabric = 33;

    SlicedDataPlane() { agent.set_tenants(tenants()); }

    static std::shared_ptr<const Tenants> tenants() {
        Tenant a{.name = "a", .weight = 3};
        a.keys.push_back({.id = key_of_a, .tenant = "a", .at_switch = "leaf", .key = {}});
        Tenant b{.name = "b"};
        b.keys.push_back({.id = key_of_b, .tenant = "b", .at_switch = "leaf", .key = {}});
        return std::make_shared<const Tenants>(std::vector<Tenant>{a, b});
    }
    static DataPlaneAgent agent_of(FakePlane& plane) { return {plane, 4, seconds(3), 0, {.aggregators = 1024}}; }
    void join(const JobKey& job, Time now, std::uint32_t key, std::uint32_t charged = 0) {
        control::join(agent, now, 0, job, wire::JoinCode{.key = key, .charged = charged, .name = "root", .code = {}});
    }
    [[nodiscard]] std::vector<std::uint32_t> slice_of(const JobKey& job) const {
        const auto found = plane.slices.find(job);
        if (found == plane.slices.end()) return {};
        return {found->second.base, found->second.size};
    }

    using Range = std::vector<std::uint32_t>;
    FakePlane plane;
    DataPlaneAgent agent = agent_of(plane);
    JobKey second{8, 0x5EED};
};

TEST_F(SlicedDataPlane, JobHasTheSliceOfTheTenantWhoseKeyItsJoinNames) {
    join(job, at(0), key_of_a);
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
    EXPECT_EQ(plane.held.at(job).level, 0) << "it aggregates from now on";
    join(second, at(1), key_of_b);
    EXPECT_EQ(slice_of(job), (Range{0, 768}));
    EXPECT_EQ(slice_of(second), (Range{768, 256}));
    EXPECT_EQ(plane.weights.at(job), 3U);
}

TEST_F(SlicedDataPlane, SwitchThatJoinsForATenantIsChargedToIt) {
    join(job, at(0), key_of_a);
    join(second, at(1), key_of_fabric, key_of_b);
    EXPECT_EQ(slice_of(second), (Range{768, 256}));
    bool found = false;
    agent.slices().for_each([&](const JobKey& of, std::string_view tenant, const atp_range&) {
        if (of == second) found = tenant == "b";
    });
    EXPECT_TRUE(found);
}

TEST_F(SlicedDataPlane, JobsWithoutAKnownKeyShareOneSliceOfWeight1) {
    join(job, at(0), key_of_a);
    join(second, at(1), 99);
    control::join(agent, at(1), 0, {9, 1});
    EXPECT_EQ(slice_of(second), (Range{768, 256}));
    EXPECT_EQ(slice_of({9, 1}), (Range{768, 256}));
}

TEST_F(SlicedDataPlane, ChangeEndsAfterTheAgeingTime) {
    join(job, at(0), key_of_a);
    join(second, at(1), key_of_b);
    agent.poll(at(1));
    EXPECT_EQ(plane.ended, 0);
    agent.poll(at(2));
    EXPECT_EQ(plane.ended, 1);
}

TEST_F(SlicedDataPlane, SliceOfATenantWhoseJobsExpiredIsLentAgain) {
    join(job, at(0), key_of_a);
    join(second, at(1), key_of_b);
    join(job, at(4), key_of_a);
    agent.poll(at(5));
    EXPECT_EQ(slice_of(job), (Range{0, 768})) << "b has it for a second more";
    agent.poll(at(7));
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
}

TEST_F(SlicedDataPlane, NextProcessKeepsSlicesUntilAChangeThatWasUnderWayHasEnded) {
    plane.held[job] = {.job = job.job, .token = job.token, .level = 0, .key_id = key_of_a};
    plane.slices[job] = {0, 512};
    DataPlaneAgent next = agent_of(plane);
    next.set_tenants(tenants());
    next.take_over(at(0));
    EXPECT_EQ(slice_of(job), (Range{0, 512})) << "old fragments may still be in the slice before that one";
    next.poll(at(1));
    EXPECT_EQ(plane.ended, 1);
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
}

TEST_F(SlicedDataPlane, NextProcessGivesAJobItsSliceBeforeItAggregates) {
    plane.held[job] = {.job = job.job, .token = job.token, .level = ATP_LEVELS, .key_id = key_of_a};
    DataPlaneAgent next = agent_of(plane);
    next.set_tenants(tenants());
    next.take_over(at(0));
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
    EXPECT_EQ(plane.held.at(job).level, 0);
}

TEST_F(SlicedDataPlane, NextProcessWithoutTenantsGivesAllJobsTheWholeTable) {
    plane.held[job] = {.job = job.job, .token = job.token, .level = 0, .key_id = key_of_a};
    plane.slices[job] = {0, 512};
    DataPlaneAgent open = agent_of(plane);
    open.take_over(at(0));
    open.poll(at(1));
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
}

}  // namespace
}  // namespace atp::control
