// SPDX-License-Identifier: Apache-2.0
// JOINs that a tree refuses, with the reason of each refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "control/ticket.h"
#include "join_tree_fixture.h"

namespace atp::control {
namespace {

// --- refusals

class StarWithOneMember : public ::testing::Test {
  protected:
    StarWithOneMember() { star.join(join_of_member(0, 2, 0), worker(0)); }
    void expect_second_refused(const wire::Join& join, Refusal reason, const std::string& text) {
        star.forget();
        star.join(join, worker(1));
        star.expect_refused(worker(1), reason, text);
        EXPECT_TRUE(star.events.empty()) << "a refused JOIN changes nothing";
        EXPECT_EQ(star.tree.find(key)->present, 0x1U);
    }

    Tree star;
};

// The answers tell a host that guesses tokens nothing.
TEST_F(StarWithOneMember, OtherTokenIsAnotherJobWhichWaitsForItsMembers) {
    star.forget();
    star.join(but(join_of_member(0, 2, 1), [](auto& join) { join.terms.token = 9; }), worker(1));
    EXPECT_EQ(star.tree.counters().refused, 0U);
    const auto answers = star.sent_to<wire::Joined>(worker(1));
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_FALSE(answers[0].ready);
    EXPECT_EQ(answers[0].missing_members, 0x1U);
    EXPECT_TRUE(star.sent_to<wire::Joined>(worker(0)).empty());
    EXPECT_EQ(star.tree.find(key)->present, 0x1U);
}

TEST_F(StarWithOneMember, RefusalOfOtherTermsNamesTheTerm) {
    using Terms = wire::ChannelTerms;
    const std::vector<std::pair<const char*, void (*)(Terms&)>> changes = {
        {"lanes of a packet", [](Terms& terms) { terms.lanes = 61; }},
        {"window", [](Terms& terms) { terms.window_log2 = 5; }},
        {"audit lane", [](Terms& terms) { terms.audit = true; }},
        {"multicast group", [](Terms& terms) { terms.group.family = 4; }},
        {"number of aggregators", [](Terms& terms) { terms.aggregators = 9; }},
        {"first sequence number", [](Terms& terms) { terms.first_seq = 9; }},
        {"scale", [](Terms& terms) { terms.scale = 1; }},
        {"address of the server", [](Terms& terms) { terms.server = endpoint_of(host(5)); }},
        {"units of the job", [](Terms& terms) { terms.mask1 = 0x3; }},
    };
    for (const auto& [name, change] : changes) {
        Tree other;
        other.join(join_of_member(0, 2, 0), worker(0));
        wire::Join join = join_of_member(0, 2, 1);
        change(join.terms);
        other.join(join, worker(1));
        other.expect_refused(worker(1), Refusal::terms, name);
    }
}

TEST_F(StarWithOneMember, OtherNumberOfMembersIsRefused) {
    expect_second_refused(join_of_member(0, 3, 1), Refusal::terms, "expect different members");
}

TEST_F(StarWithOneMember, OtherLevelIsRefused) {
    expect_second_refused(join_of_unit(0, 0, 1, 0x1, true), Refusal::terms, "level");
}

TEST(JoinObjections, SecondUnitUnderOneRackSwitchIsRefused) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 2, 0, 0, 0x3), worker(0));
    rack.join(join_of_member(1, 2, 1, 2, 0x3), worker(3));
    rack.expect_refused(worker(3), Refusal::terms, "unit 0");
}

TEST_F(StarWithOneMember, TakenPositionIsRefused) {
    star.forget();
    star.join(join_of_member(0, 2, 0), worker(1));
    star.expect_refused(worker(1), Refusal::place, "10.0.0.100:4791");
}

TEST_F(StarWithOneMember, MemberThatChangesItsRankIsRefused) {
    star.forget();
    star.join(join_of_member(0, 2, 0, 1), worker(0));
    star.expect_refused(worker(0), Refusal::place, "before");
}

TEST_F(StarWithOneMember, RankBeyondTheLargestJobIsRefused) {
    expect_second_refused(join_of_member(0, 2, 1, 1023), Refusal::place, "rank 1024");
}

