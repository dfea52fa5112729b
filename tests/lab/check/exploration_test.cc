// SPDX-License-Identifier: Apache-2.0
// The shipped machines keep every invariant in every state of the quick configurations. The exploration is
// repeatable, and stops at its limit.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

#include "check/configuration.h"
#include "check/explore.h"
#include "check/healing.h"
#include "check/model.h"
#include "check/suite.h"

namespace atp::check {
namespace {

std::string name_of(const testing::TestParamInfo<Configuration>& info) {
    std::string name{info.param.name};
    for (char& letter : name) letter = letter == '-' ? '_' : letter;
    return name;
}

class QuickConfiguration : public testing::TestWithParam<Configuration> {};

// The program visits all: `atp-lab check`.
TEST_P(QuickConfiguration, HasNoViolationInItsFirstStates) {
    Limits limits;
    limits.max_states = 100'000;
    const Report report = shipped::explore(GetParam(), limits);
    EXPECT_GT(report.states, 300U);
    EXPECT_FALSE(report.violation) << report.violation->what << "\n" << report.violation->trace.back().text;
    EXPECT_LT(report.missed_probability(), 2e-6);  // 8 million states
}

// Without an active fault, the fault-injection build has the same states as the shipped machines. A violation with an
// active fault is therefore due to this fault.
TEST_P(QuickConfiguration, HasTheSameStatesInTheFaultInjectionBuildWithoutAFault) {
    Limits limits;
    limits.max_states = 20'000;
    const Report shipped_report = shipped::explore(GetParam(), limits);
    const Report asleep = breakable::explore(GetParam(), limits, 0);
    EXPECT_FALSE(asleep.violation);
    EXPECT_EQ(asleep.states, shipped_report.states);
    EXPECT_EQ(asleep.transitions, shipped_report.transitions);
    EXPECT_EQ(asleep.depth, shipped_report.depth);
}

// Long random walks with all faults, far beyond the depth of the quick budgets. Every tenth state also starts a healed
// run.
TEST_P(QuickConfiguration, HealsFromEveryTenthStepOfRandomWalks) {
    Configuration configuration = GetParam();
    for (std::uint8_t& left : configuration.budget) left = left == 0 ? 0 : 6;
    configuration.budget[static_cast<std::size_t>(Fault::loss)] = 6;
    configuration.budget[static_cast<std::size_t>(Fault::duplicate)] = 4;
    configuration.budget[static_cast<std::size_t>(Fault::timeout)] = 6;
    Model model(configuration, shipped::make_system(configuration));
    HealedRun healed(model);
    std::mt19937 random(7);
    for (unsigned walk = 0; walk < 60; ++walk) {
        Words state = model.initial();
        Words next;
        for (unsigned step = 0; step < 200; ++step) {
            std::vector<Action> actions;
            model.for_each_action(state, [&](Action action) { actions.push_back(action); });
            if (actions.empty()) break;
            const Action chosen = actions[random() % actions.size()];
            ASSERT_TRUE(model.apply(state, chosen, next)) << model.violation() << ": " << model.describe(state, chosen);
            state.swap(next);
            if (step % 10 == 0) {
                ASSERT_EQ(healed.run(state), "");
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Configurations, QuickConfiguration,
                         testing::ValuesIn(configurations(Extent::quick).begin(), configurations(Extent::quick).end()),
                         name_of);

TEST(Exploration, StopsAtItsLimitAndReportsItselfIncomplete) {
    Limits limits;
    limits.max_states = 1000;
    const Report report = shipped::explore(*find_configuration("star2", Extent::full), limits);
    EXPECT_FALSE(report.exhausted);
    EXPECT_GE(report.states, 1000U);
    EXPECT_LT(report.states, 1100U);
}

TEST(Exploration, RepeatedRunsFindTheSameStates) {
    const Configuration& configuration = *find_configuration("float", Extent::quick);
    const Report first = shipped::explore(configuration, {});
    const Report second = shipped::explore(configuration, {});
    EXPECT_EQ(first.states, second.states);
    EXPECT_EQ(first.transitions, second.transitions);
}

TEST(Exploration, EachAllowedFaultAddsStates) {
    Configuration configuration = *find_configuration("star2", Extent::quick);
    configuration.budget = Budget{};
    const std::uint64_t without = shipped::explore(configuration, {}).states;
    for (const Fault fault :
         {Fault::loss, Fault::duplicate, Fault::timeout, Fault::restart, Fault::crash, Fault::mark}) {
        configuration.budget = Budget{};
        configuration.budget[static_cast<std::size_t>(fault)] = 1;
        EXPECT_GT(shipped::explore(configuration, {}).states, without) << static_cast<int>(fault);
    }
}

TEST(Exploration, ChangesOfSlicesAddStates) {
    Configuration configuration = *find_configuration("slices", Extent::quick);
    configuration.budget = Budget{};
    const std::uint64_t without = shipped::explore(configuration, {}).states;
    configuration.budget = Budget{.changes = 1};
    EXPECT_GT(shipped::explore(configuration, {}).states, without);
}

TEST(Suite, ReportsKeepTheOrderOfTasksOnAnyNumberOfThreads) {
    std::vector<Task> tasks;
    for (const Configuration& configuration : configurations(Extent::quick)) {
        tasks.push_back({&configuration, [](const Configuration& c, const Limits&) {
                             Report report;
                             report.configuration = c.name;
                             return report;
                         }});
    }
    std::size_t ended = 0;
    const auto reports =
        run_suite(tasks, {.threads = 3, .max_states = 1, .progress = {}, .ended = [&](const Report&) { ++ended; }});
    EXPECT_EQ(ended, tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) EXPECT_EQ(reports[i].configuration, tasks[i].configuration->name);
}

}  // namespace
}  // namespace atp::check
