// SPDX-License-Identifier: Apache-2.0
// Racks whose switch is in the path and has no address: each of their workers joins the last switch itself.
#include <gtest/gtest.h>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

constexpr std::uint32_t two_units = 0x3;

// JOIN of `rank` in a job of two racks with two workers each.
wire::Join member(unsigned rank) {
    const auto unit = static_cast<std::uint8_t>(rank / 2);
    return but(join_of_member(unit, 2, rank % 2, static_cast<std::uint16_t>(2 * unit), two_units),
               [](wire::Join& join) { join.level = 1; });
}

void join_all(Tree& tree) {
    for (unsigned rank = 0; rank < 4; ++rank) tree.join(member(rank), worker(rank));
}

std::vector<wire::Address> addresses_of(const Branch& branch) {
    std::vector<wire::Address> addresses;
    branch.for_each_child([&](const Branch::Child& child) { addresses.push_back(child.address); });
    return addresses;
}

TEST(JoinTreeRack, TreeIsReadyWhenTheLastMemberOfTheLastRackJoins) {
    Tree root;
    for (unsigned rank = 0; rank < 3; ++rank) root.join(member(rank), worker(rank));
    const Branch& branch = *root.tree.find(key);
    EXPECT_FALSE(branch.ready());
    const auto joined = root.sent_to<wire::Joined>(worker(2)).back();
    EXPECT_EQ(joined.missing_units, 0x2U);
    EXPECT_EQ(joined.missing_members, 0x2U) << "member 1 of the receiver's own rack";

    root.join(member(3), worker(3));
    EXPECT_EQ(root.count(Kind::opened), 1U);
    for (unsigned rank = 0; rank < 4; ++rank) EXPECT_TRUE(root.told_ready(worker(rank))) << rank;
    EXPECT_EQ(addresses_of(branch), (std::vector{worker(0), worker(1), worker(2), worker(3)}));
    EXPECT_EQ(branch.receivers, 4U);
    EXPECT_EQ(branch.child_to(2)->address, worker(2));
    const auto members = branch.membership();
    ASSERT_TRUE(members);
    EXPECT_EQ(members->units(), 2U);
    EXPECT_EQ(members->unit(1).ranks, (std::vector<std::uint16_t>{2, 3}));
    EXPECT_FALSE(members->unit(1).direct);
}

TEST(JoinTreeRack, TreeOfRacksWithAndWithoutAddressedSwitchAndDirectWorkersIsReady) {
    const auto of_three = [](wire::Join join) {
        join.terms.mask1 = 0x7;
        return join;
    };
    Tree root;
    for (unsigned rank = 0; rank < 2; ++rank) root.join(of_three(member(rank)), worker(rank));
    root.join(join_of_unit(1, 2, 2, 0x7), host(2));
    root.join(join_of_unit(2, 4, 1, 0x7, true), worker(4));
    EXPECT_TRUE(root.told_ready(worker(0)));
    EXPECT_TRUE(root.told_ready(host(2)));
    const Branch& branch = *root.tree.find(key);
    EXPECT_EQ(branch.child_to(3)->address, host(2));
    EXPECT_EQ(branch.membership()->workers(), 5U);
}

TEST(JoinTreeRack, LeavingOrSilentMemberMakesTheTreeUnready) {
    Tree root;
    join_all(root);
    root.forget();
    root.leave(0, 1, worker(0));
    EXPECT_EQ(root.tree.counters().forged, 1U) << "worker 0 sends a LEAVE for the position of member 1";
    root.leave(0, 1, worker(1));
    EXPECT_FALSE(root.tree.find(key)->ready());
    EXPECT_EQ(root.sent_to<wire::Joined>(worker(0)).back().missing_members, 0x2U);
    EXPECT_EQ(root.sent_to<wire::Joined>(worker(3)).back().missing_units, 0x1U);
    root.join(member(1), worker(1));
    EXPECT_TRUE(root.tree.find(key)->ready());

    root.pass(std::chrono::seconds(11));
    EXPECT_EQ(root.tree.counters().expired, 4U);
    EXPECT_EQ(root.count(Kind::closed), 1U);
    EXPECT_EQ(root.tree.find(key), nullptr);
}

TEST(JoinTreeRack, TakenPositionIsRefused) {
    Tree root;
    join_all(root);
    root.join(member(1), worker(9));
    root.expect_refused(worker(9), Refusal::place, "taken");
    EXPECT_EQ(root.tree.find(key)->child_to(1)->address, worker(1));
}

TEST(JoinTreeRack, RackOfAnotherSizeOrKindIsRefused) {
    Tree root;
    root.join(member(0), worker(0));
    root.join(join_of_unit(0, 0, 2, two_units), host(2));
    root.expect_refused(host(2), Refusal::terms, "expect different members");

    Tree other;
    other.join(member(0), worker(0));
    other.join(but(join_of_member(0, 3, 1, 0, two_units), [](wire::Join& join) { join.level = 1; }), worker(1));
    other.expect_refused(worker(1), Refusal::terms, "expect different members");

    Tree with_switch;
    with_switch.join(join_of_unit(0, 0, 2, two_units), host(2));
    with_switch.join(member(0), worker(0));
    with_switch.expect_refused(worker(0), Refusal::terms, "expect different members");
}

TEST(JoinTreeRack, ServerOnAnotherHostGetsOneJoinWithWholeUnits) {
    Tree last;
    const auto elsewhere = [](wire::Join join) {
        join.terms.server = endpoint_of(host(50));
        return join;
    };
    for (unsigned rank = 0; rank < 4; ++rank) last.join(elsewhere(member(rank)), worker(rank));
    const auto up = last.sent_to<wire::Join>(host(50));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_EQ(up[0].units,
              (std::vector{join_of_unit(0, 0, 2, two_units).units[0], join_of_unit(1, 2, 2, two_units).units[0]}));
}

}  // namespace
}  // namespace atp::control
