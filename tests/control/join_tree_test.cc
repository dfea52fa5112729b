// SPDX-License-Identifier: Apache-2.0
// Which workers may join, how members leave or expire, and which members are notified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

// --- readiness

TEST(JoinTree, StarIsReadyWhenTheLastWorkerJoins) {
    Tree star;
    star.join(join_of_member(0, 3, 0), worker(0));
    star.join(join_of_member(0, 3, 2), worker(2));
    EXPECT_EQ(star.count(Kind::admitted), 1U);
    EXPECT_EQ(star.count(Kind::opened), 0U);
    const auto waiting = star.sent_to<wire::Joined>(worker(2));
    ASSERT_EQ(waiting.size(), 1U);
    EXPECT_FALSE(waiting[0].ready);
    EXPECT_EQ(waiting[0].missing_units, 0x1U);
    EXPECT_EQ(waiting[0].missing_members, 0x2U);

    star.join(join_of_member(0, 3, 1), worker(1));
    EXPECT_EQ(star.count(Kind::opened), 1U);
    for (unsigned rank = 0; rank < 3; ++rank) EXPECT_TRUE(star.told_ready(worker(rank))) << rank;
    const Branch* branch = star.tree.find(job, channel);
    ASSERT_NE(branch, nullptr);
    EXPECT_TRUE(branch->hosts);
    ASSERT_TRUE(branch->membership().has_value());
    EXPECT_EQ(branch->membership()->workers(), 3U);
    EXPECT_EQ(branch->child_of_rank[2], 2);
}

TEST(JoinTree, WorkersGetReadyOnlyAfterTheServerIsOpen) {
    Tree star;
    star.opens = false;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    EXPECT_FALSE(star.told_ready(worker(0)));
    EXPECT_FALSE(star.told_ready(worker(1)));
    star.tree.opened(job, channel);
    star.drain();
    EXPECT_TRUE(star.told_ready(worker(0)));
    EXPECT_TRUE(star.told_ready(worker(1)));
}

TEST(JoinTree, ServerWithoutMemoryIsRefusedToAllWorkersAndForgotten) {
    Tree star;
    star.opens = false;
    star.lacks_memory = true;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.forget();
    star.join(join_of_member(0, 2, 1), worker(1));
    star.expect_refused(worker(0), Refusal::full, "no memory");
    star.expect_refused(worker(1), Refusal::full, "no memory");
    EXPECT_EQ(star.count(Kind::closed), 1U);
    EXPECT_EQ(star.tree.channels(), 0U);

    star.forget();
    star.lacks_memory = false;
    star.opens = true;
    for (unsigned rank = 0; rank < 2; ++rank) star.join(join_of_member(0, 2, rank), worker(rank));
    EXPECT_TRUE(star.told_ready(worker(0))) << "the place is free again";
}

TEST(JoinTree, RepeatedJoinIsAnsweredAndChangesNothing) {
    Tree star;
    for (int time = 0; time < 3; ++time) {
        for (unsigned rank = 0; rank < 2; ++rank) star.join(join_of_member(0, 2, rank), worker(rank));
    }
    EXPECT_EQ(star.count(Kind::admitted), 1U);
    EXPECT_EQ(star.count(Kind::opened), 1U);
    EXPECT_EQ(star.tree.counters().refused, 0U);
    EXPECT_GE(star.sent_to<wire::Joined>(worker(1)).size(), 3U);
}

