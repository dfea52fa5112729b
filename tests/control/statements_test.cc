// SPDX-License-Identifier: Apache-2.0
// What a tree makes of the statements of its members.
#include "control/statements.h"

#include <gtest/gtest.h>

#include <string>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

using Statements = std::vector<wire::Statement>;

wire::Statement statement(const std::string& text, std::uint8_t member, std::uint8_t unit = 0,
                          std::uint16_t count = 1) {
    return {.count = count, .unit = unit, .member = member, .text = text};
}

TEST(Statements, EqualTextsBecomeOneThatNamesTheLowestPlace) {
    Statements all;
    add_statements(all, Statements{statement("a", 3), statement("a", 1)});
    add_statements(all, Statements{statement("a", 2, 0, 5)});
    EXPECT_EQ(all, Statements{statement("a", 1, 0, 7)});
    EXPECT_EQ(count_of(all), 7U);
}

TEST(Statements, TextOfMostMembersComesFirstAndATieGoesToTheLowestPlace) {
    Statements all;
    add_statements(all, Statements{statement("a", 1), statement("b", 0, 1, 2)});
    EXPECT_EQ(all.front().text, "b");
    add_statements(all, Statements{statement("a", 0)});
    EXPECT_EQ(all.front().text, "a");
}

TEST(Statements, TextsBeyondTheFourthAndMembersBeyond65535AreLeftOut) {
    Statements all;
    for (std::uint8_t i = 0; i < 9; ++i)
        add_statements(all, Statements{statement(std::string(1, static_cast<char>('a' + i)), i)});
    EXPECT_EQ(all.size(), wire::max_statements);
    add_statements(all, Statements{statement("a", 0, 0, 65'535)});
    EXPECT_EQ(all.front().count, 65'535U);
}

wire::Join stating(wire::Join join, const std::string& text) {
    join.begun = true;
    join.statements = {statement(text, static_cast<std::uint8_t>(std::countr_zero(join.units.front().members)),
                                 join.units.front().unit)};
    return join;
}

Statements told(const Tree& tree, const wire::Address& child) {
    const auto joined = tree.sent_to<wire::Joined>(child);
    return joined.empty() ? Statements() : joined.back().statements;
}

TEST(Statements, EachMemberLearnsTheStatementsOfAll) {
    Tree star;
    for (unsigned member = 0; member < 3; ++member) star.join(join_of_member(0, 3, member), worker(member));
    star.forget();
    star.join(stating(join_of_member(0, 3, 0), "sum"), worker(0));
    star.join(stating(join_of_member(0, 3, 1), "copy"), worker(1));
    star.join(stating(join_of_member(0, 3, 2), "sum"), worker(2));
    for (unsigned member = 0; member < 3; ++member) {
        EXPECT_EQ(told(star, worker(member)), (Statements{statement("sum", 0, 0, 2), statement("copy", 1)})) << member;
    }
    star.leave(0, 1, worker(1));
    EXPECT_EQ(count_of(told(star, worker(0))), 3U) << "the statement of a member that left remains";
}

TEST(Statements, SwitchPassesThemUpAtOnceAndThoseOfAllRacksDown) {
    Tree leaf(below(host(1)));
    leaf.join(join_of_member(1, 2, 0, 2, 0x3), worker(2));
    leaf.join(join_of_member(1, 2, 1, 2, 0x3), worker(3));
    leaf.joined(true, host(1));
    leaf.forget();
    leaf.join(stating(join_of_member(1, 2, 0, 2, 0x3), "sum"), worker(2));
    leaf.join(stating(join_of_member(1, 2, 1, 2, 0x3), "copy"), worker(3));
    const auto up = leaf.sent_to<wire::Join>(host(1));
    ASSERT_FALSE(up.empty());
    EXPECT_EQ(count_of(up.back().statements), 2U);
    const Statements all{statement("sum", 0, 0, 3), statement("copy", 1, 1)};
    leaf.tree.handle_joined({.nonce = up.back().nonce,
                             .job = job,
                             .token = token,
                             .channel = channel,
                             .epoch = up.back().epoch,
                             .number = 9,
                             .ready = true,
                             .statements = all},
                            host(1), leaf.now);
    leaf.drain();
    EXPECT_EQ(told(leaf, worker(2)), all);
    EXPECT_EQ(told(leaf, worker(3)), all);
}

// 1,000 JOINs in 100 ms would make the switch send 32,000 messages.
TEST(Statements, MemberThatChangesItsStatementInEachJoinCausesNoFlood) {
    constexpr unsigned members = 32;
    const auto of_32 = [](unsigned member) {
        return but(join_of_member(0, 1, member), [](wire::Join& join) { join.units.front().mask0 = ~0U; });
    };
    Tree star;
    for (unsigned member = 0; member < members; ++member) star.join(of_32(member), worker(member));
    star.forget();
    for (unsigned i = 0; i < 1000; ++i) {
        star.pass(std::chrono::microseconds(100));
        star.join(stating(of_32(0), std::to_string(i)), worker(0));
    }
    EXPECT_LE(star.sent_to<wire::Joined>(worker(1)).size(), 6000U / members) << "4,000 at once and 20,000 a second";
    EXPECT_GE(star.sent_to<wire::Joined>(worker(0)).size(), 1000U) << "each JOIN has an answer";
    star.pass(std::chrono::milliseconds(10));
    EXPECT_EQ(told(star, worker(1)).front().text, "999") << "the others learn the last statement a little later";
}

TEST(Statements, H102_DifferIfTwoAreAboutOnePlace) {
    const Statements equal{statement("sum at fragment 5", 0, 0, 3)};
    const Statements elsewhere{statement("sum at fragment 5", 0, 0), statement("copy at fragment 9", 0, 1)};
    const Statements differing{statement("sum at fragment 5", 0, 0), statement("copy at fragment 5", 0, 1)};
    EXPECT_FALSE(differ_at(equal, " at fragment 5"));
    EXPECT_FALSE(differ_at(elsewhere, " at fragment 5"));
    EXPECT_TRUE(differ_at(differing, " at fragment 5"));
    EXPECT_FALSE(differ_at(differing, " at fragment 55"));
}

}  // namespace
}  // namespace atp::control
