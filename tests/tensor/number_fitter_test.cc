// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_fitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

using numeric::ElementType;

class NumberFitterTest : public ::testing::Test {
  protected:
    NumberFitter::Fitted fit(NumberFitter& fitter, ElementType type, std::uint32_t detail) {
        return fitter.fit(make_sum_tensor(type, values_.data(), values_.data(), values_.size() / 2, 1, 1), type,
                          {.detail = detail, .elements = values_.size() / 2});
    }
    static NumberFitter fitter_of(Scaling scaling, LaneType lane_type) {
        return NumberFitter({.form = {.scaling = scaling, .lane_type = lane_type},
                             .ranks = 2,
                             .feed = std::make_shared<protocol::SilentWaker>(),
                             .exact = 0});
    }

    std::vector<float> values_ = std::vector<float>(8, 1.0F);
};

TEST_F(NumberFitterTest, OnlyAFirstOperationOfAKindNeedsExponentsBesidesVotes) {
    NumberFitter fitter = fitter_of(Scaling::dynamic, LaneType::int32);
    const auto first = fit(fitter, ElementType::float32, 1);
    EXPECT_EQ(first.before.size(), 2U);
    EXPECT_FALSE(first.tensor->ready(0, 1));
    EXPECT_EQ(first.scales->count(), 1U);
    EXPECT_EQ(fit(fitter, ElementType::float32, 1).before.size(), 1U);
    EXPECT_EQ(fit(fitter, ElementType::float32, 2).before.size(), 2U);
}

TEST_F(NumberFitterTest, RanksThatShareMemoryVoteThere) {
    NumberFitter fitter = fitter_of(Scaling::dynamic, LaneType::int32);
    const auto fitted = fitter.fit(make_sum_tensor(ElementType::float32, values_.data(), values_.data(), 4, 1, 1),
                                   ElementType::float32, {.elements = 4}, true);
    ASSERT_EQ(fitted.before.size(), 1U) << "only the exponents";
    std::vector<std::byte> sums(fitted.before[0]->size() * ATP_LANE_BYTES, std::byte{1});
    EXPECT_FALSE(fitted.tensor->ready(0, 4));
    fitted.before[0]->store(0, sums);
    EXPECT_TRUE(fitted.tensor->ready(0, 4)) << "the rank that adds the numbers decides";
    EXPECT_EQ(fitted.tensor->vote(0), SpanVotes::too_small);
    fitted.tensor->decide(0, 2 * SpanVotes::too_small);
    EXPECT_EQ(fitted.tensor->scale(0), protocol::exact_scale);
}

TEST_F(NumberFitterTest, SmallTensorsAreExactAndNeedNothing) {
    NumberFitter fitter({.form = {.scaling = Scaling::dynamic, .lane_type = LaneType::int16},
                         .ranks = 2,
                         .feed = std::make_shared<protocol::SilentWaker>()});
    for (const std::size_t elements : {std::size_t{1}, std::size_t{exact_elements}}) {
        std::vector<float> values(elements, 0.0F);
        const auto fitted =
            fitter.fit(make_sum_tensor(ElementType::float32, values.data(), values.data(), elements, 1, 1),
                       ElementType::float32, {.elements = elements});
        EXPECT_TRUE(fitted.before.empty());
        EXPECT_TRUE(fitted.tensor->ready(0, elements));
        EXPECT_EQ(fitted.tensor->scale(0), protocol::exact_scale);
        EXPECT_EQ(fitted.scales->scale(0), protocol::exact_scale);
        EXPECT_EQ(fitted.tensor->form(), ATP_DTYPE_INT32) << "floats need one packet then";
        std::vector<std::byte> lanes(elements * ATP_LANE_BYTES);
        EXPECT_FALSE(fitted.tensor->load_integers(0, lanes)) << "even zeros are sent as floats";
    }
    std::vector<float> more(exact_elements + 1, 1.0F);
    EXPECT_FALSE(fitter
                     .fit(make_sum_tensor(ElementType::float32, more.data(), more.data(), more.size(), 1, 1),
                          ElementType::float32, {.elements = more.size()})
                     .before.empty());
}

// Reduce-scatters of two ranks that have equal numbers, as rank 0 has them: of each block it owns the first one.
class DealtFitTest : public NumberFitterTest {
  protected:
    static constexpr std::size_t each = 5;

