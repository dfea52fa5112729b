// SPDX-License-Identifier: Apache-2.0
#include "control/tree_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "control/join_tree_fixture.h"

namespace atp::control {
namespace {

std::vector<std::byte> bytes_of(const wire::JoiningMessage& message, std::size_t padded_bytes = 0) {
    std::vector<std::byte> bytes(2048);
    bytes.resize(wire::encode(message, bytes, padded_bytes));
    return bytes;
}

TreeReception give(Tree& tree, Gatekeeper& gatekeeper, const std::vector<std::byte>& bytes) {
    SwitchCodes open({});
    return handle_tree_message(tree.tree, gatekeeper, open, bytes, bytes.size(), worker(0), tree.now);
}

TEST(TreeMessages, JoinReachesTheTreeAfterItsSenderHasRepeatedTheCookie) {
    Tree tree;
    Gatekeeper gatekeeper({1, 2});
    wire::Join join = join_of_member(0, 2, 0);
    join.nonce = 7, join.epoch = 1;
    const auto first = give(tree, gatekeeper, bytes_of(join));
    EXPECT_TRUE(first.understood);
    ASSERT_TRUE(first.retry);
    EXPECT_EQ(tree.tree.channels(), 0U);
    join.cookie = first.retry->cookie;
    EXPECT_FALSE(give(tree, gatekeeper, bytes_of(join)).retry);
    EXPECT_EQ(tree.tree.channels(), 1U);
    join.epoch = 2;
    static_cast<void>(give(tree, gatekeeper, bytes_of(join, 1464)));
    EXPECT_EQ(tree.tree.counters().joins, 2U) << "a JOIN may be as long as a packet";
}

// A path may lose long packets in one direction only.
TEST(TreeMessages, JoinedIsAsLongAsTheLastJoinOfItsReceiver) {
    Tree tree;
    Gatekeeper gatekeeper({1, 2});
    wire::Join join = join_of_member(0, 2, 0);
    join.nonce = 7, join.epoch = 1;
    join.cookie = give(tree, gatekeeper, bytes_of(join)).retry->cookie;
    for (const std::size_t bytes : {wire::least_question_bytes, std::size_t{1464}, wire::least_question_bytes}) {
        ++join.epoch;
        static_cast<void>(give(tree, gatekeeper, bytes_of(join, bytes)));
        tree.drain();
        const JoinTree::Transmit& answer = tree.sent.back();
        EXPECT_EQ(answer.to, worker(0));
        EXPECT_EQ(bytes_of(answer.message, answer.padded_bytes).size(), bytes) << "no answer is longer";
    }
}

TEST(TreeMessages, TreeOfOneJobAnswersNoOther) {
    JoinTreeConfig config;
    config.only = {.job = job, .token = token};
    Tree tree(config);
    Gatekeeper gatekeeper({1, 2});
    wire::Join join = join_of_member(0, 2, 0);
    join.epoch = 1;
    join.cookie = gatekeeper.cookie_of(Gatekeeper::Question::join, worker(0), tree.now);
    join.terms.token = token + 1;
    const TreeReception other = give(tree, gatekeeper, bytes_of(join));
    EXPECT_FALSE(other.understood);
    EXPECT_FALSE(other.retry);
    EXPECT_EQ(tree.tree.channels(), 0U);
    join.terms.token = token;
    EXPECT_TRUE(give(tree, gatekeeper, bytes_of(join)).understood);
    EXPECT_EQ(tree.tree.channels(), 1U);
}

TEST(TreeMessages, OtherBytesAreNotUnderstoodAndChangeNothing) {
    Tree tree;
    Gatekeeper gatekeeper({1, 2});
    const auto understood = [&](const std::vector<std::byte>& bytes) {
        return give(tree, gatekeeper, bytes).understood;
    };
    std::vector<std::byte> short_join = bytes_of(join_of_member(0, 2, 0));
    short_join.resize(wire::least_question_bytes - 1);
    EXPECT_FALSE(understood(short_join));
    EXPECT_FALSE(understood({}));
    EXPECT_FALSE(understood(std::vector<std::byte>(300)));
    EXPECT_TRUE(understood(bytes_of(wire::Leave{.nonce = 1, .job = job, .token = token, .channel = channel})));
    EXPECT_EQ(tree.tree.counters().forged, 1U);
    EXPECT_EQ(tree.tree.counters().joins, 0U);
}

}  // namespace
}  // namespace atp::control
