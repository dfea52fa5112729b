// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_fitter.h"

#include <gtest/gtest.h>

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
        EXPECT_FALSE(fitted.tensor->load_integers(0, lanes)) << "even zeros travel as floats";
    }
    std::vector<float> more(exact_elements + 1, 1.0F);
    EXPECT_FALSE(fitter
                     .fit(make_sum_tensor(ElementType::float32, more.data(), more.data(), more.size(), 1, 1),
                          ElementType::float32, {.elements = more.size()})
                     .before.empty());
}

// Operations with owners, of two ranks that have equal numbers.
class OwnedFitTest : public NumberFitterTest {
  protected:
    NumberFitter::Fitted fit_owned() {
        return fitter_.fit_owned(
            make_sum_tensor(ElementType::float32, values_.data(), values_.data(), values_.size(), 1, 1),
            {.detail = 7, .elements = values_.size()});
    }
    // Sums `tensor` of both ranks.
    static void sum(protocol::Tensor& tensor) {
        std::vector<std::byte> lanes(tensor.size() * ATP_LANE_BYTES);
        ASSERT_TRUE(tensor.ready(0, tensor.size()));
        ASSERT_TRUE(tensor.load_integers(0, lanes));
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
            wire::store_u32(lanes.data() + at, 2 * wire::load_u32(lanes.data() + at));
        }
        tensor.store(0, lanes);
    }
    void send(const protocol::Tensor& tensor) {
        std::vector<std::byte> lanes(values_.size() * ATP_LANE_BYTES);
        fits_ = tensor.load_integers(0, lanes);
    }
    // The first operation of its kind.
    void run_first() {
        const auto first = fit_owned();
        for (const auto& before : first.before) sum(*before);
        send(*first.tensor);
    }

    NumberFitter fitter_ = fitter_of(Scaling::dynamic, LaneType::int32);
    bool fits_ = false;
};

TEST_F(OwnedFitTest, FirstOperationAsksForExponentsAndLaterOnesForeseeTheVote) {
    const auto first = fit_owned();
    ASSERT_EQ(first.before.size(), 1U);
    EXPECT_EQ(first.after, nullptr);
    EXPECT_FALSE(first.tensor->ready(0, 8));
    sum(*first.before[0]);
    EXPECT_TRUE(first.tensor->ready(0, 8));
    EXPECT_EQ(first.tensor->scale(0), protocol::scale_byte(23)) << "two numbers of 1: below 2^25, at least 2^24";

    const auto second = fit_owned();
    ASSERT_EQ(second.before.size(), 1U);
    EXPECT_EQ(second.before[0]->size(), 1U) << "a vote";
    EXPECT_TRUE(second.tensor->ready(0, 8)) << "this rank knows the decision";
    EXPECT_EQ(second.tensor->scale(0), protocol::scale_byte(23));
}

TEST_F(OwnedFitTest, ScaleFollowsTheNumbersOfTheStepBefore) {
    run_first();
    values_[5] = -20.0F;  // 2^4 times as large
    {
        const auto second = fit_owned();
        ASSERT_NE(second.after, nullptr);
        EXPECT_FALSE(second.after->ready(0, 256)) << "nothing is sent yet";
        sum(*second.before[0]);
        send(*second.tensor);
        EXPECT_TRUE(fits_);
        sum(*second.after);
    }
    {
        const auto third = fit_owned();
        EXPECT_TRUE(third.tensor->ready(0, 8));
        EXPECT_EQ(third.tensor->scale(0), protocol::scale_byte(23 - 4));
        const auto early = fit_owned();
        EXPECT_FALSE(early.tensor->ready(0, 8)) << "the exponents of the third are missing";
    }
}

TEST_F(OwnedFitTest, NumbersThatFallAreSummedExactly) {
    run_first();
    values_.assign(values_.size(), 1e-9F);
    const auto second = fit_owned();
    EXPECT_FALSE(second.tensor->ready(0, 8)) << "the other rank may have large numbers";
    sum(*second.before[0]);
    EXPECT_TRUE(second.tensor->ready(0, 8));
    EXPECT_EQ(second.tensor->scale(0), protocol::exact_scale);
    std::vector<std::byte> floats(values_.size() * ATP_LANE_BYTES);
    second.tensor->load_floats(0, floats);
    EXPECT_TRUE(second.after->ready(0, 256));
}

TEST_F(OwnedFitTest, SmallTensorsAreExactAndNeedNothing) {
    NumberFitter fitter(
        {.form = {.scaling = Scaling::dynamic}, .ranks = 2, .feed = std::make_shared<protocol::SilentWaker>()});
    const auto fitted =
        fitter.fit_owned(make_sum_tensor(ElementType::float32, values_.data(), values_.data(), values_.size(), 1, 1),
                         {.elements = values_.size()});
    EXPECT_TRUE(fitted.before.empty());
    EXPECT_EQ(fitted.after, nullptr);
    EXPECT_TRUE(fitted.tensor->ready(0, values_.size()));
    EXPECT_TRUE(fitted.tensor->floats_only());
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
