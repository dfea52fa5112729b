// SPDX-License-Identifier: Apache-2.0
#include "tensor/common_scale_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

class CommonScaleTensorTest : public ::testing::Test {
  protected:
    static constexpr std::size_t elements = 2000;
    std::vector<float> values_ = std::vector<float>(elements, 0.75F);
    std::shared_ptr<SpanScales> scale_ =
        std::make_shared<SpanScales>(1, ATP_DTYPE_INT32, nullptr, std::make_shared<protocol::SilentWaker>());
    CommonScaleTensor tensor_{
        make_sum_tensor(numeric::ElementType::float32, values_.data(), values_.data(), elements, 1, 1), scale_};
    void begin_at(std::uint8_t scale) {
        scale_->begin(scale);
        scale_->decide(0, true);
    }

    std::vector<std::byte> lanes_ = std::vector<std::byte>(elements * ATP_LANE_BYTES);
};

TEST_F(CommonScaleTensorTest, WaitsForItsScale) {
    EXPECT_FALSE(tensor_.ready(0, elements));
    scale_->begin(protocol::scale_byte(10));
    EXPECT_FALSE(tensor_.ready(0, elements)) << "only a proposal";
    scale_->decide(0, true);
    EXPECT_TRUE(tensor_.ready(0, elements));
    EXPECT_EQ(tensor_.scale(elements - 1), protocol::scale_byte(10));
    EXPECT_FALSE(tensor_.floats_only());
}

TEST_F(CommonScaleTensorTest, ElementsAreIntegersAtTheScale) {
    begin_at(protocol::scale_byte(10));
    values_.back() = -3.0F;
    ASSERT_TRUE(tensor_.load_integers(0, lanes_));
    EXPECT_EQ(wire::load_u32(lanes_.data()), 768U);
    EXPECT_EQ(static_cast<std::int32_t>(wire::load_u32(lanes_.data() + (elements - 1) * ATP_LANE_BYTES)), -3072);
    values_.back() = INFINITY;
    EXPECT_FALSE(tensor_.load_integers(0, lanes_));
}

TEST_F(CommonScaleTensorTest, ExactScaleHasNoIntegers) {
    begin_at(protocol::exact_scale);
    values_.assign(elements, 0.0F);
    EXPECT_FALSE(tensor_.load_integers(0, lanes_));
    EXPECT_TRUE(tensor_.floats_only());
}

}  // namespace
}  // namespace atp::tensor
