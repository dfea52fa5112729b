// SPDX-License-Identifier: Apache-2.0
// What a tree of two levels finds out about members, leaves and roots that fail, and what it tells the ranks.
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "join_failures_fixture.h"

namespace atp::control {
namespace {

// Two racks of two workers each below a root, and messages between the switches.
struct Racks {
    Racks() {
        for (unsigned rack = 0; rack < 2; ++rack) {
            for (unsigned member = 0; member < 2; ++member) join(rack, member);
        }
        relay();
        for (unsigned rack = 0; rack < 2; ++rack) EXPECT_TRUE(leaves[rack].told_ready(worker(2 * rack)));
    }
    void join(unsigned rack, unsigned member) {
        const auto first = static_cast<std::uint16_t>(2 * rack);
        leaves[rack].join(begun_ ? begun(join_of_member(static_cast<std::uint8_t>(rack), 2, member, first, 0x3))
                                 : join_of_member(static_cast<std::uint8_t>(rack), 2, member, first, 0x3),
                          worker(2 * rack + member));
    }
    // Delivers what the switches sent to each other, until they send nothing more. `up`, `down`: directions of rack 1
    // that work.
    void relay() {
        for (bool moved = true; moved;) {
            moved = false;
            for (unsigned rack = 0; rack < 2; ++rack) {
                const wire::Address leaf = host(2 + rack);
                moved |= move(leaves[rack], root, leaf, host(1), rack == 0 || up, rack == 0 ? 0 : longest_up);
                moved |= move(root, leaves[rack], host(1), leaf, rack == 0 || down, 0);
            }
        }
        begun_ = true;
    }
    static bool move(Tree& from, Tree& to, const wire::Address& sender, const wire::Address& receiver, bool works,
                     std::uint32_t longest) {
        std::vector<JoinTree::Transmit> rest;
        std::vector<JoinTree::Transmit> sent;
        sent.swap(from.sent);
        bool moved = false;
        for (auto& transmit : sent) {
            if (transmit.to != receiver) {
                rest.push_back(std::move(transmit));
                continue;
            }
            if (!works || (longest != 0 && transmit.padded_bytes > longest)) continue;
            moved = true;
            if (const auto* join = std::get_if<wire::Join>(&transmit.message)) to.join(*join, sender);
            if (const auto* leave = std::get_if<wire::Leave>(&transmit.message)) {
                to.tree.handle_leave(*leave, sender, to.now);
                to.drain();
            }
            if (const auto* joined = std::get_if<wire::Joined>(&transmit.message)) {
                to.tree.handle_joined(*joined, sender, to.now);
                to.drain();
            }
        }
        rest.insert(rest.end(), std::make_move_iterator(from.sent.begin()), std::make_move_iterator(from.sent.end()));
        from.sent = std::move(rest);
        return moved;
    }
    // All workers but `failed` repeat their JOINs.
    void pass(Duration duration, std::optional<unsigned> failed = std::nullopt) {
        const Time end = root.now + duration;
        while (root.now < end) {
            for (Tree* tree : {&root, &leaves[0], &leaves[1]}) tree->pass(milliseconds(50));
            relay();
            if (root.now - joined_at < refresh_of(timing.hold)) continue;
            joined_at = root.now;
            for (unsigned rank = 0; rank < 4; ++rank) {
                if (failed != rank) join(rank / 2, rank % 2);
            }
            relay();
        }
    }
    [[nodiscard]] std::optional<wire::Edge> told(unsigned rank) const {
        return edge_told(leaves[rank / 2], worker(rank));
    }

    Tree root;
    std::array<Tree, 2> leaves{Tree(below(host(1))), Tree(below(host(1)))};
    Time joined_at{};
    bool up = true;
    bool down = true;
    std::uint32_t longest_up = 0;  // bytes of a JOIN; 0: any