TEST(JoinTree, RackSwitchJoinsItsParentWhenAllItsWorkersJoined) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(1, 2, 0, 2, 0x7), worker(2));
    EXPECT_TRUE(rack.sent_to<wire::Join>(host(1)).empty());
    rack.join(join_of_member(1, 2, 1, 2, 0x7), worker(3));
    const auto up = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_EQ(up[0].level, 1);
    EXPECT_FALSE(up[0].begun);
    EXPECT_EQ(up[0].terms, terms_of(0x7));
    EXPECT_EQ(up[0].units, join_of_unit(1, 2, 2, 0x7).units);
    EXPECT_FALSE(rack.told_ready(worker(2)));

    rack.joined(false, host(1), token, 0x5);
    rack.join(join_of_member(1, 2, 0, 2, 0x7), worker(2));
    const auto waiting = rack.sent_to<wire::Joined>(worker(2)).back();
    EXPECT_EQ(waiting.missing_units, 0x5U) << "as the root reports";
    EXPECT_EQ(waiting.missing_members, 0U);

    rack.joined(true, host(9));
    EXPECT_TRUE(rack.told_ready(worker(2)));
    EXPECT_TRUE(rack.told_ready(worker(3)));
    EXPECT_EQ(rack.tree.find(job, channel)->up_data, host(9)) << "packets go to where the answer came from";
    EXPECT_EQ(rack.count(Kind::opened), 0U);
}

TEST(JoinTree, RootIsReadyWithRacksAndDirectWorkers) {
    Tree root;
    root.join(join_of_unit(0, 0, 2, 0x7), host(2));
    root.join(join_of_unit(2, 4, 1, 0x7, true), worker(4));
    const auto waiting = root.sent_to<wire::Joined>(worker(4));
    ASSERT_EQ(waiting.size(), 1U);
    EXPECT_EQ(waiting[0].missing_units, 0x2U);
    EXPECT_EQ(waiting[0].missing_members, 0U);
    root.join(join_of_unit(1, 2, 2, 0x7), host(3));
    EXPECT_EQ(root.count(Kind::opened), 1U);
    EXPECT_TRUE(root.told_ready(host(2)));
    EXPECT_TRUE(root.told_ready(host(3)));
    EXPECT_TRUE(root.told_ready(worker(4)));
    const auto members = root.tree.find(job, channel)->membership();
    ASSERT_TRUE(members.has_value());
    EXPECT_EQ(members->workers(), 5U);
    EXPECT_TRUE(members->unit(2).direct);
    EXPECT_EQ(members->place(3).unit, 1);
}

TEST(JoinTree, JobOfOneUnitIsReadyWithoutTheParent) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 2, 0), worker(0));
    rack.join(join_of_member(0, 2, 1), worker(1));
    EXPECT_TRUE(rack.sent_to<wire::Join>(host(1)).empty());
    EXPECT_TRUE(rack.tree.find(job, channel)->hosts);
    EXPECT_TRUE(rack.told_ready(worker(0)));
}

TEST(JoinTree, LastSwitchJoinsAServerOnAnotherHostAndStillHostsTheChannel) {
    const auto elsewhere = [](wire::Join join) {
        join.terms.server = endpoint_of(host(50));
        return join;
    };
    for (const bool two_levels : {false, true}) {
        Tree last;
        if (two_levels) {
            last.join(elsewhere(join_of_unit(0, 0, 2, 0x3)), host(2));
            last.join(elsewhere(join_of_unit(1, 2, 1, 0x3, true)), worker(2));
        } else {
            last.join(elsewhere(join_of_member(0, 2, 0)), worker(0));
            last.join(elsewhere(join_of_member(0, 2, 1)), worker(1));
        }
        EXPECT_EQ(last.count(Kind::opened), 0U);
        const auto up = last.sent_to<wire::Join>(host(50));
        ASSERT_EQ(up.size(), 1U);
        EXPECT_EQ(up[0].level, 2);
        EXPECT_EQ(up[0].units.size(), two_levels ? 2U : 1U);

        Tree server;
        server.join(up[0], host(1));
        EXPECT_EQ(server.count(Kind::opened), 1U);
        EXPECT_TRUE(server.told_ready(host(1)));
        const auto members = server.tree.find(job, channel)->membership();
        ASSERT_TRUE(members.has_value());
        EXPECT_EQ(members->workers(), two_levels ? 3U : 2U);

        last.joined(true, host(50));
        EXPECT_TRUE(last.tree.find(job, channel)->ready());
    }
}

