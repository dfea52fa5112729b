// SPDX-License-Identifier: Apache-2.0
// Whose slice a job has at a switch in the path.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codes_fixture.h"
#include "control/data_plane_agent.h"
#include "control/session_code.h"
#include "fake_plane.h"

namespace atp::control {
namespace {

const wire::Address parent_address = *wire::Address::parse("10.0.0.9:4790");

Time at(int second) { return Time{} + seconds(second); }

// The file of the switch "leaf". `vision` has weight 3.
std::shared_ptr<const Tenants> weighted_tenants() {
    std::vector<Tenant> tenants = tenants_at("leaf")->all();
    tenants.front().weight = 3;
    return std::make_shared<const Tenants>(std::move(tenants));
}

// A switch in the path with the tenants of the switch "leaf", and 1024 aggregators.
class SlicedDataPlane : public ::testing::Test {
  protected:
    SlicedDataPlane() { agent.set_tenants(weighted_tenants()); }

    static DataPlaneAgent agent_of(FakePlane& plane) { return {plane, 4, seconds(3), 0, {.aggregators = 1024}}; }
    void up(const Bytes& join, Time now) {
        agent.handle_message({.bytes = join, .from = member_address, .to = parent_address}, now);
    }
    void down(const Bytes& joined, Time now) {
        agent.handle_message({.bytes = joined, .from = parent_address, .to = member_address}, now);
    }
    static Bytes join_of(const JobKey& job) {
        wire::Join join = a_join;
        join.terms.job = job.job, join.terms.token = job.token;
        return testing::encoded(join);
    }
    // Of a member that joined a switch with this key.
    static Bytes joined_of(const JobKey& job, const crypto::TenantKey& key, std::uint32_t charged) {
        constexpr std::uint64_t boot = 0x6A6B6C6D6E6F7071;
        wire::Joined joined = joined_message();
        joined.job = job.job, joined.token = job.token;
        Bytes bytes(1024);
        const SessionCode code(key.key, joined.nonce, boot, key_of(joined));
        const wire::JoinedCode part{.cookie = 1, .boot = boot, .key = key.id, .charged = charged};
        bytes.resize(code.append(part, Direction::down, bytes, encode_bare(joined, bytes)));
        return bytes;
    }
    void join(const JobKey& job, Time now, const crypto::TenantKey& key, std::uint32_t charged) {
        up(join_of(job), now);
        down(joined_of(job, key_for_switch(key, "leaf"), charged), now);
    }
    void join(const JobKey& job, Time now, const crypto::TenantKey& key) { join(job, now, key, key.id); }

    using Range = std::vector<std::uint32_t>;
    [[nodiscard]] Range slice_of(const JobKey& job) const {
        const auto found = plane.slices.find(job);
        if (found == plane.slices.end()) return {};
        return {found->second.base, found->second.size};
    }
    [[nodiscard]] std::string tenant_of(const JobKey& job) const {
        std::string found = "no slice";
        agent.slices().for_each([&](const JobKey& of, std::string_view tenant, const atp_range&) {
            if (of == job) found = tenant;
        });
        return found;
    }

