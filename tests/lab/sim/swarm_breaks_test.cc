// SPDX-License-Identifier: Apache-2.0
// Proves that the simulator can fail: each test injects one fault into the state machines, and a few hundred seeds must
// detect it. The tests use only faults that random network faults trigger often. The model checker detects all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "endpoint/breaks.h"
#include "protocol/breaks.h"
#include "sim/simulation.h"
#include "sim/swarm.h"

namespace atp::sim {
namespace {

struct FaultyBuild {
    const char* name;
    atp_break value;
};

class InjectedFault : public testing::TestWithParam<FaultyBuild> {
  protected:
    void SetUp() override { atp_active_break = GetParam().value; }
    void TearDown() override { atp_active_break = ATP_BREAK_none; }
};

TEST_P(InjectedFault, FailsASeedOfTheSwarm) {
    constexpr std::uint64_t seeds = 400;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        if (!run(draw_scenario(seed)).passed()) return;
    }
    FAIL() << seeds << " seeds passed with the injected fault " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(EachAlone, InjectedFault,
                         testing::Values(FaultyBuild{"resend_claims", ATP_BREAK_resend_claims},
                                         FaultyBuild{"ignore_bitmap", ATP_BREAK_ignore_bitmap},
                                         FaultyBuild{"complete_early", ATP_BREAK_complete_early},
                                         FaultyBuild{"ignore_token", ATP_BREAK_ignore_token},
                                         FaultyBuild{"ignore_sequence", ATP_BREAK_ignore_sequence},
                                         FaultyBuild{"collision_not_bypass", ATP_BREAK_collision_not_bypass},
                                         FaultyBuild{"resend_keeps_aggregator", ATP_BREAK_resend_keeps_aggregator},
                                         FaultyBuild{"resend_drops_own", ATP_BREAK_resend_drops_own},
                                         FaultyBuild{"overflow_not_sticky", ATP_BREAK_overflow_not_sticky},
                                         FaultyBuild{"merge_overlapping", ATP_BREAK_merge_overlapping},
                                         FaultyBuild{"trust_overflowed_lanes", ATP_BREAK_trust_overflowed_lanes},
                                         FaultyBuild{"no_reack", ATP_BREAK_no_reack},
                                         FaultyBuild{"retain_too_short", ATP_BREAK_retain_too_short},
                                         FaultyBuild{"mix_modes", ATP_BREAK_mix_modes},
                                         FaultyBuild{"no_nack", ATP_BREAK_no_nack},
                                         FaultyBuild{"no_probe", ATP_BREAK_no_probe},
                                         FaultyBuild{"window_unbounded", ATP_BREAK_window_unbounded},
                                         FaultyBuild{"accept_any_ack", ATP_BREAK_accept_any_ack},
                                         FaultyBuild{"list_mixes_workers", ATP_BREAK_list_mixes_workers}),
                         [](const auto& build) { return build.param.name; });

// Of results that go out once for all members.
struct FaultOfAll {
    const char* name;
    atp_break value;
    const char* what;  // the simulator reports
};

constexpr auto faults_of_all = std::to_array<FaultOfAll>({
    {"copy_to_receiver", ATP_BREAK_copy_to_receiver, "copied a result to the member that it was sent to"},
    {"token_to_group", ATP_BREAK_token_to_group, "a packet to a group carries the token of its job"},
});

#define ATP_NAME_FAULT(name, hazard, what) #name,
constexpr auto names_of_all = std::to_array<std::string_view>({ATP_SWARM_BREAKS(ATP_NAME_FAULT)});
#undef ATP_NAME_FAULT
static_assert(faults_of_all.size() == names_of_all.size());

class FaultOfResultsForAll : public testing::TestWithParam<FaultOfAll> {
  protected:
    void SetUp() override { atp_active_break = GetParam().value; }
    void TearDown() override { atp_active_break = ATP_BREAK_none; }
};

TEST_P(FaultOfResultsForAll, FailsASeedOfTheSwarmWithCopiesOrGroups) {
    constexpr std::uint64_t seeds = 400;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Scenario scenario = draw_scenario(seed);
        if (!scenario.in_path && !scenario.groups) continue;
        const Report report = run(scenario);
        if (report.passed()) continue;
        EXPECT_THAT(report.failures, testing::Contains(testing::HasSubstr(GetParam().what)));
        atp_active_break = ATP_BREAK_none;
        EXPECT_TRUE(run(scenario).passed()) << "seed " << seed << " fails without the fault, too";
        return;
    }
    FAIL() << "all of " << seeds << " seeds passed with the injected fault " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(EachAlone, FaultOfResultsForAll, testing::ValuesIn(faults_of_all),
                         [](const auto& build) { return build.param.name; });

class RoutingFault : public testing::TestWithParam<endpoint::RoutingBreak> {
  protected:
    void SetUp() override { endpoint::active_routing_break = GetParam(); }
    void TearDown() override { endpoint::active_routing_break = endpoint::RoutingBreak::none; }
};

TEST_P(RoutingFault, FailsASeedOfTheSwarm) {
    constexpr std::uint64_t seeds = 200;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        if (!run(draw_scenario(seed)).passed()) return;
    }
    FAIL() << seeds << " seeds passed with an injected fault of routing";
}

std::string name_of(endpoint::RoutingBreak value) {
    constexpr std::array names{"", "result_goes_up", "answer_to_another", "results_to_other_racks",
                               "flush_to_another_rack"};
    return names[static_cast<std::size_t>(value)];
}

INSTANTIATE_TEST_SUITE_P(EachAlone, RoutingFault,
                         testing::Values(endpoint::RoutingBreak::result_goes_up,
                                         endpoint::RoutingBreak::answer_to_another,
                                         endpoint::RoutingBreak::results_to_other_racks,
                                         endpoint::RoutingBreak::flush_to_another_rack),
                         [](const auto& build) { return name_of(build.param); });

}  // namespace
}  // namespace atp::sim