    NumberFitter::Fitted fit_dealt(NumberFitter& fitter, ElementType type = ElementType::float32) {
        std::vector<DealtTensor::Block> blocks;
        for (std::uint16_t owner = 0; owner < 2; ++owner) {
            float* const block = numbers_.data() + owner * each;
            blocks.push_back({make_sum_tensor(type, block, owner == 0 ? sums_.data() : nullptr, each, 1, 1), owner});
        }
        return fitter.fit_dealt(std::move(blocks), {.rank = 0, .longest = 100}, type,
                                {.detail = 7, .elements = 2 * each});
    }
    // Sums a plain tensor of both ranks.
    static void sum(protocol::Tensor& tensor) {
        std::vector<std::byte> lanes(tensor.size() * ATP_LANE_BYTES);
        ASSERT_TRUE(tensor.ready(0, tensor.size()));
        ASSERT_TRUE(tensor.load_integers(0, lanes));
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
            wire::store_u32(lanes.data() + at, 2 * wire::load_u32(lanes.data() + at));
        }
        tensor.store(0, lanes);
    }
    // Gives rank 0 its sums, all of which are `own`. The largest sum of rank 1 has the exponent `other`.
    static void finish(const NumberFitter::Fitted& fitted, float own, std::uint32_t other) {
        std::vector<std::byte> lanes(each * ATP_LANE_BYTES);
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
            wire::store_u32(lanes.data() + at, magnitude_bits(own));
        }
        fitted.tensor->store(0, lanes);
        std::vector<std::byte> lane(ATP_LANE_BYTES);
        wire::store_u32(lane.data(), other << 24U);
        fitted.after->store(1, lane);
    }

    std::vector<float> numbers_ = std::vector<float>(2 * each, 1.0F);
    std::vector<float> sums_ = std::vector<float>(each);
    NumberFitter fitter_ = fitter_of(Scaling::dynamic, LaneType::int32);
};

TEST_F(DealtFitTest, FirstOperationAsksForExponentsAndAllVoteOnEachBlock) {
    const auto first = fit_dealt(fitter_);
    ASSERT_EQ(first.before.size(), 2U);
    EXPECT_FALSE(first.tensor->ready(0, each));
    sum(*first.before[0]);
    EXPECT_TRUE(first.tensor->ready(0, 2 * each)) << "this rank knows the decision";
    EXPECT_EQ(first.before[1]->size(), 2U) << "a vote on each block";
    EXPECT_EQ(first.tensor->scale(0), protocol::scale_byte(23)) << "two numbers of 1: below 2^25, at least 2^24";
    EXPECT_EQ(first.tensor->delivery(each).owner, 1U);
    EXPECT_EQ(fit_dealt(fitter_).before.size(), 1U);
}

TEST_F(DealtFitTest, H51_FirstScaleOfEachBlockSuitsItsOwnNumbers) {
    std::fill_n(numbers_.begin(), each, 0x1p-20F);
    const auto first = fit_dealt(fitter_);
    sum(*first.before[0]);
    EXPECT_TRUE(first.tensor->ready(0, 2 * each));
    EXPECT_EQ(first.tensor->scale(0), protocol::scale_byte(23 + 20));
    EXPECT_EQ(first.tensor->scale(each), protocol::scale_byte(23));
}

TEST_F(DealtFitTest, H51_BlockOfZerosHasTheFirstScaleOfTheLargestNumbers) {
    std::fill_n(numbers_.begin(), each, 0.0F);
    const auto first = fit_dealt(fitter_);
    sum(*first.before[0]);
    sum(*first.before[1]);
    EXPECT_EQ(first.tensor->scale(0), protocol::scale_byte(23));
}

TEST_F(DealtFitTest, OwnersTellHowLargeTheirSumsAre) {
    const auto first = fit_dealt(fitter_);
    sum(*first.before[0]);
    ASSERT_EQ(first.after->size(), 2U);
    EXPECT_TRUE(first.after->delivery(0).one_sender);
    EXPECT_FALSE(first.after->ready(0, 1)) << "the sums of this rank are missing";
    EXPECT_TRUE(first.after->ready(1, 1)) << "others send them";
    const auto second = fit_dealt(fitter_);
    EXPECT_FALSE(second.tensor->ready(0, 1));
    finish(first, 3.0F, 127 + 5);
    std::vector<std::byte> lane(ATP_LANE_BYTES);
    EXPECT_TRUE(first.after->ready(0, 1));
    EXPECT_TRUE(first.after->load_integers(0, lane));
    EXPECT_EQ(wire::load_u32(lane.data()), 128U << 24U);
    numbers_.assign(numbers_.size(), 1.5F);
    EXPECT_TRUE(second.tensor->ready(0, 2 * each));
    EXPECT_EQ(second.tensor->scale(0), protocol::scale_byte(24 - 1));
    EXPECT_EQ(second.tensor->scale(each), protocol::scale_byte(24 - 5)) << "each block has a scale of its own";
}

