// SPDX-License-Identifier: Apache-2.0
#include "protocol/home_sum.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "protocol/channel.h"
#include "support/narrow_tensor.h"
#include "support/packets.h"

namespace atp::protocol {
namespace {

TEST(HomeSum, AddsIn64BitsAndConvertsAsAServerDoes) {
    std::array<float, 2> numbers{2e9F, 3};
    FloatTensor tensor(numbers, numbers, 1);
    HomeSum sum(2);
    EXPECT_TRUE(sum.has_integers(tensor, {.first = 0, .count = 2}));
    atp_header header = ChannelConfig{.token = 1}.header_of(ATP_TYPE_ACK, 0);
    header.lanes = ATP_INT32_LANES;
    testing::Bytes bytes = testing::make_packet(header, {2'000'000'000, -5});
    wire::Packet ack;
    ASSERT_EQ(wire::decode(bytes, ack), wire::DecodeError::none);
    sum.store(tensor, {.first = 0, .count = 2}, ack, 0.5);
    EXPECT_EQ(numbers[0], 2e9F);
    EXPECT_EQ(numbers[1], -1);
}

TEST(HomeSum, SumsOfOthersMayBeWiderThanTheOwnIntegers) {
    testing::NarrowTensor tensor(ATP_DTYPE_INT16, {7, -8, 9});
    HomeSum sum(3);
    EXPECT_TRUE(sum.has_integers(tensor, {.first = 1, .count = 2}));
    atp_header header = ChannelConfig{.token = 1}.header_of(ATP_TYPE_ACK, 0);
    header.lanes = ATP_INT32_LANES;
    testing::Bytes bytes = testing::make_packet(header, {100'000, -5});
    wire::Packet ack;
    ASSERT_EQ(wire::decode(bytes, ack), wire::DecodeError::none);
    sum.store(tensor, {.first = 1, .count = 2}, ack, 0.5);
    EXPECT_EQ(tensor.sums(), (std::vector<float>{0, 49'996, 2}));
}

TEST(HomeSum, ANumberMayHaveNoInteger) {
    std::array<float, 1> numbers{3e9F};
    const FloatTensor tensor(numbers, numbers, 1);
    EXPECT_FALSE(HomeSum(1).has_integers(tensor, {.first = 0, .count = 1}));
}

}  // namespace
}  // namespace atp::protocol
