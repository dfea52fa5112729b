// SPDX-License-Identifier: Apache-2.0
// Old, copied and forged messages change nothing in a tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

TEST(UntrustedMessages, H66_OldJoinOfAMemberThatLeftChangesNothing) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    const wire::Join delayed = but(begun(join_of_member(0, 2, 1)), [](wire::Join& join) { join.epoch = 3; });
    star.tree.handle_leave({.job = job, .token = token, .channel = channel, .epoch = 4, .unit = 0, .member = 1},
                           worker(1), star.now);
    star.drain();
    star.forget();
    for (int copy = 0; copy < 3; ++copy) star.join(delayed, worker(1));
    EXPECT_FALSE(star.tree.find(key)->ready());
    EXPECT_EQ(star.tree.counters().stale, 3U);
    EXPECT_TRUE(star.sent.empty()) << "no member gets a message";

    star.join(but(delayed, [](wire::Join& join) { join.nonce = 77; }), worker(1));
    EXPECT_TRUE(star.tree.find(key)->ready()) << "a new process of this rank";
}

TEST(UntrustedMessages, H66_OldJoinOfAChannelThatEndedChangesNothing) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    const wire::Join delayed = but(join_of_member(0, 2, 0), [](wire::Join& join) { join.epoch = 1; });
    star.leave(0, 0, worker(0));
    ASSERT_EQ(star.tree.channels(), 0U);
    star.forget();
    star.join(delayed, worker(0));
    EXPECT_EQ(star.tree.channels(), 0U);
    EXPECT_EQ(star.tree.counters().stale, 1U);
    star.pass(star.tree.config().hold);
    EXPECT_EQ(star.tree.poll_timeout(), never) << "nothing of the channel is left";
}

TEST(UntrustedMessages, H67_ReplayedJoinKeepsNoSilentMember) {
    Tree star;
    const wire::Join recorded = but(join_of_member(0, 2, 1), [](wire::Join& join) { join.epoch = 1; });
    star.join(recorded, worker(1));
    star.join(join_of_member(0, 2, 0), worker(0));
    for (int second = 0; second < 4; ++second) {
        star.pass(std::chrono::seconds(1));
        star.join(begun(join_of_member(0, 2, 0)), worker(0));
        star.join(recorded, worker(1));
    }
    EXPECT_EQ(star.tree.counters().expired, 1U) << "the silent member expired in spite of the copies";
    EXPECT_EQ(star.tree.counters().stale, 4U);
    EXPECT_FALSE(star.told_ready(worker(0)));
}

TEST(UntrustedMessages, ReplayedLeaveOrJoinedChangesNothing) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.joined(false, host(1), token, 0x2);
    wire::Joined recorded{
        .nonce = rack.up_nonce(), .job = job, .token = token, .channel = channel, .epoch = 1, .number = 1};
    rack.joined(true, host(1));
    rack.forget();
    rack.tree.handle_joined(recorded, host(1), rack.now);
    rack.tree.handle_leave({.job = job, .token = token, .channel = channel, .epoch = 1, .unit = 0, .member = 0},
                           worker(0), rack.now);
    recorded.nonce = 66;
    rack.tree.handle_joined(recorded, host(1), rack.now);
    rack.drain();
    EXPECT_TRUE(rack.tree.find(key)->ready());
    EXPECT_EQ(rack.tree.counters().stale, 1U);
    EXPECT_EQ(rack.tree.counters().forged, 2U);
    EXPECT_TRUE(rack.sent.empty());
}

TEST(UntrustedMessages, SwitchRepeatsItsJoinWithTheCookieOfItsParent) {
    Tree rack(below(host(1)));
    rack.parents_answer = false;
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    ASSERT_EQ(rack.sent_to<wire::Join>(host(1)).size(), 1U);
    for (int copy = 0; copy < 2; ++copy) rack.retry(0xC001, host(1));
    rack.tree.handle_retry({.nonce = 66, .job = job, .token = token, .channel = channel, .cookie = 66}, host(1),
                           rack.now);
    rack.drain();
    const auto up = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(up.size(), 2U) << "a copy of the RETRY causes no JOIN";
    EXPECT_EQ(up[1].cookie, 0xC001U);
    EXPECT_EQ(up[1].epoch, up[0].epoch + 1);
    EXPECT_EQ(rack.tree.counters().forged, 1U);
}

TEST(UntrustedMessages, ForgedLeavesAreCountedAndChangeNothing) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.leave(0, 0, worker(1));             // another member's position
    star.leave(0, 1, worker(0));             // an empty position
    star.leave(0, 0, worker(0), token + 1);  // another incarnation
    star.tree.handle_leave({.job = 9, .token = token, .channel = channel}, worker(0), star.now);
    EXPECT_EQ(star.tree.counters().forged, 4U);
    EXPECT_EQ(star.tree.find(key)->present, 0x1U);
}

TEST(UntrustedMessages, ForgedAnswersAreCountedAndChangeNothing) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.forget();
    rack.joined(true, host(66), token + 1);
    rack.refused(Refusal::full, host(66), token + 1);
    rack.tree.handle_joined({.job = 9, .token = token, .channel = channel, .ready = true}, host(66), rack.now);
    EXPECT_EQ(rack.tree.counters().forged, 3U);
    rack.joined(true, host(66));
    rack.refused(Refusal::full, host(66));
    EXPECT_EQ(rack.tree.counters().forged, 5U) << "another host than the parent";
    EXPECT_FALSE(rack.tree.find(key)->ready());
    EXPECT_TRUE(rack.sent.empty());

    Tree star;  // a root: it has no parent
    star.join(join_of_member(0, 1, 0), worker(0));
    star.forget();
    star.joined(false, host(66));
    star.refused(Refusal::full, host(66));
    EXPECT_EQ(star.tree.counters().forged, 2U);
    EXPECT_TRUE(star.tree.find(key)->ready());
    EXPECT_TRUE(star.sent.empty());
}

// Otherwise the parent would take the JOINs of the new channel for old ones (H66).
TEST(UntrustedMessages, LeafThatOpensAChannelAgainGoesOnNumberingItsJoins) {
    Tree leaf({.parent = host(1)});
    const auto last_epoch = [&] { return leaf.sent_to<wire::Join>(host(1)).back().epoch; };
    leaf.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    leaf.pass(std::chrono::milliseconds(500));
    leaf.joined(true, host(1));
    const std::uint32_t before = last_epoch();
    EXPECT_GT(before, 5U);
    leaf.refused(Refusal::full, host(1));
    ASSERT_EQ(leaf.sent_to<wire::Leave>(host(1)).size(), 1U);
    const std::uint32_t of_leave = leaf.sent_to<wire::Leave>(host(1)).back().epoch;
    EXPECT_GT(of_leave, before);
    leaf.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    EXPECT_GT(last_epoch(), of_leave);
}

}  // namespace
}  // namespace atp::control
