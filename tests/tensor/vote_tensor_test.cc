// SPDX-License-Identifier: Apache-2.0
#include "tensor/vote_tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

constexpr std::uint8_t proposed = 140;
constexpr std::uint32_t two_ranks = 2;

class VoteTensorTest : public ::testing::Test {
  protected:
    // Two full spans and one of 10 elements.
    static constexpr std::size_t span = span_elements(ATP_DTYPE_INT16);
    std::vector<float> values_ = std::vector<float>(2 * span + 10, 0.0F);
    std::shared_ptr<SpanScales> scales_ = std::make_shared<SpanScales>(values_.size(), ATP_DTYPE_INT16, nullptr,
                                                                       std::make_shared<protocol::SilentWaker>());
    VoteTensor votes_{std::make_shared<SpanVotes>(
        make_sum_tensor(numeric::ElementType::float32, values_.data(), values_.data(), values_.size(), 1, 1), scales_,
        SpanVotes::Rules{.ranks = two_ranks, .span = span})};
    std::vector<std::byte> lanes_ = std::vector<std::byte>(2 * ATP_LANE_BYTES);
};

TEST_F(VoteTensorTest, LanesAreTheVotesOfTheirSpans) {
    scales_->begin(proposed);
    values_[span] = 1e-30F;
    values_.back() = 1;
    EXPECT_EQ(votes_.size(), 3U);
    ASSERT_TRUE(votes_.load_integers(1, lanes_));
    EXPECT_EQ(wire::load_u32(lanes_.data()), SpanVotes::too_small);
    EXPECT_EQ(wire::load_u32(lanes_.data() + ATP_LANE_BYTES), SpanVotes::large_enough);
}

TEST_F(VoteTensorTest, SumsDecideTheirSpans) {
    scales_->begin(proposed);
    wire::store_u32(lanes_.data(), SpanVotes::too_small);
    wire::store_u32(lanes_.data() + ATP_LANE_BYTES, SpanVotes::large_enough);
    votes_.store(1, lanes_);
    EXPECT_FALSE(scales_->decided(0));
    EXPECT_EQ(scales_->scale(1), protocol::exact_scale);
    EXPECT_EQ(scales_->scale(2), proposed);
}

TEST_F(VoteTensorTest, VotesWaitForTheProposal) {
    EXPECT_FALSE(votes_.ready(0, 1));
    scales_->begin(proposed);
    EXPECT_TRUE(votes_.ready(0, votes_.size()));
}

}  // namespace
}  // namespace atp::tensor
