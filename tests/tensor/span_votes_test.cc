// SPDX-License-Identifier: Apache-2.0
#include "tensor/span_votes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "tensor/tensors.h"

namespace atp::tensor {
namespace {

constexpr std::uint8_t proposal = 140;
constexpr std::uint32_t ranks = 2;

class SpanVotesTest : public ::testing::Test {
  protected:
    static constexpr std::size_t span = span_elements(ATP_DTYPE_INT16);
    // Two full spans and one of 10 elements.
    std::vector<float> values_ = std::vector<float>(2 * span + 10, 0.0F);
    std::shared_ptr<SpanScales> scales_ = std::make_shared<SpanScales>(values_.size(), ATP_DTYPE_INT16, nullptr,
                                                                       std::make_shared<protocol::SilentWaker>());
    SpanVotes votes_{
        make_sum_tensor(numeric::ElementType::float32, values_.data(), values_.data(), values_.size(), 1, 1),
        scales_,
        {.ranks = ranks, .span = span}};
    float least_ = std::bit_cast<float>(least_magnitude(proposal, ranks, bits_of_sum(ATP_DTYPE_INT16)));

    std::vector<std::uint32_t> own() { return {votes_.own(0), votes_.own(1), votes_.own(2)}; }
};

// Sums may replace the numbers before the vote is sent again.
TEST_F(SpanVotesTest, H56_VoteIsReadOnce) {
    scales_->begin(proposal);
    values_[0] = least_;
    EXPECT_TRUE(votes_.accepts(0));
    EXPECT_FALSE(votes_.accepts(1));
    std::ranges::fill(values_, std::numeric_limits<float>::denorm_min());
    EXPECT_EQ(votes_.own(0), SpanVotes::large_enough);
    EXPECT_EQ(votes_.own(1), 0U);
    EXPECT_EQ(votes_.own(2), SpanVotes::too_small) << "not read before";
    std::ranges::fill(values_, least_);
    EXPECT_EQ(votes_.own(1), 0U);
    EXPECT_EQ(votes_.own(2), SpanVotes::too_small);
}

TEST_F(SpanVotesTest, RankWithLargeNumbersWaitsForNoVotes) {
    EXPECT_FALSE(votes_.accepts(0)) << "no proposal";
    scales_->begin(proposal);
    values_[span] = std::nextafter(least_, 0.0F);
    values_.back() = least_;
    for (const std::uint64_t number : {0U, 1U, 2U}) EXPECT_EQ(votes_.accepts(number), number == 2) << number;
    EXPECT_TRUE(scales_->decided(2));
    EXPECT_EQ(scales_->scale(2), proposal);
    EXPECT_FALSE(scales_->decided(1));
}

TEST_F(SpanVotesTest, LargestNumberOfEachSpanVotes) {
    scales_->begin(proposal);
    values_[span - 1] = least_;
    values_[span] = std::nextafter(-least_, 0.0F);
    values_.back() = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(own(), (std::vector<std::uint32_t>{SpanVotes::large_enough, SpanVotes::too_small, SpanVotes::too_small}));
}

TEST_F(SpanVotesTest, SignsDoNotCount) {
    scales_->begin(proposal);
    values_[span + 1] = -least_;
    values_[0] = -0.0F;
    EXPECT_EQ(votes_.own(0), 0U);
    EXPECT_EQ(votes_.own(1), SpanVotes::large_enough);
}

TEST_F(SpanVotesTest, H52_OnlyFiniteNumbersVote) {
    scales_->begin(proposal);
    values_[0] = -std::numeric_limits<float>::infinity();
    values_[span] = std::numeric_limits<float>::infinity();
    values_[span + 1] = std::nextafter(least_, 0.0F);
    values_[2 * span] = std::numeric_limits<float>::quiet_NaN();
    values_.back() = least_;
    EXPECT_EQ(own(), (std::vector<std::uint32_t>{0, SpanVotes::too_small, SpanVotes::large_enough}));
}

TEST_F(SpanVotesTest, H52_SpanIsExactIfSomeNumbersAreTooSmallAndNoneIsLargeEnough) {
    scales_->begin(proposal);
    votes_.decide(0, 0);
    votes_.decide(1, ranks * SpanVotes::too_small);
    votes_.decide(2, SpanVotes::too_small + SpanVotes::large_enough);
    EXPECT_EQ(scales_->scale(0), proposal);
    EXPECT_EQ(scales_->scale(1), protocol::exact_scale);
    EXPECT_EQ(scales_->scale(2), proposal);
    EXPECT_EQ(scales_->proposal(1), proposal) << "the next scale follows from it";
}

}  // namespace
}  // namespace atp::tensor
