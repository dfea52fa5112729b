// SPDX-License-Identifier: Apache-2.0
#include "plan/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace atp::plan {
namespace {

// Resources whose loads are the same at all rates.
Resources constant(std::vector<Resource> resources) {
    return [resources = std::move(resources)](std::span<const double>) { return resources; };
}

std::vector<Share> share(std::vector<Resource> resources, std::vector<double> weights,
                         std::vector<bool> active = {true, true, true}) {
    active.resize(weights.size());
    return share_fairly(constant(std::move(resources)), weights, active);
}

TEST(MaxMin, SingleFlowHasTheRateOfItsNarrowestResource) {
    const auto shares = share({{.capacity = 10, .loads = {1}}, {.capacity = 12, .loads = {3}}}, {1});
    EXPECT_DOUBLE_EQ(shares[0].rate, 4);
    EXPECT_EQ(shares[0].limit, 1U);
}

TEST(MaxMin, TwoFlowsShareAResourceEqually) {
    const auto shares = share({{.capacity = 10, .loads = {1, 1}}}, {1, 1});
    EXPECT_DOUBLE_EQ(shares[0].rate, 5);
    EXPECT_DOUBLE_EQ(shares[1].rate, 5);
}

TEST(MaxMin, UnusedShareGoesToTheOtherFlows) {
    const auto shares = share({{.capacity = 12, .loads = {1, 1, 1}}, {.capacity = 2, .loads = {1, 0, 0}}}, {1, 1, 1});
    EXPECT_DOUBLE_EQ(shares[0].rate, 2);
    EXPECT_EQ(shares[0].limit, 1U);
    EXPECT_DOUBLE_EQ(shares[1].rate, 5);
    EXPECT_DOUBLE_EQ(shares[2].rate, 5);
    EXPECT_EQ(shares[2].limit, 0U);
}

TEST(MaxMin, RatesAreProportionalToWeights) {
    const auto shares = share({{.capacity = 12, .loads = {1, 1}}}, {1, 2});
    EXPECT_DOUBLE_EQ(shares[0].rate, 4);
    EXPECT_DOUBLE_EQ(shares[1].rate, 8);
}

TEST(MaxMin, FlowOfFourCopiesCountsFourTimes) {
    const auto shares = share({{.capacity = 10, .loads = {4, 1}}}, {1, 1});
    EXPECT_DOUBLE_EQ(shares[0].rate, 2);
    EXPECT_DOUBLE_EQ(shares[1].rate, 2);
}

TEST(MaxMin, InactiveFlowHasRateZero) {
    const auto shares = share({{.capacity = 10, .loads = {1, 1}}}, {1, 1}, {false, true});
    EXPECT_DOUBLE_EQ(shares[0].rate, 0);
    EXPECT_DOUBLE_EQ(shares[1].rate, 10);
}

// The first unit of the rate is carried once, the rest four times: 1 + 4 (r - 1) = 9.
TEST(MaxMin, LoadThatGrowsWithTheRateIsMetExactly) {
    const Resources resources = [](std::span<const double> rates) {
        const double rate = rates[0];
        return std::vector<Resource>{{.capacity = 9, .loads = {rate <= 1 ? 1 : (1 + 4 * (rate - 1)) / rate}}};
    };
    const auto shares = share_fairly(resources, std::vector<double>{1}, {true});
    EXPECT_NEAR(shares[0].rate, 3, 1e-6);
}

}  // namespace
}  // namespace atp::plan
