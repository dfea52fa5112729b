// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace atp {
namespace {

TEST(Listing, LongListNamesEightNumbersAndCountsTheRest) {
    const auto listed = [](int count) {
        std::vector<std::string> names;
        for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
        return list_some(names);
    };
    EXPECT_EQ(listed(0), "nothing");
    EXPECT_EQ(listed(1), "0");
    EXPECT_EQ(listed(2), "0 and 1");
    EXPECT_EQ(listed(3), "0, 1 and 2");
    EXPECT_EQ(listed(8), "0, 1, 2, 3, 4, 5, 6 and 7");
    EXPECT_EQ(listed(20), "0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
}

TEST(Listing, NounOfOneThingIsSingular) {
    EXPECT_EQ(counted(0, "worker"), "0 workers");
    EXPECT_EQ(counted(1, "worker"), "1 worker");
    EXPECT_EQ(counted(2, "worker"), "2 workers");
}

}  // namespace
}  // namespace atp
