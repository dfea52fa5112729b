// SPDX-License-Identifier: Apache-2.0
#include "base/counters.h"

#include <gtest/gtest.h>

namespace atp {
namespace {

struct Counters {
    std::uint64_t sent = 0;
    std::array<std::uint64_t, 2> by_reason{};
    std::uint64_t lost = 0;
};

constexpr std::array fields{
    counter<&Counters::lost>("lost"),
    counter<&Counters::by_reason, 1>("late"),
    counter<&Counters::sent>("sent"),
    counter<&Counters::by_reason, 0>("early"),
};
constexpr std::array incomplete{counter<&Counters::sent>("sent"), counter<&Counters::lost>("lost")};
constexpr std::array repeated{counter<&Counters::sent>("a"), counter<&Counters::sent>("b"),
                              counter<&Counters::lost>("c"), counter<&Counters::lost>("d")};

static_assert(names_all(fields));
static_assert(!names_all(incomplete));
static_assert(names_all(incomplete, 2));
static_assert(!names_all(repeated), "one name is repeated, so one counter has no name");

TEST(Counters, ReadsEachNameFromItsMember) {
    const Counters counters{.sent = 1, .by_reason = {2, 3}, .lost = 4};
    std::string text;
    for (const auto& field : fields) text += std::string(field.name) + std::to_string(field.value_of(counters)) + " ";
    EXPECT_EQ(text, "lost4 late3 sent1 early2 ");
}

TEST(Counters, AddsEachNamedCounterToTheSum) {
    Counters sum{.sent = 10, .by_reason = {20, 30}, .lost = 40};
    add_counters(fields, {.sent = 1, .by_reason = {2, 3}, .lost = 4}, sum);
    EXPECT_EQ(sum.sent, 11U);
    EXPECT_EQ(sum.by_reason, (std::array<std::uint64_t, 2>{22, 33}));
    EXPECT_EQ(sum.lost, 44U);
}

TEST(Counters, GrowthIsTheDifferenceOfTwoReadings) {
    const Counters before{.sent = 1, .by_reason = {2, 3}, .lost = 4};
    const Counters grown = growth(fields, {.sent = 11, .by_reason = {22, 33}, .lost = 4}, before);
    EXPECT_EQ(grown.sent, 10U);
    EXPECT_EQ(grown.by_reason, (std::array<std::uint64_t, 2>{20, 30}));
    EXPECT_EQ(grown.lost, 0U);
}

}  // namespace
}  // namespace atp
