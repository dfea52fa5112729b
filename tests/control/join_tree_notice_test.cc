// SPDX-License-Identifier: Apache-2.0
// What the tree reports for the log of its switch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

using testing::ElementsAre;
using NoticeKind = TreeNotice::Kind;

std::vector<TreeNotice> notices_of(Tree& tree) {
    std::vector<TreeNotice> notices;
    while (auto notice = tree.tree.poll_notice()) notices.push_back(*std::move(notice));
    return notices;
}

std::vector<NoticeKind> kinds_of(Tree& tree) {
    std::vector<NoticeKind> kinds;
    for (const TreeNotice& notice : notices_of(tree)) kinds.push_back(notice.kind);
    return kinds;
}

Tree star_of_two(const JoinTreeConfig& config = {}) {
    Tree star(config);
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    return star;
}

TEST(JoinTreeNotice, FormingJobReportsFirstSenderEachMemberAndReadiness) {
    Tree star = star_of_two();
    const auto notices = notices_of(star);
    ASSERT_EQ(notices.size(), 4U);
    EXPECT_EQ(notices[0].kind, NoticeKind::job_formed);
    EXPECT_EQ(notices[0].job, job);
    EXPECT_EQ(notices[0].channel, channel);
    EXPECT_EQ(notices[0].address, worker(0));
    EXPECT_EQ(notices[1].kind, NoticeKind::member_joined);
    EXPECT_EQ(notices[1].rank, 0U);
    EXPECT_EQ(notices[2].kind, NoticeKind::member_joined);
    EXPECT_EQ(notices[2].rank, 1U);
    EXPECT_EQ(notices[2].address, worker(1));
    EXPECT_EQ(notices[3].kind, NoticeKind::job_ready);
    EXPECT_EQ(notices[3].members, 2U);
}

TEST(JoinTreeNotice, FormingJobHasTheNameOfItsFirstJoin) {
    Tree star;
    star.join(but(join_of_member(0, 2, 0), [](wire::Join& join) { join.job_name = "resnet-50"; }), worker(0));
    star.join(but(join_of_member(0, 2, 1), [](wire::Join& join) { join.job_name = "other"; }), worker(1));
    EXPECT_EQ(notices_of(star)[0].job_name, "resnet-50");
    EXPECT_EQ(star.tree.find(key)->job_name, "resnet-50");
}

TEST(JoinTreeNotice, RepeatedJoinReportsNothing) {
    Tree star = star_of_two();
    static_cast<void>(notices_of(star));
    star.join(begun(join_of_member(0, 2, 1)), worker(1));
    EXPECT_THAT(kinds_of(star), ElementsAre());
}

TEST(JoinTreeNotice, LeavingMembersEndTheJobWithoutFailure) {
    Tree star = star_of_two();
    static_cast<void>(notices_of(star));
    star.leave(0, 0, worker(0));
    star.leave(0, 1, worker(1));
    EXPECT_THAT(kinds_of(star), ElementsAre(NoticeKind::member_left, NoticeKind::member_left, NoticeKind::job_left));
}

TEST(JoinTreeNotice, SilentMembersAreLostAndTheJobFailsWithTheFirstOfThem) {
    Tree star = star_of_two();
    static_cast<void>(notices_of(star));
    star.pass(std::chrono::seconds(30));
    const auto notices = notices_of(star);
    ASSERT_EQ(notices.size(), 4U);
    EXPECT_EQ(notices[0].kind, NoticeKind::member_lost);
    EXPECT_EQ(notices[0].address, worker(0));
    EXPECT_EQ(notices[0].rank, 0U);
    EXPECT_EQ(notices[0].reason, "silence");
    EXPECT_EQ(notices[1].kind, NoticeKind::member_lost);
    EXPECT_EQ(notices[1].address, worker(1));
    EXPECT_EQ(notices[2].kind, NoticeKind::job_failed);
    EXPECT_EQ(notices[2].address, worker(0));
    EXPECT_THAT(notices[2].reason, HasSubstr("member 0 of unit 0 sent nothing for 3"));
    EXPECT_EQ(notices[3].kind, NoticeKind::job_left);
}