    FakePlane plane;
    DataPlaneAgent agent = agent_of(plane);
    const JobKey job{7, 0x5EED};
    const JobKey second{8, 0x5EED};
};

TEST_F(SlicedDataPlane, JobHasTheSliceOfTheTenantThatItsJoinedProves) {
    join(job, at(0), vision);
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
    EXPECT_EQ(plane.held.at(job).level, 0) << "it aggregates from now on";
    join(second, at(1), speech);
    EXPECT_EQ(slice_of(job), (Range{0, 768}));
    EXPECT_EQ(slice_of(second), (Range{768, 256}));
    EXPECT_EQ(plane.weights.at(job), 3U);
}

TEST_F(SlicedDataPlane, JobsOfATenantAreOneSenderOnALink) {
    const JobKey third{9, 0x5EED};
    join(job, at(0), vision);
    join(second, at(0), speech);
    join(third, at(0), vision);
    EXPECT_EQ(plane.senders.at(third), plane.senders.at(job));
    EXPECT_NE(plane.senders.at(second), plane.senders.at(job));
}

TEST_F(SlicedDataPlane, JobsOfAFormerTenantAreSendersOfTheirOwn) {
    join(job, at(0), vision);
    join(second, at(0), vision);
    ASSERT_EQ(plane.senders.at(second), plane.senders.at(job));
    agent.set_tenants(nullptr);
    EXPECT_NE(plane.senders.at(second), plane.senders.at(job));
}

// The switch in the path sees of the true JOINs nothing, as if they came in IP fragments.
TEST_F(SlicedDataPlane, H103_MemberWhoseTrueJoinIsHiddenIsChargedToItsOwnTenant) {
    Switch node(first_start, weighted_tenants());
    Member member(vision);
    Member lies(vision, nonce, speech.id);
    for (Member* each : {&member, &lies}) static_cast<void>(each->hear(node.retry()));
    up(lies.join(), node.now);
    EXPECT_TRUE(node.check_join(member.join()).believed);
    down(node.encoded(joined_message()), node.now);
    EXPECT_EQ(tenant_of(key_of(a_join).of_job()), "vision");
}

TEST_F(SlicedDataPlane, SwitchThatJoinsForATenantIsChargedToIt) {
    join(job, at(0), vision);
    join(second, at(1), fabric, speech.id);
    EXPECT_EQ(slice_of(second), (Range{768, 256}));
    EXPECT_EQ(tenant_of(second), "speech");
}

TEST_F(SlicedDataPlane, H103_OnlyAFabricIsChargedForOthers) {
    join(job, at(0), vision, speech.id);
    EXPECT_EQ(tenant_of(job), "");
}

TEST_F(SlicedDataPlane, H103_JoinedThatProvesNoKeyOfTheFileChargesNobody) {
    const auto tenant_after = [&](const JobKey& of, const Bytes& joined) {
        up(join_of(of), at(0));
        down(joined, at(0));
        return tenant_of(of);
    };
    const crypto::TenantKey own = key_for_switch(speech, "leaf");
    EXPECT_EQ(tenant_after({1, 1}, joined_of({1, 1}, own, own.id)), "speech");
    Bytes changed = joined_of({2, 1}, own, own.id);
    changed.back() ^= std::byte{1};
    EXPECT_EQ(tenant_after({2, 1}, changed), "") << "a wrong code";
    EXPECT_EQ(tenant_after({3, 1}, joined_of({3, 1}, key_for_switch(speech, "*"), speech.id)), "") << "another switch";
    EXPECT_EQ(tenant_after({4, 1}, joined_of({4, 1}, tenant_key(99, "speech"), 99)), "") << "an unknown key";
}

// Somebody else answered first, or this switch read its file later than the one that answers.
TEST_F(SlicedDataPlane, H103_JobWithoutATenantGetsTheFirstThatIsProven) {
    wire::Joined bare = joined_message();
    bare.job = job.job, bare.token = job.token;
    up(join_of(job), at(0));
    down(testing::encoded(bare), at(0));
    join(second, at(0), vision);
    EXPECT_EQ(tenant_of(job), "");
    join(job, at(1), speech);
    EXPECT_EQ(tenant_of(job), "speech");
    EXPECT_EQ(plane.held.at(job).key_id, speech.id) << "the next process takes it over";
    EXPECT_EQ(slice_of(job), (Range{768, 256}));
    join(job, at(2), vision);
    EXPECT_EQ(tenant_of(job), "speech");
}

TEST_F(SlicedDataPlane, RecordedMessagesBringAJobBackIntoItsSlice) {
    join(job, at(0), speech);
    agent.poll(at(4));
    EXPECT_FALSE(plane.held.contains(job));
    join(job, at(100), speech);
    EXPECT_EQ(tenant_of(job), "speech");
}

TEST_F(SlicedDataPlane, JobsThatProveNoKeyShareOneSliceOfWeight1) {
    join(job, at(0), vision);
    wire::Joined bare = joined_message();
    for (const JobKey& each : {second, JobKey{9, 1}}) {
        bare.job = each.job, bare.token = each.token;
        up(join_of(each), at(1));
        down(testing::encoded(bare), at(1));
        EXPECT_EQ(slice_of(each), (Range{768, 256}));
    }
}

TEST_F(SlicedDataPlane, ChangeEndsAfterTheAgeingTime) {
    join(job, at(0), vision);
    join(second, at(1), speech);
    agent.poll(at(1));
    EXPECT_EQ(plane.ended, 0);
    agent.poll(at(2));
    EXPECT_EQ(plane.ended, 1);
}

TEST_F(SlicedDataPlane, SliceOfATenantWhoseJobsExpiredIsLentAgain) {
    join(job, at(0), vision);
    join(second, at(1), speech);
    join(job, at(4), vision);
    agent.poll(at(5));
    EXPECT_EQ(slice_of(job), (Range{0, 768})) << "speech has it for a second more";
    agent.poll(at(7));
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
}

TEST_F(SlicedDataPlane, NextProcessKeepsSlicesUntilAChangeThatWasUnderWayHasEnded) {
    plane.held[job] = {.job = job.job, .token = job.token, .level = 0, .key_id = vision.id};
    plane.slices[job] = {0, 512};
    DataPlaneAgent next = agent_of(plane);
    next.set_tenants(weighted_tenants());
    next.take_over(at(0));
    EXPECT_EQ(slice_of(job), (Range{0, 512})) << "old fragments may still be in the slice before that one";
    next.poll(at(1));
    EXPECT_EQ(plane.ended, 1);
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
}

TEST_F(SlicedDataPlane, NextProcessGivesAJobItsSliceBeforeItAggregates) {
    plane.held[job] = {.job = job.job, .token = job.token, .level = ATP_LEVELS, .key_id = vision.id};
    DataPlaneAgent next = agent_of(plane);
    next.set_tenants(weighted_tenants());
    next.take_over(at(0));
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
    EXPECT_EQ(plane.held.at(job).level, 0);
}

TEST_F(SlicedDataPlane, NextProcessWithoutTenantsGivesAllJobsTheWholeTable) {
    plane.held[job] = {.job = job.job, .token = job.token, .level = 0, .key_id = vision.id};
    plane.slices[job] = {0, 512};
    DataPlaneAgent open = agent_of(plane);
    open.take_over(at(0));
    open.poll(at(1));
    EXPECT_EQ(slice_of(job), (Range{0, 1024}));
}

}  // namespace
}  // namespace atp::control
