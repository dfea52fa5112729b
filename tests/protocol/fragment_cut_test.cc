// SPDX-License-Identifier: Apache-2.0
#include "protocol/fragment_cut.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace atp::protocol {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Ranges ranges_of(const FragmentCut& cut) {
    Ranges ranges;
    for (std::uint32_t number = 0; number < cut.fragments(); ++number) {
        const auto [first, count] = cut.range(number);
        ranges.emplace_back(first, count);
    }
    return ranges;
}

TEST(FragmentCutTest, OnlyTheLastFragmentOfATensorIsShorter) {
    EXPECT_EQ(ranges_of({10, 4, {}}), (Ranges{{0, 4}, {4, 4}, {8, 2}}));
    EXPECT_EQ(ranges_of({8, 4, {}}), (Ranges{{0, 4}, {4, 4}}));
    EXPECT_EQ(ranges_of({0, 4, {}}), Ranges{});
}

TEST(FragmentCutTest, NoFragmentCrossesASpan) {
    EXPECT_EQ(ranges_of({15, 4, {.length = 6}}), (Ranges{{0, 4}, {4, 2}, {6, 4}, {10, 2}, {12, 3}}));
    EXPECT_EQ(ranges_of({12, 4, {.length = 6}}), (Ranges{{0, 4}, {4, 2}, {6, 4}, {10, 2}}));
}

TEST(FragmentCutTest, TensorMayBeginInsideASpan) {
    EXPECT_EQ(ranges_of({12, 4, {.length = 6, .offset = 1}}), (Ranges{{0, 4}, {4, 1}, {5, 4}, {9, 2}, {11, 1}}));
    EXPECT_EQ(ranges_of({2, 4, {.length = 6, .offset = 3}}), (Ranges{{0, 2}}));
    EXPECT_EQ(ranges_of({3, 4, {.length = 6, .offset = 3}}), (Ranges{{0, 3}}));
}

TEST(FragmentCutTest, FragmentsCoverEveryElementOnceWithinOneSpan) {
    for (std::uint64_t elements = 1; elements < 40; ++elements) {
        for (std::uint64_t length = 1; length < 12; ++length) {
            for (std::uint64_t offset = 0; offset < length; ++offset) {
                for (std::uint32_t longest = 1; longest < 8; ++longest) {
                    std::uint64_t next = 0;
                    for (const auto& [first, count] : ranges_of({elements, longest, {length, offset}})) {
                        ASSERT_EQ(first, next);
                        ASSERT_GT(count, 0U);
                        ASSERT_LE(count, longest);
                        ASSERT_EQ((offset + first) / length, (offset + first + count - 1) / length);
                        next = first + count;
                    }
                    ASSERT_EQ(next, elements);
                }
            }
        }
    }
}

}  // namespace
}  // namespace atp::protocol