TEST(JoinObjections, AllMembersAreRefusedIfTheirRanksDoNotStartAtZero) {
    for (const std::uint16_t second : {std::uint16_t{0}, std::uint16_t{5}}) {
        Tree star;
        star.join(join_of_member(0, 2, 0), worker(0));
        star.forget();
        star.join(but(join_of_member(0, 2, 1), [&](auto& join) { join.units[0].ranks = {second}; }), worker(1));
        EXPECT_EQ(star.count(Kind::opened), 0U);
        EXPECT_EQ(star.count(Kind::closed), 1U);
        EXPECT_EQ(star.sent_to<wire::Refused>(worker(0)).size(), 1U);
        star.expect_refused(worker(1), Refusal::terms, "ranks");
        EXPECT_EQ(star.tree.channels(), 0U);
    }
}

TEST(JoinObjections, SeveralRacksWithoutAParentAreRefused) {
    Tree rack;
    rack.join(join_of_member(0, 2, 0, 0, 0x3), worker(0));
    rack.expect_refused(worker(0), Refusal::parent, "--parent");
    EXPECT_EQ(rack.tree.channels(), 0U);
}

TEST(JoinObjections, ChannelBeyondTheTableIsRefused) {
    JoinTreeConfig config;
    config.channels = 1;
    Tree star(config);
    for (std::uint16_t other = 0; other < 2; ++other) {
        star.join(but(join_of_member(0, 2, 0), [&](auto& join) { join.terms.channel = other; }), worker(0));
    }
    star.expect_refused(worker(0), Refusal::full, "--channels");
    EXPECT_EQ(star.tree.channels(), 1U);
}

TEST(JoinObjections, JobBeyondTheTableIsRefusedUntilAnotherExpires) {
    JoinTreeConfig config;
    config.jobs = 1;
    Tree star(config);
    const wire::Join other = but(join_of_member(0, 2, 0), [](auto& join) { join.terms.job = 8; });
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(but(join_of_member(0, 2, 0), [](auto& join) { join.terms.channel = 4; }), worker(0));
    star.join(other, worker(1));
    star.expect_refused(worker(1), Refusal::full, "--jobs");
    star.pass(config.hold + std::chrono::seconds(2));
    EXPECT_EQ(star.tree.channels(), 0U);
    star.join(other, worker(1));
    EXPECT_EQ(star.tree.counters().refused, 1U);
    EXPECT_EQ(star.tree.channels(), 1U);
}

TEST(JoinObjections, SwitchWithoutServersRefusesChannelsThatEndHereAndNoOthers) {
    JoinTreeConfig config;
    config.server_bytes = 0;
    Tree star(config);
    star.join(join_of_member(0, 2, 0), worker(0));
    star.expect_refused(worker(0), Refusal::unsupported, "--no-server");
    EXPECT_EQ(star.tree.channels(), 0U);
    star.join(but(join_of_member(0, 2, 0), [](auto& join) { join.terms.server = endpoint_of(host(5)); }), worker(0));
    EXPECT_EQ(star.tree.channels(), 1U) << "the server of this channel is elsewhere";
    EXPECT_EQ(star.tree.counters().refused, 1U);
}

TEST(JoinObjections, ServerBeyondTheMemoryIsRefusedUntilAnotherCloses) {
    JoinTreeConfig config;
    config.server_bytes = server_bytes_of(terms_of(1)) * 3 / 2;
    Tree star(config);
    const wire::Join second = but(join_of_member(0, 1, 0), [](auto& join) { join.terms.channel = 4; });
    star.join(join_of_member(0, 1, 0), worker(0));
    star.join(second, worker(0));
    star.expect_refused(worker(0), Refusal::full, "--server-memory");
    star.leave(0, 0, worker(0));
    star.join(second, worker(0));
    EXPECT_EQ(star.tree.counters().refused, 1U);
}

TEST(JoinObjections, OneChannelDoesNotTakeAllMemoryForServers) {
    Tree star(JoinTreeConfig{});
    star.join(but(join_of_member(0, 1, 0), [](auto& join) { join.terms.window_log2 = 16, join.terms.lanes = 131; }),
              worker(0));
    ASSERT_EQ(star.tree.channels(), 1U);
    star.join(but(join_of_member(0, 1, 0), [](auto& join) { join.terms.job = 8, join.terms.lanes = 352; }), worker(1));
    EXPECT_EQ(star.tree.channels(), 2U);
    EXPECT_EQ(star.tree.counters().refused, 0U);
}

