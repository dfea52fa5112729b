// SPDX-License-Identifier: Apache-2.0
// How a tree refuses all members of a channel.
#include <gtest/gtest.h>

#include <chrono>

#include "control/join_tree_fixture.h"

namespace atp::control {
namespace {

// A JOIN that was sent before the REFUSED came would open the channel again, without the member that gave up.
TEST(JoinRefusals, ChannelThatItsParentRefusedForGoodIsRefusedAgainForTheHoldTime) {
    for (const Refusal reason : {Refusal::restarted, Refusal::full}) {
        Tree leaf({.parent = host(1)});
        for (unsigned member = 0; member < 2; ++member) leaf.join(join_of_member(0, 2, member, 0, 0x3), worker(member));
        leaf.refused(reason, host(1));
        EXPECT_EQ(leaf.tree.channels(), 0U);
        leaf.forget();
        leaf.join(join_of_member(0, 2, 0, 0, 0x3), worker(0));
        EXPECT_EQ(leaf.tree.channels(), reason == Refusal::full ? 1U : 0U) << "room may be there soon";
        if (reason == Refusal::full) continue;
        ASSERT_EQ(leaf.sent_to<wire::Refused>(worker(0)).size(), 1U);
        EXPECT_EQ(leaf.sent_to<wire::Refused>(worker(0)).front().reason, reason);
        leaf.pass(timing.hold + std::chrono::milliseconds(100));
        leaf.join(join_of_member(0, 2, 0, 0, 0x3), worker(0));
        EXPECT_EQ(leaf.tree.channels(), 1U);
    }
}

TEST(JoinRefusals, SwitchThatLostTheSumsRefusesTheMembersTooThatHadNotBegun) {
    Tree tree;
    tree.join(join_of_member(0, 2, 0), worker(0));
    tree.join(begun(join_of_member(0, 2, 1)), worker(1));
    tree.join(join_of_member(0, 2, 0), worker(0));
    for (unsigned member = 0; member < 2; ++member) {
        const auto refused = tree.sent_to<wire::Refused>(worker(member));
        ASSERT_EQ(refused.size(), 2U - member) << member;
        EXPECT_EQ(refused.back().reason, Refusal::restarted);
    }
    EXPECT_EQ(tree.tree.channels(), 0U);
}

}  // namespace
}  // namespace atp::control