TEST(JoinTree, EndpointsConvertToTheSameAddresses) {
    for (const char* text : {"10.1.2.3:4791", "[2001:db8::7]:65535"}) {
        const wire::Address address = *wire::Address::parse(text);
        EXPECT_EQ(address_of(endpoint_of(address)), address);
    }
    EXPECT_EQ(endpoint_of({}).family, 0);
    EXPECT_EQ(address_of({}).family(), wire::Family::none);
}

// --- refusals

class StarWithOneMember : public ::testing::Test {
  protected:
    StarWithOneMember() { star.join(join_of_member(0, 2, 0), worker(0)); }
    void expect_second_refused(const wire::Join& join, Refusal reason, const std::string& text) {
        star.forget();
        star.join(join, worker(1));
        star.expect_refused(worker(1), reason, text);
        EXPECT_TRUE(star.events.empty()) << "what is refused changes nothing";
        EXPECT_EQ(star.tree.find(job, channel)->present, 0x1U);
    }

    Tree star;
};

TEST_F(StarWithOneMember, OtherTokenIsRefused) {
    expect_second_refused(but(join_of_member(0, 2, 1), [](auto& join) { join.terms.token = 9; }), Refusal::token,
                          "another incarnation");
}

TEST_F(StarWithOneMember, OtherTokenOnAnotherChannelIsRefused) {
    expect_second_refused(but(join_of_member(0, 2, 1),
                              [](auto& join) {
                                  join.terms.token = 9;
                                  join.terms.channel = 4;
                              }),
                          Refusal::token, "another incarnation");
}

