// SPDX-License-Identifier: Apache-2.0
#include "comm/spin_policy.h"

#include <gtest/gtest.h>

namespace atp::comm {
namespace {

// How many of these waits look, if no look finds anything.
std::uint32_t looks_in(SpinPolicy& policy, std::uint32_t waits) {
    std::uint32_t looks = 0;
    for (std::uint32_t wait = 0; wait < waits; ++wait) {
        if (!policy.looks()) continue;
        ++looks;
        policy.note(false);
    }
    return looks;
}

TEST(SpinPolicy, RankThatFindsSomethingLooksEachTime) {
    SpinPolicy policy;
    for (std::uint32_t wait = 0; wait < 100; ++wait) {
        ASSERT_TRUE(policy.looks());
        policy.note(wait % SpinPolicy::most_misses == 0);
    }
}

TEST(SpinPolicy, AfterSomeMissesFewWaitsLook) {
    SpinPolicy policy;
    EXPECT_EQ(looks_in(policy, SpinPolicy::most_misses), SpinPolicy::most_misses);
    EXPECT_EQ(looks_in(policy, 10 * SpinPolicy::probing), 10U);
}

TEST(SpinPolicy, OneFindMakesTheNextWaitsLookAgain) {
    SpinPolicy policy;
    looks_in(policy, 100);
    policy.note(true);
    EXPECT_EQ(looks_in(policy, SpinPolicy::most_misses), SpinPolicy::most_misses);
}

}  // namespace
}  // namespace atp::comm