TEST_F(DealtFitTest, NumbersThatFallAreSummedExactlyInTheirSpanAlone) {
    const auto first = fit_dealt(fitter_);
    sum(*first.before[0]);
    finish(first, 2.0F, 128);
    std::fill_n(numbers_.begin(), each, 1e-9F);
    const auto second = fit_dealt(fitter_);
    EXPECT_FALSE(second.tensor->ready(0, each)) << "the other rank may have large numbers";
    EXPECT_TRUE(second.tensor->ready(each, each));
    sum(*second.before[0]);
    EXPECT_TRUE(second.tensor->ready(0, each));
    EXPECT_EQ(second.tensor->scale(0), protocol::exact_scale);
    EXPECT_EQ(second.tensor->scale(each), protocol::scale_byte(23));
}

TEST_F(DealtFitTest, HalvesTravelAsInt16AndTheOthersAsTheLaneTypeSays) {
    NumberFitter automatic = fitter_of(Scaling::dynamic, LaneType::automatic);
    EXPECT_EQ(fit_dealt(automatic, ElementType::bfloat16).tensor->form(), ATP_DTYPE_INT16);
    EXPECT_EQ(fit_dealt(automatic).tensor->form(), ATP_DTYPE_INT32);
    NumberFitter bytes = fitter_of(Scaling::fixed, LaneType::int8);
    const auto fitted = fit_dealt(bytes);
    EXPECT_EQ(fitted.tensor->form(), ATP_DTYPE_INT8);
    EXPECT_TRUE(fitted.before.empty());
    EXPECT_EQ(fitted.after, nullptr);
    EXPECT_EQ(fitted.tensor->scale(0), protocol::scale_of_job);
}

TEST_F(DealtFitTest, SmallTensorsAreExactAndNeedNothing) {
    NumberFitter fitter({.form = {.scaling = Scaling::dynamic, .lane_type = LaneType::int16},
                         .ranks = 2,
                         .feed = std::make_shared<protocol::SilentWaker>()});
    const auto fitted = fit_dealt(fitter);
    EXPECT_EQ(fitter.form_of(ElementType::float32, 2 * each), ATP_DTYPE_INT32);
    EXPECT_EQ(fitter.form_of(ElementType::float32, exact_elements + 1), ATP_DTYPE_INT16);
    EXPECT_TRUE(fitted.before.empty());
    EXPECT_EQ(fitted.after, nullptr);
    EXPECT_TRUE(fitted.tensor->ready(0, each));
    EXPECT_TRUE(fitted.tensor->floats_only());
    EXPECT_EQ(fitted.tensor->delivery(each).owner, 1U);
}

TEST_F(NumberFitterTest, FixedScaleNeedsNothing) {
    NumberFitter fitter = fitter_of(Scaling::fixed, LaneType::int16);
    const auto fitted = fit(fitter, ElementType::float32, 1);
    EXPECT_TRUE(fitted.before.empty());
    EXPECT_TRUE(fitted.tensor->ready(0, 1));
    EXPECT_EQ(fitted.tensor->scale(0), protocol::scale_of_job);
    EXPECT_EQ(fitted.scales, nullptr);
    EXPECT_EQ(fitted.tensor->form(), ATP_DTYPE_INT16);
}

TEST_F(NumberFitterTest, AutomaticFormIsNarrowForHalvesWithADynamicScale) {
    NumberFitter dynamic = fitter_of(Scaling::dynamic, LaneType::automatic);
    NumberFitter fixed = fitter_of(Scaling::fixed, LaneType::automatic);
    EXPECT_EQ(fit(dynamic, ElementType::bfloat16, 1).tensor->form(), ATP_DTYPE_INT16);
    EXPECT_EQ(fit(fixed, ElementType::bfloat16, 1).tensor->form(), ATP_DTYPE_INT32);
    EXPECT_EQ(fit(dynamic, ElementType::float32, 2).tensor->form(), ATP_DTYPE_INT32);
    EXPECT_EQ(fit(dynamic, ElementType::float16, 3).tensor->form(), ATP_DTYPE_INT16);
    EXPECT_EQ(fit(fixed, ElementType::float16, 3).tensor->form(), ATP_DTYPE_INT32);
}

}  // namespace
}  // namespace atp::tensor