TEST_F(StarWithOneMember, OtherTermsAreRefusedByName) {
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
        {"protocol", [](Terms& terms) { terms.protocol = wire::ChannelProtocol::switchml; }},
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

TEST(JoinTree, SecondUnitUnderOneRackSwitchIsRefused) {
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

TEST(JoinTree, RanksThatDoNotCountFromZeroAreRefusedToAllMembers) {
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

TEST(JoinTree, SeveralRacksWithoutAParentAreRefused) {
    Tree rack;
    rack.join(join_of_member(0, 2, 0, 0, 0x3), worker(0));
    rack.expect_refused(worker(0), Refusal::parent, "--parent");
    EXPECT_EQ(rack.tree.channels(), 0U);
}

TEST(JoinTree, ChannelBeyondTheTableIsRefused) {
    JoinTreeConfig config;
    config.channels = 2;
    Tree star(config);
    for (std::uint16_t other = 0; other < 3; ++other) {
        star.join(but(join_of_member(0, 2, 0), [&](auto& join) { join.terms.channel = other; }), worker(0));
    }
    star.expect_refused(worker(0), Refusal::full, "--channels");
    EXPECT_EQ(star.tree.channels(), 2U);
}

TEST(JoinTree, JobBeyondTheTableIsRefusedUntilAnotherExpires) {
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

TEST(JoinTree, ServerBeyondTheMemoryIsRefusedUntilAnotherCloses) {
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

// --- another protocol

wire::Join of_other_protocol(wire::Join join) {
    join.terms.protocol = wire::ChannelProtocol::switchml;
    return join;
}

class OtherRules final : public ChannelRules {
  public:
    [[nodiscard]] std::optional<std::string> objection_to(const wire::Join& join) const override {
        return join.terms.audit ? std::optional<std::string>("the rules have no audit lane") : std::nullopt;
    }
};

JoinTreeConfig serving_both() {
    static const OtherRules rules;
    JoinTreeConfig config;
    config.other = &rules;
    return config;
}

TEST(JoinTree, ChannelOfAnotherProtocolReportsItsStreamAndHasNoServer) {
    JoinTreeConfig config = serving_both();
    config.server_bytes = 0;
    Tree star(config);
    star.stream = 9;
    star.join(of_other_protocol(join_of_member(0, 2, 0)), worker(0));
    star.join(of_other_protocol(join_of_member(0, 2, 1)), worker(1));
    ASSERT_EQ(star.count(Kind::opened), 1U);
    EXPECT_EQ(star.events.back().protocol, wire::ChannelProtocol::switchml);
    for (unsigned rank = 0; rank < 2; ++rank) {
        ASSERT_TRUE(star.told_ready(worker(rank)));
        EXPECT_EQ(star.sent_to<wire::Joined>(worker(rank)).back().stream, 9);
    }
    star.forget();
    star.join(begun(of_other_protocol(join_of_member(0, 2, 1))), worker(1));
    EXPECT_EQ(star.sent_to<wire::Joined>(worker(1)).back().stream, 9) << "whenever it asks";
    star.leave(0, 0, worker(0));
    star.leave(0, 1, worker(1));
    EXPECT_EQ(star.events.back().kind, Kind::closed);
    EXPECT_EQ(star.events.back().protocol, wire::ChannelProtocol::switchml);
}

TEST(JoinTree, JoinOfAProtocolThatTheSwitchDoesNotServeIsRefused) {
    Tree atp_alone;
    atp_alone.join(of_other_protocol(join_of_member(0, 2, 0)), worker(0));
    atp_alone.expect_refused(worker(0), Refusal::unsupported, "protocol switchml");
    JoinTreeConfig config = serving_both();
    config.serves_atp = false;
    Tree other_alone(config);
    other_alone.join(join_of_member(0, 2, 0), worker(0));
    other_alone.expect_refused(worker(0), Refusal::unsupported, "protocol atp");
}

TEST(JoinTree, JoinThatTheOtherProtocolRefusesGetsItsReason) {
    const wire::Join with_audit = but(join_of_member(0, 2, 0), [](auto& join) { join.terms.audit = true; });
    Tree star(serving_both());
    star.join(of_other_protocol(with_audit), worker(0));
    star.expect_refused(worker(0), Refusal::unsupported, "the rules have no audit lane");
    EXPECT_EQ(star.tree.channels(), 0U);
    Tree atp(serving_both());
    atp.join(with_audit, worker(0));
    EXPECT_EQ(atp.tree.channels(), 1U) << "they are no rules of ATP";
}

TEST(JoinTree, RestartedSwitchRefusesAChannelOfAnotherProtocolThatHadBegun) {
    Tree star(serving_both());
    star.join(begun(of_other_protocol(join_of_member(0, 2, 0))), worker(0));
    star.expect_refused(worker(0), Refusal::restarted, "no longer has the sums");
}

// --- restarts

TEST(JoinTree, RestartedServerRefusesMembersThatHadBegun) {
    Tree star;
    star.join(begun(join_of_member(0, 2, 0)), worker(0));
    star.expect_refused(worker(0), Refusal::restarted, "must form again");
    EXPECT_EQ(star.tree.channels(), 0U);
}

TEST_F(StarWithOneMember, ServerThatIsNotReadyRefusesMembersThatHadBegun) {
    expect_second_refused(begun(join_of_member(0, 2, 1)), Refusal::restarted, "must form again");
}

TEST(JoinTree, RefusalOfARestartedRootReachesTheWorkersOfARack) {
    Tree rack(below(host(1)));
    for (unsigned rank = 0; rank < 2; ++rank) rack.join(join_of_member(0, 2, rank, 0, 0x3), worker(rank));
    rack.joined(true, host(1));
    rack.forget();
    rack.pass(std::chrono::milliseconds(1100));
    const auto refresh = rack.sent_to<wire::Join>(host(1));
    ASSERT_GE(refresh.size(), 1U);
    EXPECT_TRUE(refresh[0].begun) << "the rack itself received ready";

    Tree root;
    root.join(refresh[0], host(2));
    root.expect_refused(host(2), Refusal::restarted, "must form again");

    rack.refused(Refusal::restarted, host(1));
    for (unsigned rank = 0; rank < 2; ++rank) {
        const auto refusals = rack.sent_to<wire::Refused>(worker(rank));
        ASSERT_EQ(refusals.size(), 1U);
        EXPECT_EQ(refusals[0].reason, Refusal::restarted);
        EXPECT_THAT(refusals[0].text, HasSubstr("10.0.0.1:4791")) << "the sender of the refusal";
    }
    EXPECT_EQ(rack.count(Kind::closed), 1U);
    EXPECT_EQ(rack.tree.channels(), 0U);
}

TEST(JoinTree, RestartedRackSwitchResumesTheJob) {
    Tree root;
    root.join(join_of_unit(0, 0, 2, 0x3), host(2));
    root.join(join_of_unit(1, 2, 1, 0x3, true), worker(2));
    ASSERT_TRUE(root.told_ready(host(2)));

    Tree rack(below(host(1)));
    for (unsigned rank = 0; rank < 2; ++rank) rack.join(begun(join_of_member(0, 2, rank, 0, 0x3)), worker(rank));
    EXPECT_EQ(rack.tree.counters().refused, 0U) << "the server was not here";
    const auto up = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_TRUE(up[0].begun);
    root.forget();
    root.join(up[0], host(2));
    EXPECT_TRUE(root.told_ready(host(2)));
    EXPECT_TRUE(root.events.empty()) << "the same server";
}

// --- time

TEST(JoinTree, BranchJoinsOftenUntilReadyThenRefreshes) {
    const JoinTreeConfig config = below(host(1));
    Tree rack(config);
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.forget();
    rack.pass(10 * config.impatient);
    const std::size_t impatient = rack.sent_to<wire::Join>(host(1)).size();
    EXPECT_GE(impatient, 8U);
    EXPECT_LE(impatient, 12U);
    rack.joined(true, host(1));
    rack.pass(config.refresh);
    rack.forget();
    rack.pass(4 * config.refresh);
    const std::size_t patient = rack.sent_to<wire::Join>(host(1)).size();
    EXPECT_GE(patient, 3U);
    EXPECT_LE(patient, 5U);
}

TEST(JoinTree, SilentMemberExpiresAndTheOthersAreNotified) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    star.forget();
    for (int second = 0; second < 12; ++second) {
        star.pass(std::chrono::seconds(1));
        star.join(begun(join_of_member(0, 2, 0)), worker(0));
    }
    EXPECT_EQ(star.tree.counters().expired, 1U);
    const auto joined = star.sent_to<wire::Joined>(worker(0)).back();
    EXPECT_FALSE(joined.ready);
    EXPECT_EQ(joined.missing_members, 0x2U);
    EXPECT_EQ(star.count(Kind::closed), 0U);
    star.pass(std::chrono::seconds(12));
    EXPECT_EQ(star.count(Kind::closed), 1U);
    EXPECT_EQ(star.tree.channels(), 0U);
    EXPECT_EQ(star.tree.poll_timeout(), never) << "an empty tree sleeps";
}

TEST(JoinTree, PositionOfASilentMemberMayBeTaken) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.now += star.tree.config().hold;  // no sweep has run yet
    star.join(join_of_member(0, 2, 0), worker(9));
    EXPECT_EQ(star.tree.counters().refused, 0U);
    EXPECT_EQ(star.tree.find(job, channel)->children[0].address, worker(9));
}

TEST(JoinTree, SilentParentMakesTheBranchUnready) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.joined(true, host(1));
    ASSERT_TRUE(rack.told_ready(worker(0)));
    for (int second = 0; second < 12; ++second) {
        rack.pass(std::chrono::seconds(1));
        rack.join(begun(join_of_member(0, 1, 0, 0, 0x3)), worker(0));
    }
    EXPECT_FALSE(rack.told_ready(worker(0)));
    EXPECT_EQ(rack.sent_to<wire::Joined>(worker(0)).back().missing_units, 0x3U);
    rack.joined(true, host(1));
    EXPECT_TRUE(rack.told_ready(worker(0))) << "it was only silent";
}

// --- leaving

TEST(JoinTree, LeaveOfTheLastMemberClosesTheChannel) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    star.forget();
    star.leave(0, 1, worker(1));
    EXPECT_FALSE(star.told_ready(worker(0)));
    EXPECT_EQ(star.sent_to<wire::Joined>(worker(0)).back().missing_members, 0x2U);
    EXPECT_EQ(star.count(Kind::closed), 0U);
    star.leave(0, 0, worker(0));
    ASSERT_EQ(star.count(Kind::closed), 1U);
    EXPECT_TRUE(star.events.back().last_of_job);
    EXPECT_EQ(star.tree.counters().left, 2U);
}

TEST(JoinTree, RackWithoutMembersLeavesItsParent) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(1, 1, 0, 0, 0x3), worker(0));
    rack.joined(true, host(9));
    rack.leave(1, 0, worker(0));
    const auto up = rack.sent_to<wire::Leave>(host(1));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_EQ(up[0].unit, 1);
    EXPECT_EQ(up[0].token, token);

    Tree root;
    root.join(join_of_unit(0, 0, 1, 0x3), host(2));
    root.join(join_of_unit(1, 1, 1, 0x3), host(3));
    root.tree.handle_leave(up[0], host(3), root.now);
    root.drain();
    EXPECT_EQ(root.tree.counters().left, 1U);
    EXPECT_EQ(root.sent_to<wire::Joined>(host(2)).back().missing_units, 0x2U);
}