TEST(JoinObjections, H68_MemoryOfAServerIsReservedWhenAllMembersAreThere) {
    JoinTreeConfig config;
    config.server_bytes = server_bytes_of(terms_of(1)) * 3 / 2;
    Tree star(config);
    const auto of_channel = [](std::uint16_t other) {
        return [other](wire::Join& join) { join.terms.channel = other; };
    };
    for (std::uint16_t other = 10; other < 20; ++other) {
        star.join(but(join_of_member(0, 2, 0), of_channel(other)), worker(0));
    }
    EXPECT_EQ(star.tree.counters().refused, 0U) << "members without partners reserve nothing";
    for (unsigned rank = 0; rank < 2; ++rank) star.join(join_of_member(0, 2, rank), worker(rank));
    EXPECT_TRUE(star.tree.find(key)->ready());
    star.forget();
    star.join(but(join_of_member(0, 2, 1), of_channel(10)), worker(1));
    star.expect_refused(worker(1), Refusal::full, "--server-memory");
    EXPECT_EQ(star.tree.find({job, token, 10}), nullptr);
    star.leave(0, 0, worker(0));
    star.leave(0, 1, worker(1));
    for (unsigned rank = 0; rank < 2; ++rank) {
        star.join(but(join_of_member(0, 2, rank), of_channel(11)), worker(rank));
    }
    EXPECT_TRUE(star.tree.find({job, token, 11})->ready()) << "the memory is free again";
}

TEST(JoinObjections, H69_HalfOfTheTablesIsForRunningJobsInTheFirstHoldTime) {
    JoinTreeConfig config = below(host(1));
    config.jobs = 4;
    Tree leaf(config);
    const auto of_job = [](std::uint32_t other) { return [other](wire::Join& join) { join.terms.job = other; }; };
    const auto join_others = [&](std::uint32_t first) {
        for (std::uint32_t other = first; other < first + 4; ++other) {
            leaf.join(but(join_of_member(0, 2, 0, 0, 0x3), of_job(other)), worker(9));
        }
    };
    join_others(100);
    EXPECT_EQ(leaf.tree.channels(), 2U);
    EXPECT_EQ(leaf.tree.counters().deferred, 2U);
    EXPECT_EQ(leaf.tree.counters().refused, 0U) << "they repeat their JOINs";
    for (unsigned rank = 0; rank < 2; ++rank) {
        leaf.join(
            but(begun(join_of_member(0, 2, rank, 0, 0x3)), [](wire::Join& join) { join.ticket = ticket_of({}, key); }),
            worker(rank));
    }
    EXPECT_NE(leaf.tree.find(key), nullptr);
    leaf.now += config.hold;
    leaf.join(but(join_of_member(0, 2, 0, 0, 0x3), of_job(200)), worker(9));
    EXPECT_EQ(leaf.tree.channels(), 4U);
}

// --- restarts

TEST(JoinObjections, RestartedServerRefusesMembersThatHadBegun) {
    Tree star;
    star.join(begun(join_of_member(0, 2, 0)), worker(0));
    star.expect_refused(worker(0), Refusal::restarted, "must form again");
    EXPECT_EQ(star.tree.channels(), 0U);
}

TEST_F(StarWithOneMember, ServerThatIsNotReadyRefusesMembersThatHadBegun) {
    star.forget();
    star.join(begun(join_of_member(0, 2, 1)), worker(1));
    for (unsigned member = 0; member < 2; ++member)
        star.expect_refused(worker(member), Refusal::restarted, "must form again");
    EXPECT_EQ(star.tree.channels(), 0U);
}

TEST(JoinObjections, RefusalOfARestartedRootReachesTheWorkersOfARack) {
    Tree rack(below(host(1)));
    for (unsigned rank = 0; rank < 2; ++rank) rack.join(join_of_member(0, 2, rank, 0, 0x3), worker(rank));
    rack.joined(true, host(1));
    rack.forget();
    rack.pass(std::chrono::milliseconds(1100));
    const auto refresh = rack.sent_to<wire::Join>(host(1));
    ASSERT_GE(refresh.size(), 1U);
    EXPECT_TRUE(refresh[0].begun) << "the rack's switch had received JOINED with ready";

    Tree root;
    root.join(refresh[0], host(2));
    root.expect_refused(host(2), Refusal::restarted, "must form again");

    rack.refused(Refusal::restarted, host(1));
    for (unsigned rank = 0; rank < 2; ++rank) {
        const auto refusals = rack.sent_to<wire::Refused>(worker(rank));
        ASSERT_EQ(refusals.size(), 1U);
        EXPECT_EQ(refusals[0].reason, Refusal::restarted);
        EXPECT_THAT(refusals[0].text, HasSubstr("10.0.0.1:4791")) << "the text names the root, which sent the refusal";
    }
    EXPECT_EQ(rack.count(Kind::closed), 1U);
    EXPECT_EQ(rack.tree.channels(), 0U);
}