  private:
    bool begun_ = false;
};

TEST(RackFailures, H76_LeafWithoutAMemberGoesOnJoiningAndAllRacksNameTheMember) {
    Racks racks;
    racks.pass(timing.hold + milliseconds(200), 3);
    for (const unsigned rank : {0U, 1U, 2U}) {
        const auto edge = racks.told(rank);
        ASSERT_TRUE(edge) << rank;
        EXPECT_EQ(edge->kind, EdgeKind::member) << rank;
        EXPECT_EQ(edge->unit, 1U);
        EXPECT_EQ(edge->member, 1U);
    }
    racks.pass(timing.hold + milliseconds(200), 3);
    EXPECT_EQ(racks.root.tree.counters().expired, 0U) << "the leaf is not silent";
    EXPECT_EQ(racks.told(0)->member, 1U);
    racks.pass(milliseconds(600));
    EXPECT_FALSE(racks.told(0)) << "the member is back";
    EXPECT_TRUE(racks.leaves[0].told_ready(worker(0)));
}

TEST(RackFailures, LeafReportsItsOwnFailureThoughTheRootNamedAnotherBefore) {
    Racks racks;
    racks.leaves[0].leave(0, 1, worker(1));
    racks.relay();
    ASSERT_TRUE(racks.told(2));
    EXPECT_EQ(racks.told(2)->unit, 0U);
    racks.leaves[1].leave(1, 1, worker(3));  // a consequence
    racks.relay();
    EXPECT_EQ(racks.told(2)->unit, 0U);
    racks.join(0, 1);
    racks.relay();
    for (const unsigned rank : {0U, 1U, 2U}) {
        ASSERT_TRUE(racks.told(rank)) << rank;
        EXPECT_EQ(racks.told(rank)->unit, 1U) << rank;
        EXPECT_EQ(racks.told(rank)->member, 1U) << rank;
    }
    racks.join(1, 1);
    racks.relay();
    EXPECT_FALSE(racks.told(0));
    for (unsigned rank = 0; rank < 4; ++rank) EXPECT_TRUE(racks.leaves[rank / 2].told_ready(worker(rank))) << rank;
}

TEST(RackFailures, H74_LeafThatIsCutOffIsNamedByBothSides) {
    Racks racks;
    racks.up = racks.down = false;
    racks.pass(timing.hold + milliseconds(400));
    ASSERT_TRUE(racks.told(0));
    EXPECT_EQ(racks.told(0)->kind, EdgeKind::leaf);
    EXPECT_EQ(racks.told(0)->evidence, Evidence::silence);
    EXPECT_EQ(address_of(racks.told(0)->at), host(3));
    ASSERT_TRUE(racks.told(2));
    EXPECT_EQ(racks.told(2)->kind, EdgeKind::parent);
    EXPECT_EQ(address_of(racks.told(2)->at), host(1));
}

TEST(RackFailures, H74_LeafThatReceivesNothingIsNamedInTheOtherRackWithTheDirection) {
    Racks racks;
    racks.down = false;
    racks.pass(timing.hold + milliseconds(400));
    ASSERT_TRUE(racks.told(0));
    EXPECT_EQ(racks.told(0)->kind, EdgeKind::leaf);
    EXPECT_EQ(racks.told(0)->evidence, Evidence::one_direction);
    EXPECT_EQ(racks.told(0)->unit, 1U);
    EXPECT_EQ(address_of(racks.told(0)->at), host(3));
}

TEST(RackFailures, H74_LeafThatIsNotHeardLearnsItFromTheRoot) {
    Racks racks;
    racks.up = false;
    racks.pass(timing.hold + milliseconds(200));
    ASSERT_TRUE(racks.told(2));
    EXPECT_EQ(racks.told(2)->kind, EdgeKind::leaf);
    EXPECT_EQ(address_of(racks.told(2)->at), host(3));
}

TEST(RackFailures, EndedParentIsNamedWithinASecond) {
    Racks racks;
    racks.up = racks.down = false;
    Tree& leaf = racks.leaves[1];
    for (int i = 0; i < 14; ++i) {
        leaf.pass(milliseconds(50));
        const auto quoted =
            testing::encoded(leaf.sent_to<wire::Join>(host(1)).empty() ? join_of_unit(1, 2, 2, 0x3)
                                                                       : leaf.sent_to<wire::Join>(host(1)).back());
        wire::SendError error = no_process(host(1));
        error.quoted_bytes = std::min(quoted.size(), error.quoted.size());
        std::copy_n(quoted.begin(), error.quoted_bytes, error.quoted.begin());
        leaf.tree.handle_send_error(error, leaf.now);
        leaf.drain();
    }
    const auto edge = racks.told(3);
    ASSERT_TRUE(edge);
    EXPECT_EQ(edge->kind, EdgeKind::parent);
    EXPECT_EQ(edge->evidence, Evidence::closed);
    EXPECT_EQ(address_of(edge->at), host(1));
}

// The links between leaf and root carry short packets only, and no host reports the loss.
TEST(RackFailures, H79_LeafWhoseLongPacketsAreLostIsNamedInBothRacks) {
    Racks racks;
    racks.longest_up = 300;
    racks.pass(timing.hold + milliseconds(1200));
    for (const unsigned rank : {0U, 2U}) {
        ASSERT_TRUE(racks.told(rank)) << rank;
        EXPECT_EQ(racks.told(rank)->kind, rank == 0 ? EdgeKind::leaf : EdgeKind::parent);
        EXPECT_EQ(racks.told(rank)->evidence, Evidence::too_long);
        EXPECT_EQ(address_of(racks.told(rank)->at), rank == 0 ? host(3) : host(1));
    }
    EXPECT_FALSE(racks.leaves[1].told_ready(worker(2))) << "short answers are not enough";
    racks.longest_up = 0;
    racks.pass(milliseconds(1200));
    for (const unsigned rank : {0U, 2U}) EXPECT_TRUE(racks.leaves[rank / 2].told_ready(worker(rank)));
}

TEST(RackFailures, H80_RootThatDidNotRunIsNamedInsteadOfTheLeafThatNoticed) {
    for (const bool was_paused : {true, false}) {
        Tree root;
        for (std::uint8_t unit = 0; unit < 2; ++unit) {
            root.join(join_of_unit(unit, static_cast<std::uint16_t>(2 * unit), 2, 0x3), host(2 + unit));
        }
        root.forget();
        if (was_paused) {
            root.now += milliseconds(3100);  // and handle_timeout() comes after the messages
        } else {
            root.pass(milliseconds(200));
        }
        wire::Join join = begun(join_of_unit(0, 0, 2, 0x3));
        join.edges = {
            {.kind = EdgeKind::parent, .evidence = Evidence::silence, .silent_ms = 3000, .at = endpoint_of(host(1))}};
        root.join(join, host(2));
        const auto edge = edge_told(root, host(3));
        ASSERT_TRUE(edge);
        EXPECT_EQ(edge->kind, EdgeKind::leaf);
        EXPECT_EQ(edge->evidence, was_paused ? Evidence::paused : Evidence::one_direction);
        EXPECT_EQ(address_of(edge->at), was_paused ? host(1) : host(2));
        EXPECT_GE(edge->silent_ms, 2500U);
    }
}

TEST(RackFailures, H80_OwnPauseOfARootExplainsNoLinkBelowALeaf) {
    Tree root;
    for (std::uint8_t unit = 0; unit < 2; ++unit) {
        root.join(join_of_unit(unit, static_cast<std::uint16_t>(2 * unit), 2, 0x3), host(2 + unit));
    }
    root.forget();
    root.now += milliseconds(3100);
    wire::Join join = begun(join_of_unit(0, 0, 2, 0x3));
    join.edges = {{.kind = EdgeKind::member,
                   .evidence = Evidence::one_direction,
                   .member = 1,
                   .silent_ms = 3000,
                   .at = endpoint_of(host(2))}};
    root.join(join, host(2));
    const auto edge = edge_told(root, host(3));
    ASSERT_TRUE(edge);
    EXPECT_EQ(edge->kind, EdgeKind::member);
    EXPECT_EQ(edge->member, 1U);
}

// A rank repeats in its LEAVE what its leaf told it. The leaf may hear its parent again by then.
TEST(RackFailures, H78_CauseThatARankLearntFromItsLeafNamesTheParentAndNotTheRank) {
    Tree leaf(below(host(1)));
    for (unsigned rank = 0; rank < 2; ++rank) leaf.join(join_of_member(0, 2, rank, 0, 0x3), worker(rank));
    leaf.joined(true, host(1));
    leaf.forget();
    wire::Leave leave{.job = job, .token = token, .channel = channel, .epoch = 1000};
    leave.edges = {
        {.kind = EdgeKind::parent, .evidence = Evidence::silence, .silent_ms = 3000, .at = endpoint_of(host(1))}};
    leaf.tree.handle_leave(leave, worker(0), leaf.now);
    leaf.drain();
    const auto told = edge_told(leaf, worker(1));
    ASSERT_TRUE(told);
    EXPECT_EQ(told->kind, EdgeKind::parent);
    EXPECT_EQ(told->evidence, Evidence::silence);
    EXPECT_EQ(address_of(told->at), host(1));
}

// The only member of a ready leaf leaves because of its path MTU.
void lose_last_member(Tree& leaf) {
    leaf.join(join_of_member(1, 1, 0, 2, 0x3), worker(2));
    leaf.joined(true, host(1));
    leaf.forget();
    leaf.tree.handle_leave({.job = job,
                            .token = token,
                            .channel = channel,
                            .epoch = 9,
                            .unit = 1,
                            .member = 0,
                            .edges = {{.kind = EdgeKind::path_mtu, .evidence = Evidence::too_long, .unit = 1}}},
                           worker(2), leaf.now);
    leaf.drain();
}

// One lost message must not turn the cause into silence of an innocent switch.
TEST(RackFailures, LeaveWithACauseIsSentThreeTimes) {
    Tree leaf(below(host(1)));
    lose_last_member(leaf);
    leaf.pass(milliseconds(300));
    const auto leaves = leaf.sent_to<wire::Leave>(host(1));
    ASSERT_EQ(leaves.size(), 3U);

    Tree root;
    root.join(join_of_unit(0, 0, 2, 0x3), host(2));
    root.join(join_of_unit(1, 2, 1, 0x3), host(3));
    for (wire::Leave leave : leaves) {
        leave.nonce = 0, leave.epoch = 9;
        root.tree.handle_leave(leave, host(3), root.now);
    }
    EXPECT_EQ(root.tree.counters().left, 1U);
    EXPECT_EQ(root.tree.counters().stale, 2U) << "the copies are no forgeries";
    EXPECT_EQ(root.tree.counters().forged, 0U);
}

TEST(RackFailures, H78_LeaveOfTheLastMemberCarriesTheCauseUpwards) {
    Tree leaf(below(host(1)));
    lose_last_member(leaf);
    const auto leaves = leaf.sent_to<wire::Leave>(host(1));
    ASSERT_EQ(leaves.size(), 1U);
    ASSERT_EQ(leaves[0].edges.size(), 1U);
    EXPECT_EQ(leaves[0].edges[0].kind, EdgeKind::path_mtu);
}

}  // namespace
}  // namespace atp::control
