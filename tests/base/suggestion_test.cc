// SPDX-License-Identifier: Apache-2.0
#include "base/suggestion.h"

#include <gtest/gtest.h>

#include <array>

namespace atp {
namespace {

const std::array<std::string, 6> names{"switch", "stats", "--json", "--job", "--interval", "-h"};

TEST(Suggestion, FewOtherLettersNameTheNearest) {
    EXPECT_EQ(nearest("swich", names), "switch");
    EXPECT_EQ(nearest("sitwch", names), "switch");
    EXPECT_EQ(nearest("stat", names), "stats");
    EXPECT_EQ(nearest("--jsn", names), "--json");
    EXPECT_EQ(nearest("-json", names), "--json");
}

TEST(Suggestion, BeginOfANameIsEnough) { EXPECT_EQ(nearest("--int", names), "--interval"); }

TEST(Suggestion, OtherWordsNameNothing) {
    for (const char* word : {"simulate", "--zzz", "x", "", "--"}) EXPECT_EQ(nearest(word, names), "") << word;
}

}  // namespace
}  // namespace atp
