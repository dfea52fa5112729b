// SPDX-License-Identifier: Apache-2.0
// Proves that the model checker can fail: it detects every injected fault, and its trace reproduces the fault.
#include "check/breaks_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "check/explore.h"

namespace atp::check {
namespace {

std::string name_of(const ::testing::TestParamInfo<Break>& info) { return std::string(info.param.name); }

class InjectedFault : public ::testing::TestWithParam<Break> {
  protected:
    const Configuration& configuration() const { return *find_configuration(GetParam().configuration, Extent::quick); }
};

TEST_P(InjectedFault, IsFoundWithATraceThatReplays) {
    ASSERT_NE(find_configuration(GetParam().configuration, Extent::quick), nullptr);
    const Report report = breakable::explore(configuration(), {}, GetParam().number);
    ASSERT_TRUE(report.violation);
    EXPECT_LT(report.seconds, 60);
    ASSERT_FALSE(report.violation->trace.empty());

    std::vector<TraceStep> trace = report.violation->trace;
    EXPECT_EQ(breakable::replay(configuration(), trace, GetParam().number), report.violation->what);
    // The shipped machines violate no invariant on the same trace, as far as they can follow it.
    const std::string sound = breakable::replay(configuration(), trace, 0);
    EXPECT_TRUE(sound.empty() || sound == "cannot follow") << sound;
}

TEST_P(InjectedFault, HasADescriptionAndAHazard) {
    EXPECT_GE(GetParam().hazard, 1U);
    EXPECT_LE(GetParam().hazard, 109U);
    EXPECT_GT(GetParam().what.size(), 20U);
    EXPECT_EQ(find_break(GetParam().name)->number, GetParam().number);
}

INSTANTIATE_TEST_SUITE_P(Breaks, InjectedFault, ::testing::ValuesIn(breaks().begin(), breaks().end()), name_of);

TEST(InjectedFaults, CoverTwelveHazards) {
    std::set<unsigned> hazards;
    for (const Break& broken : breaks()) hazards.insert(broken.hazard);
    EXPECT_GE(breaks().size(), 15U);
    EXPECT_GE(hazards.size(), 12U);
}

TEST(InjectedFaults, GiveTheShortestTrace) {
    // A duplicate of one worker's gradient followed by the other worker's gradient suffices to count a bit twice.
    const Break& broken = *find_break("ignore_bitmap");
    Configuration configuration = *find_configuration("star2", Extent::quick);
    configuration.budget = Budget{.duplicates = 1};
    const Report report = breakable::explore(configuration, {}, broken.number);
    ASSERT_TRUE(report.violation);
    EXPECT_EQ(report.violation->healed_from, 3U);
}

}  // namespace
}  // namespace atp::check
