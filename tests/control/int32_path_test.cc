// SPDX-License-Identifier: Apache-2.0
// A switch in the path of some members adds int32 lanes alone (docs/spec/numbers.md#int32-paths). All ranks must agree
// on it.
#include <gtest/gtest.h>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

wire::Join marked(wire::Join join) {
    join.int32_path = true;
    return join;
}

// Of the last JOINED to this member, which says `ready`.
bool told_int32(const Tree& tree, unsigned rank) {
    const auto answers = tree.sent_to<wire::Joined>(worker(rank));
    EXPECT_TRUE(!answers.empty() && answers.back().ready) << rank;
    return !answers.empty() && answers.back().int32_lanes;
}

// docs/spec/hazards.md#h81
TEST(Int32Path, H81_PathOfOneMemberDecidesForAllMembers) {
    for (unsigned through = 0; through < 3; ++through) {
        Tree star;
        for (unsigned rank = 0; rank < 3; ++rank) {
            const wire::Join join = join_of_member(0, 3, rank);
            star.join(rank == through ? marked(join) : join, worker(rank));
        }
        for (unsigned rank = 0; rank < 3; ++rank) EXPECT_TRUE(told_int32(star, rank)) << rank;
    }
}

TEST(Int32Path, JobWithoutSuchAPathKeepsItsForms) {
    Tree star;
    for (unsigned rank = 0; rank < 2; ++rank) star.join(join_of_member(0, 2, rank), worker(rank));
    for (unsigned rank = 0; rank < 2; ++rank) EXPECT_FALSE(told_int32(star, rank));
}

// A rank that learned the first decision has cut its fragments already.
TEST(Int32Path, H81_DecisionHoldsForTheIncarnation) {
    Tree star;
    star.opens = false;
    for (unsigned rank = 0; rank < 2; ++rank) star.join(join_of_member(0, 2, rank), worker(rank));
    star.tree.opened(key);
    star.drain();
    star.join(marked(join_of_member(0, 2, 1)), worker(1));
    EXPECT_FALSE(told_int32(star, 0));
    EXPECT_FALSE(told_int32(star, 1));

    Tree other;
    for (unsigned rank = 0; rank < 2; ++rank) other.join(marked(join_of_member(0, 2, rank)), worker(rank));
    other.join(join_of_member(0, 2, 0), worker(0));
    EXPECT_TRUE(told_int32(other, 0));
}

TEST(Int32Path, H81_RackPassesThePathUpAndTheDecisionDown) {
    Tree rack(below(host(1)));
    rack.join(marked(join_of_member(1, 2, 0, 2, 0x3)), worker(2));
    rack.join(join_of_member(1, 2, 1, 2, 0x3), worker(3));
    const auto up = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_TRUE(up[0].int32_path);
    for (const bool decided : {false, true}) {
        const wire::ChannelTerms& terms = up[0].terms;
        wire::Joined message{.nonce = up[0].nonce, .job = terms.job, .token = terms.token, .channel = terms.channel};
        message.epoch = rack.tree.find(key)->up_epoch;
        message.number = decided ? 2 : 1;
        message.ready = true;
        message.int32_lanes = decided;
        rack.tree.handle_joined(message, host(1), rack.now);
        rack.join(join_of_member(1, 2, 1, 2, 0x3), worker(3));
        EXPECT_EQ(told_int32(rack, 3), decided) << "the parent decides";
    }
}

TEST(Int32Path, ServerOnAnotherHostLearnsThePathOfAllUnits) {
    Tree last;
    const auto elsewhere = [](wire::Join join) {
        join.terms.server = endpoint_of(host(70));
        return join;
    };
    last.join(elsewhere(join_of_unit(0, 0, 2, 0x3)), host(10));
    last.join(elsewhere(marked(join_of_unit(1, 2, 2, 0x3))), host(11));
    const auto up = last.sent_to<wire::Join>(host(70));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_TRUE(up[0].int32_path);
}

}  // namespace
}  // namespace atp::control
