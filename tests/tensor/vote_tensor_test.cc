// SPDX-License-Identifier: Apache-2.0
#include "tensor/vote_tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

constexpr std::uint32_t small = 1;
constexpr std::uint32_t large = 1U << 16U;
constexpr std::uint8_t proposed = 140;
constexpr std::uint32_t two_ranks = 2;

class VoteTensorTest : public ::testing::Test {
  protected:
    // Two full spans and one of 10 elements.
    static constexpr std::size_t span = span_elements(ATP_DTYPE_INT16);
    std::vector<float> values_ = std::vector<float>(2 * span + 10, 0.0F);
    std::shared_ptr<SpanScales> scales_ = std::make_shared<SpanScales>(values_.size(), ATP_DTYPE_INT16, nullptr,
                                                                       std::make_shared<protocol::SilentWaker>());
    std::shared_ptr<SpanVotes> own_ = std::make_shared<SpanVotes>(
        make_sum_tensor(numeric::ElementType::float32, values_.data(), values_.data(), values_.size(), 1, 1), scales_,
        SpanVotes::Rules{.ranks = two_ranks, .form = ATP_DTYPE_INT16, .span = span});
    VoteTensor votes_{own_};
    float least_ = std::bit_cast<float>(least_magnitude(proposed, two_ranks, ATP_DTYPE_INT16));

    std::vector<std::uint32_t> votes() {
        std::vector<std::byte> lanes(votes_.size() * ATP_LANE_BYTES);
        EXPECT_TRUE(votes_.load_integers(0, lanes));
        std::vector<std::uint32_t> found;
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
            found.push_back(wire::load_u32(lanes.data() + at));
        }
        return found;
    }
    void store(std::uint64_t span, std::uint32_t sum) {
        std::vector<std::byte> lane(ATP_LANE_BYTES);
        wire::store_u32(lane.data(), sum);
        votes_.store(span, lane);
    }
};

TEST_F(VoteTensorTest, LargestNumberOfEachSpanVotes) {
    scales_->begin(proposed);
    values_[span - 1] = least_;
    values_[span] = std::nextafter(-least_, 0.0F);
    values_.back() = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(votes(), (std::vector<std::uint32_t>{large, small, small}));
}

TEST_F(VoteTensorTest, SignsDoNotCountAndNaNIsLarge) {
    scales_->begin(proposed);
    values_.back() = std::numeric_limits<float>::quiet_NaN();
    values_[span + 1] = -least_;
    values_[0] = -0.0F;
    EXPECT_EQ(votes(), (std::vector<std::uint32_t>{0, large, large}));
}

TEST_F(VoteTensorTest, LeastMagnitudeIsOneThirdOfTheBitsBelowTheSum) {
    const auto integer = [](std::uint32_t ranks, std::uint8_t form) {
        return protocol::scale_from(proposed, 1) * std::bit_cast<float>(least_magnitude(proposed, ranks, form));
    };
    EXPECT_EQ(integer(1, ATP_DTYPE_INT32), 0x1p16);
    EXPECT_EQ(integer(4, ATP_DTYPE_INT32), 0x1p14);
    EXPECT_EQ(integer(1, ATP_DTYPE_INT16), 0x1p8);
    EXPECT_EQ(integer(5, ATP_DTYPE_INT16), 0x1p5);
    EXPECT_EQ(integer(1024, ATP_DTYPE_INT16), 1) << "at least one integer";
    EXPECT_EQ(integer(1, ATP_DTYPE_INT8), 0x1p3);
}

TEST_F(VoteTensorTest, H52_SpanIsExactIfSomeNumbersAreTooSmallAndNoneIsLargeEnough) {
    scales_->begin(proposed);
    EXPECT_FALSE(scales_->decided(0));
    store(0, 0);
    store(1, 2 * small);
    store(2, small + large);
    EXPECT_TRUE(scales_->decided(0));
    EXPECT_EQ(scales_->scale(0), proposed);
    EXPECT_EQ(scales_->scale(1), protocol::exact_scale);
    EXPECT_EQ(scales_->scale(2), proposed);
    EXPECT_EQ(scales_->proposal(1), proposed) << "the next scale follows from it";
}

TEST_F(VoteTensorTest, VotesWaitForTheProposal) {
    EXPECT_FALSE(votes_.ready(0, 1));
    scales_->begin(proposed);
    EXPECT_TRUE(votes_.ready(0, votes_.size()));
}

}  // namespace
}  // namespace atp::tensor
