// SPDX-License-Identifier: Apache-2.0
// Which failed edge a switch names as the cause.
#include "control/branch_failures.h"

#include <gtest/gtest.h>

#include "support/byte_archive.h"

namespace atp::control {
namespace {

constexpr BranchFailures::Position member_of(std::uint8_t bit, std::uint8_t member = BranchFailures::whole_unit) {
    return static_cast<BranchFailures::Position>(bit << 8U | member);
}

wire::Edge edge(std::uint8_t unit, std::uint8_t member = 0) { return {.unit = unit, .member = member}; }

TEST(BranchFailures, FirstFailureThatLastsIsTheCause) {
    BranchFailures failures;
    EXPECT_FALSE(failures.first());
    failures.note_child(member_of(2), edge(2));
    failures.note_child(member_of(1), edge(1));
    failures.note_child(member_of(2), edge(7));  // the child had reported an edge before it failed itself
    EXPECT_EQ(failures.first(), edge(2));
    failures.report_of_child(member_of(2), std::nullopt);
    EXPECT_EQ(failures.first(), edge(1));
    EXPECT_TRUE(failures.of_children());
    failures.report_of_child(member_of(1), std::nullopt);
    EXPECT_FALSE(failures.first());
    EXPECT_FALSE(failures.of_children());
}

TEST(BranchFailures, LaterReportOfAChildReplacesItsEarlierOneInItsPlace) {
    BranchFailures failures;
    failures.report_of_child(member_of(1), edge(1, 4));
    failures.report_of_child(member_of(2), edge(2));
    failures.report_of_child(member_of(1), edge(1, 5));
    EXPECT_EQ(failures.first(), edge(1, 5));
}

TEST(BranchFailures, OwnCauseIsNeverTheReportOfTheParent) {
    BranchFailures failures;
    failures.report_of_parent(edge(9));
    EXPECT_EQ(failures.first(), edge(9));
    EXPECT_FALSE(failures.first_own());
    EXPECT_FALSE(failures.of_children());
    failures.note_child(member_of(3), edge(3));
    EXPECT_EQ(failures.first(), edge(9)) << "it came first";
    EXPECT_EQ(failures.first_own(), edge(3));
    failures.report_of_parent(std::nullopt);
    EXPECT_EQ(failures.first(), edge(3));
}

TEST(BranchFailures, EdgeToTheParentIsOwnUntilTheParentIsHeard) {
    BranchFailures failures;
    failures.note_parent(edge(4));
    EXPECT_EQ(failures.first_own(), edge(4));
    EXPECT_FALSE(failures.of_children());
    failures.forget_parent();
    EXPECT_FALSE(failures.first());
}

TEST(BranchFailures, UnitThatJoinsAsAWholeReplacesItsMembersAndViceVersa) {
    BranchFailures failures;
    failures.note_child(member_of(1, 0), edge(1, 0));
    failures.note_child(member_of(1, 3), edge(1, 3));
    failures.note_child(member_of(2, 3), edge(2, 3));
    failures.report_of_child(member_of(1), std::nullopt);
    EXPECT_EQ(failures.first(), edge(2, 3));
    failures.note_child(member_of(2), edge(2));
    failures.report_of_child(member_of(2, 3), std::nullopt);
    EXPECT_FALSE(failures.first());
}

TEST(BranchFailures, RestoredFailuresEqualTheOriginal) {
    BranchFailures from;
    from.note_child(member_of(2, 1), {.evidence = wire::Evidence::closed, .unit = 2, .member = 1, .silent_ms = 500});
    from.report_of_parent(edge(9));
    BranchFailures to;
    to.note_parent(edge(5));
    ASSERT_TRUE(testing::copy_state(from, to));
    EXPECT_EQ(to.first(), from.first());
    to.report_of_child(member_of(2, 1), std::nullopt);
    EXPECT_EQ(to.first(), edge(9));
    EXPECT_FALSE(to.first_own());
    to.clear();
    EXPECT_FALSE(to.first());
}

}  // namespace
}  // namespace atp::control
