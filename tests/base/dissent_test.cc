// SPDX-License-Identifier: Apache-2.0
// Which rank is named when values differ.
#include "base/dissent.h"

#include <gtest/gtest.h>

#include <vector>

namespace atp {
namespace {

using Values = std::vector<std::string>;

TEST(Dissent, EqualValuesAndNoValuesHaveNone) {
    EXPECT_FALSE(dissent_of(Values{}));
    EXPECT_FALSE(dissent_of(Values{"a"}));
    EXPECT_FALSE(dissent_of(Values{"a", "a", "a"}));
}

TEST(Dissent, RankThatDiffersFromMostIsNamedWithBothValues) {
    for (std::uint32_t odd = 0; odd < 4; ++odd) {
        Values values(4, "a");
        values[odd] = "b";
        const auto dissent = dissent_of(values);
        ASSERT_TRUE(dissent);
        EXPECT_EQ(dissent->rank, odd);
        EXPECT_EQ(dissent->own, "b");
        EXPECT_EQ(dissent->others, "a");
    }
}

TEST(Dissent, OfEquallyManyTheValueOfTheLowestRankIsUsual) {
    const auto dissent = dissent_of(Values{"a", "b"});
    ASSERT_TRUE(dissent);
    EXPECT_EQ(dissent->rank, 1U);
    EXPECT_EQ(dissent->others, "a");
    EXPECT_EQ(dissent_of(Values{"a", "b", "b", "a"})->rank, 1U);
}

TEST(Dissent, OnlyTheWordsThatDifferAreListed) {
    EXPECT_EQ(words_only_in("scale=1 channels=3 audit=false", "scale=2 channels=3 audit=true"), "scale=1 audit=false");
    EXPECT_EQ(words_only_in("a b", "a b"), "");
    EXPECT_EQ(words_only_in("  a ", ""), "a");
}

}  // namespace
}  // namespace atp