TEST(JoinTree, ChannelsOfAJobOpenAndCloseIndependently) {
    Tree star;
    const auto other = [](wire::Join join) {
        join.terms.channel = 4;
        return join;
    };
    for (unsigned rank = 0; rank < 2; ++rank) {
        star.join(join_of_member(0, 2, rank), worker(rank));
        star.join(other(join_of_member(0, 2, rank)), worker(rank));
    }
    EXPECT_EQ(star.count(Kind::admitted), 2U);
    EXPECT_EQ(star.count(Kind::opened), 2U);
    star.leave(0, 0, worker(0));
    star.leave(0, 1, worker(1));
    ASSERT_EQ(star.count(Kind::closed), 1U);
    EXPECT_FALSE(star.events.back().last_of_job);
    EXPECT_EQ(star.tree.find(job, channel), nullptr);
    ASSERT_NE(star.tree.find(job, 4), nullptr);
    EXPECT_TRUE(star.tree.find(job, 4)->ready());
}

// --- strangers

TEST(JoinTree, ForgedLeavesAreCountedAndChangeNothing) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.leave(0, 0, worker(1));             // another member's position
    star.leave(0, 1, worker(0));             // an empty position
    star.leave(0, 0, worker(0), token + 1);  // of another incarnation
    star.tree.handle_leave({.job = 9, .token = token, .channel = channel}, worker(0), star.now);
    EXPECT_EQ(star.tree.counters().forged, 4U);
    EXPECT_EQ(star.tree.find(job, channel)->present, 0x1U);
}

TEST(JoinTree, ForgedAnswersAreCountedAndChangeNothing) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.forget();
    rack.joined(true, host(66), token + 1);
    rack.refused(Refusal::full, host(66), token + 1);
    rack.tree.handle_joined({.job = 9, .token = token, .channel = channel, .ready = true}, host(66), rack.now);
    EXPECT_EQ(rack.tree.counters().forged, 3U);
    EXPECT_FALSE(rack.tree.find(job, channel)->ready());
    EXPECT_TRUE(rack.sent.empty());

    Tree star;  // a root: it has no parent
    star.join(join_of_member(0, 1, 0), worker(0));
    star.forget();
    star.joined(false, host(66));
    star.refused(Refusal::full, host(66));
    EXPECT_EQ(star.tree.counters().forged, 2U);
    EXPECT_TRUE(star.tree.find(job, channel)->ready());
    EXPECT_TRUE(star.sent.empty());
}

}  // namespace
}  // namespace atp::control
