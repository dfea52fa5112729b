// SPDX-License-Identifier: Apache-2.0
#include "tensor/exact_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "tensor/span_scales.h"
#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

TEST(ExactTensor, TravelsAsFloatsAtTheScaleThatHasNoIntegers) {
    std::array<float, 2> values{0.0F, 1.0F};
    ExactTensor tensor(make_sum_tensor(numeric::ElementType::float32, values.data(), values.data(), 2, 1, 1));
    EXPECT_TRUE(tensor.ready(0, 2));
    EXPECT_TRUE(tensor.floats_only());
    EXPECT_EQ(tensor.scale(1), protocol::exact_scale);
    std::array<std::byte, 2 * ATP_LANE_BYTES> lanes{};
    EXPECT_FALSE(tensor.load_integers(0, std::span(lanes).first(ATP_LANE_BYTES))) << "not even a zero";
    tensor.load_floats(0, lanes);
    EXPECT_EQ(wire::load_u32(lanes.data() + ATP_LANE_BYTES), magnitude_bits(1.0F));
    wire::store_u32(lanes.data(), magnitude_bits(3.0F));
    tensor.store(0, lanes);
    EXPECT_EQ(values, (std::array<float, 2>{3.0F, 1.0F}));
}

}  // namespace
}  // namespace atp::tensor
