// SPDX-License-Identifier: Apache-2.0
#include "control/joined_order.h"

#include <gtest/gtest.h>

namespace atp::control {
namespace {

wire::Joined joined(std::uint32_t epoch, std::uint32_t number) { return {.epoch = epoch, .number = number}; }

TEST(JoinedOrder, AnswerToALaterJoinIsNewerWhateverItsNumber) {
    JoinedOrder order;
    EXPECT_TRUE(order.advance(joined(1, 50)));
    EXPECT_TRUE(order.advance(joined(1, 51)));
    EXPECT_TRUE(order.advance(joined(2, 1))) << "the switch restarted";
    EXPECT_FALSE(order.advance(joined(1, 52)));
}

TEST(JoinedOrder, CopyOrEarlierNumberIsOld) {
    JoinedOrder order;
    EXPECT_TRUE(order.advance(joined(3, 7)));
    EXPECT_FALSE(order.advance(joined(3, 7)));
    EXPECT_FALSE(order.advance(joined(3, 6)));
    EXPECT_TRUE(order.advance(joined(3, 8)));
}

}  // namespace
}  // namespace atp::control
