// SPDX-License-Identifier: Apache-2.0
// A simulator must be able to fail: with one injected fault in the state machines, a few hundred seeds must detect it.
// The model checker detects every fault; these are the ones that random network faults trigger often.
#include <gtest/gtest.h>

#include "protocol/breaks.h"
#include "sim/simulation.h"
#include "sim/swarm.h"

namespace atp::sim {
namespace {

struct Mistake {
    const char* name;
    atp_break value;
};

class InjectedFault : public testing::TestWithParam<Mistake> {
  protected:
    void SetUp() override { atp_active_break = GetParam().value; }
    void TearDown() override { atp_active_break = ATP_BREAK_none; }
};

TEST_P(InjectedFault, FailsASeedOfTheSwarm) {
    constexpr std::uint64_t seeds = 400;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        if (!run(draw_scenario(seed)).passed()) return;
    }
    FAIL() << seeds << " seeds passed with the mistake " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(EachAlone, InjectedFault,
                         testing::Values(Mistake{"resend_claims", ATP_BREAK_resend_claims},
                                         Mistake{"ignore_bitmap", ATP_BREAK_ignore_bitmap},
                                         Mistake{"complete_early", ATP_BREAK_complete_early},
                                         Mistake{"ignore_token", ATP_BREAK_ignore_token},
                                         Mistake{"ignore_sequence", ATP_BREAK_ignore_sequence},
                                         Mistake{"collision_not_bypass", ATP_BREAK_collision_not_bypass},
                                         Mistake{"resend_keeps_aggregator", ATP_BREAK_resend_keeps_aggregator},
                                         Mistake{"resend_drops_own", ATP_BREAK_resend_drops_own},
                                         Mistake{"overflow_not_sticky", ATP_BREAK_overflow_not_sticky},
                                         Mistake{"merge_overlapping", ATP_BREAK_merge_overlapping},
                                         Mistake{"trust_overflowed_lanes", ATP_BREAK_trust_overflowed_lanes},
                                         Mistake{"no_reack", ATP_BREAK_no_reack},
                                         Mistake{"retain_too_short", ATP_BREAK_retain_too_short},
                                         Mistake{"mix_modes", ATP_BREAK_mix_modes},
                                         Mistake{"no_nack", ATP_BREAK_no_nack}, Mistake{"no_probe", ATP_BREAK_no_probe},
                                         Mistake{"window_unbounded", ATP_BREAK_window_unbounded},
                                         Mistake{"accept_any_ack", ATP_BREAK_accept_any_ack}),
                         [](const auto& mistake) { return mistake.param.name; });

}  // namespace
}  // namespace atp::sim