TEST(JoinTreeNotice, CauseThatALeaveCarriesFailsTheJobAndLaterLeavesDoNot) {
    Tree star = star_of_two();
    static_cast<void>(notices_of(star));
    const wire::Leave leave{.job = job,
                            .token = token,
                            .channel = channel,
                            .epoch = 9,
                            .edges = {{.kind = wire::EdgeKind::path_mtu,
                                       .evidence = wire::Evidence::too_long,
                                       .detail = 1000,
                                       .at = endpoint_of(worker(0))}}};
    star.tree.handle_leave(leave, worker(0), star.now);
    star.leave(0, 1, worker(1));
    const auto notices = notices_of(star);
    ASSERT_EQ(notices.size(), 4U);
    EXPECT_EQ(notices[0].kind, NoticeKind::member_left);
    EXPECT_EQ(notices[1].kind, NoticeKind::job_failed);
    EXPECT_EQ(notices[1].address, worker(0));
    EXPECT_EQ(notices[1].reason, "the path MTU of member 0 of unit 0 is 1000 bytes");
    EXPECT_EQ(notices[2].kind, NoticeKind::member_left);
    EXPECT_EQ(notices[3].kind, NoticeKind::job_left);
}

TEST(JoinTreeNotice, FailureThatALeafReportsIsNamedByTheRoot) {
    Tree root;
    for (std::uint8_t unit = 0; unit < 2; ++unit) {
        root.join(join_of_unit(unit, static_cast<std::uint16_t>(2 * unit), 2, 0x3), host(2 + unit));
    }
    static_cast<void>(notices_of(root));
    root.join(but(begun(join_of_unit(1, 2, 2, 0x3)),
                  [](wire::Join& join) {
                      join.edges = {{.kind = wire::EdgeKind::member,
                                     .evidence = wire::Evidence::closed,
                                     .unit = 1,
                                     .member = 1,
                                     .at = endpoint_of(worker(3))}};
                  }),
              host(3));
    const auto notices = notices_of(root);
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices[0].kind, NoticeKind::job_failed);
    EXPECT_EQ(notices[0].address, worker(3));
    EXPECT_EQ(notices[0].reason, "the process of member 1 of unit 1 ended");
}

// Reason of the failure of a job whose second leaf reports this edge to the root.
std::string reason_of_reported(const wire::Edge& edge) {
    Tree root;
    for (std::uint8_t unit = 0; unit < 2; ++unit) {
        root.join(join_of_unit(unit, static_cast<std::uint16_t>(2 * unit), 2, 0x3), host(2 + unit));
    }
    static_cast<void>(notices_of(root));
    root.join(but(begun(join_of_unit(1, 2, 2, 0x3)), [&](wire::Join& join) { join.edges = {edge}; }), host(3));
    const auto notices = notices_of(root);
    return notices.size() == 1 && notices[0].kind == NoticeKind::job_failed ? notices[0].reason : "no failure";
}

TEST(JoinTreeNotice, ReasonNamesTheNeighbourAndTheEvidenceOfAReportedEdge) {
    using Edge = wire::EdgeKind;
    using wire::Evidence;
    const std::vector<std::pair<wire::Edge, const char*>> rows = {
        {{.kind = Edge::member, .evidence = Evidence::one_direction, .unit = 1, .member = 0},
         "member 0 of unit 1 receives nothing"},
        {{.kind = Edge::member, .evidence = Evidence::paused, .unit = 1, .silent_ms = 2500},
         "this process did not run for 2500 ms"},
        {{.kind = Edge::leaf, .evidence = Evidence::closed, .unit = 1}, "the process of the switch of unit 1 ended"},
        {{.kind = Edge::parent, .evidence = Evidence::silence, .unit = 1, .silent_ms = 3100},
         "the switch of unit 1 receives nothing"},
        {{.kind = Edge::parent, .evidence = Evidence::closed, .unit = 1},
         "the process of the parent of the switch of unit 1 ended"},
        {{.kind = Edge::parent, .evidence = Evidence::too_long, .unit = 1},
         "long packets are lost on the path to or from the switch of unit 1"},
        {{.kind = Edge::server, .evidence = Evidence::closed}, "the process of the host of the server ended"},
        {{.kind = Edge::path_mtu, .evidence = Evidence::too_long, .unit = 1, .member = 1, .detail = 1400},
         "the path MTU of member 1 of unit 1 is 1400 bytes"},
    };
    for (const auto& [edge, reason] : rows) EXPECT_EQ(reason_of_reported(edge), reason);
}

TEST(JoinTreeNotice, ReportedMemberThatLeftIsNoFailure) {
    EXPECT_EQ(
        reason_of_reported({.kind = wire::EdgeKind::member, .evidence = wire::Evidence::left, .unit = 1, .member = 1}),
        "no failure");
}

TEST(JoinTreeNotice, RefusedJoinReportsSenderAndReason) {
    JoinTreeConfig without_jobs;
    without_jobs.jobs = 0;
    Tree star(without_jobs);
    star.join(join_of_member(0, 2, 0), worker(0));
    const auto notices = notices_of(star);
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices[0].kind, NoticeKind::job_refused);
    EXPECT_EQ(notices[0].address, worker(0));
    EXPECT_EQ(notices[0].reason, star.sent_to<wire::Refused>(worker(0))[0].text);
}