// A tree with `units` racks of 32 ranks and a dedicated server, whose host needs the ranks of all.
void join_racks_with_dedicated_server(Tree& root, unsigned units, const std::string& job_name = {}) {
    const std::uint32_t mask1 = units == ATP_BITMAP_BITS ? ~0U : (1U << units) - 1;
    for (unsigned unit = 0; unit < units; ++unit) {
        wire::Join join = join_of_unit(static_cast<std::uint8_t>(unit), 0, 1, mask1);
        join.terms.server = endpoint_of(host(5));
        const auto first = static_cast<std::uint16_t>(unit * ATP_BITMAP_BITS);
        join.units = {{.unit = static_cast<std::uint8_t>(unit),
                       .members = ~0U,
                       .mask0 = ~0U,
                       .ranks = ranks_from(first, ATP_BITMAP_BITS)}};
        join.job_name = job_name;
        root.join(join, host(10 + unit));
    }
}

TEST(JoinObjections, JobWhoseRanksFitOneJoinReachesADedicatedServer) {
    Tree root;
    join_racks_with_dedicated_server(root, 12);
    const auto joins = root.sent_to<wire::Join>(host(5));
    ASSERT_EQ(joins.size(), 1U);
    EXPECT_LE(bytes_of(joins[0]), most_join_bytes(joins[0].terms));
}

TEST(JoinObjections, JobWhoseRanksDoNotFitOneJoinIsRefusedWithTheReason) {
    Tree root;
    join_racks_with_dedicated_server(root, ATP_BITMAP_BITS);
    EXPECT_TRUE(root.sent_to<wire::Join>(host(5)).empty());
    for (const unsigned unit : {0U, 31U}) {
        root.expect_refused(host(10 + unit), Refusal::terms, "a JOIN with all ranks of this job has 2");
    }
    EXPECT_EQ(root.tree.find(key), nullptr);
}

TEST(JoinObjections, StatementsThatDoNotFitOneJoinAreLeftOut) {
    Tree root;
    join_racks_with_dedicated_server(root, 13);
    for (unsigned member = 0; member < 4; ++member) {
        wire::Join join = root.sent_to<wire::Join>(host(5)).front();
        join.level = 1;
        join.units = {join.units[member]};
        join.epoch = 0;
        join.statements = {{.count = 1,
                            .unit = static_cast<std::uint8_t>(member),
                            .text = std::to_string(member) + std::string(99, 'a')}};
        root.join(join, host(10 + member));
    }
    root.pass(std::chrono::milliseconds(100));
    const auto joins = root.sent_to<wire::Join>(host(5));
    EXPECT_FALSE(joins.back().statements.empty());
    EXPECT_LT(joins.back().statements.size(), 4U);
    EXPECT_LE(bytes_of(joins.back()), most_join_bytes(joins.back().terms));
}

TEST(JoinObjections, NameOfTheJobGoesUpUnlessTheRanksNeedItsRoom) {
    const std::string name(wire::max_job_name_bytes, 'n');
    bool is_left_out = false;
    for (unsigned units = 1; units < ATP_BITMAP_BITS; ++units) {
        Tree root;
        join_racks_with_dedicated_server(root, units, name);
        const auto joins = root.sent_to<wire::Join>(host(5));
        if (joins.empty()) break;  // the ranks do not fit
        EXPECT_LE(bytes_of(joins[0]), most_join_bytes(joins[0].terms));
        is_left_out = joins[0].job_name.empty();
        EXPECT_TRUE(is_left_out || joins[0].job_name == name);
        EXPECT_FALSE(is_left_out && units == 1);
    }
    EXPECT_TRUE(is_left_out) << "in the longest of these JOINs";
}

}  // namespace
}  // namespace atp::control
