// SPDX-License-Identifier: Apache-2.0
#include "tensor/slice.h"

#include <gtest/gtest.h>

namespace atp::tensor {
namespace {

constexpr std::uint64_t fragment = 352;

TEST(LengthOfSlice, ChannelsShareWholeFragments) {
    EXPECT_EQ(length_of_slice(100 * fragment, fragment, 4, 1), 25 * fragment);
    EXPECT_EQ(length_of_slice(101 * fragment - 5, fragment, 4, 1), 26 * fragment);
}

TEST(LengthOfSlice, FewFragmentsStayInOneChannel) {
    EXPECT_EQ(length_of_slice(1, fragment, 4, 1), fragment);
    EXPECT_EQ(length_of_slice(15 * fragment, fragment, 4, 1), 15 * fragment);
    EXPECT_EQ(length_of_slice(16 * fragment, fragment, 4, 1), 8 * fragment);
    EXPECT_EQ(length_of_slice(24 * fragment, fragment, 4, 1), 8 * fragment);
}

TEST(LengthOfSlice, IsAMultipleOfTheAlignment) { EXPECT_EQ(length_of_slice(100 * fragment, fragment, 4, 1000), 9000U); }

}  // namespace
}  // namespace atp::tensor