TEST(JoinTreeNotice, JobWithoutMemoryFailsWithTheReason) {
    Tree star;
    star.opens = false;
    star.lacks_memory = true;
    star.join(join_of_member(0, 1, 0), worker(0));
    const auto notices = notices_of(star);
    ASSERT_EQ(notices.size(), 4U);
    EXPECT_EQ(notices[2].kind, NoticeKind::job_failed);
    EXPECT_EQ(notices[2].reason, "there is no memory for it");
    EXPECT_EQ(notices[3].kind, NoticeKind::job_left);
}

TEST(JoinTreeNotice, RankClaimedTwiceFailsTheJob) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(but(join_of_member(0, 2, 1), [](wire::Join& join) { join.units[0].ranks = {0}; }), worker(1));
    const auto notices = notices_of(star);
    ASSERT_EQ(notices.size(), 5U);
    EXPECT_EQ(notices[3].kind, NoticeKind::job_failed);
    EXPECT_EQ(notices[3].address, worker(1));
    EXPECT_THAT(notices[3].reason, HasSubstr("once each"));
}

TEST(JoinTreeNotice, SwitchBelowHasNoRankAndWorkersHaveOne) {
    Tree root;
    root.join(join_of_unit(0, 0, 1, 0x7), host(2));
    root.join(join_of_unit(1, 1, 1, 0x7, true), worker(1));
    root.join(but(join_of_member(2, 2, 1, 2, 0x7), [](wire::Join& join) { join.level = 1; }), worker(3));
    std::vector<TreeNotice> members;
    for (const TreeNotice& notice : notices_of(root)) {
        if (notice.kind == NoticeKind::member_joined) members.push_back(notice);
    }
    ASSERT_EQ(members.size(), 3U);
    EXPECT_EQ(members[0].rank, std::nullopt) << "a leaf with one worker";
    EXPECT_EQ(members[0].unit, 0U);
    EXPECT_EQ(members[1].rank, 1U) << "a direct worker";
    EXPECT_EQ(members[2].rank, 3U) << "a worker of a rack whose switch is in the path";
}

// A leaf whose only member is one of two units, so that it asks its parent.
Tree leaf_of(const wire::Address& parent) {
    Tree leaf(below(parent));
    leaf.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    return leaf;
}

TEST(JoinTreeNotice, ParentThatAnswersMakesTheJobReadyAndItsSilenceFailsTheJob) {
    const wire::Address parent = host(1);
    Tree leaf = leaf_of(parent);
    static_cast<void>(notices_of(leaf));
    leaf.joined(true, parent);
    EXPECT_THAT(kinds_of(leaf), ElementsAre(NoticeKind::parent_ready, NoticeKind::job_ready));
    for (int second = 0; second < 12; ++second) {
        leaf.pass(std::chrono::seconds(1));
        leaf.join(begun(join_of_member(0, 1, 0, 0, 0x3)), worker(0));
    }
    const auto notices = notices_of(leaf);
    ASSERT_EQ(notices.size(), 2U);
    EXPECT_EQ(notices[0].kind, NoticeKind::parent_lost);
    EXPECT_EQ(notices[0].address, parent);
    EXPECT_EQ(notices[0].reason, "silence");
    EXPECT_EQ(notices[1].kind, NoticeKind::job_failed);
    EXPECT_EQ(notices[1].address, parent);
}

TEST(JoinTreeNotice, RefusalFromAboveFailsTheJobWithItsSender) {
    Tree leaf = leaf_of(host(1));
    static_cast<void>(notices_of(leaf));
    leaf.refused(Refusal::full, host(1));
    const auto notices = notices_of(leaf);
    ASSERT_EQ(notices.size(), 2U);
    EXPECT_EQ(notices[0].kind, NoticeKind::job_failed);
    EXPECT_EQ(notices[0].address, host(1));
    EXPECT_THAT(notices[0].reason, HasSubstr("sent by 10.0.0.1:4791"));
}

TEST(JoinTreeNotice, UnreadNoticesAreBounded) {
    JoinTreeConfig without_jobs;
    without_jobs.jobs = 0;
    Tree star(without_jobs);
    for (unsigned number = 0; number < 3000; ++number) star.join(join_of_member(0, 2, 0), worker(0));
    EXPECT_EQ(notices_of(star).size(), 1024U);
}

}  // namespace
}  // namespace atp::control
