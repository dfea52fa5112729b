// SPDX-License-Identifier: Apache-2.0
#include "tensor/span_scales.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "wire/format.h"

namespace atp::tensor {
namespace {

constexpr std::uint8_t forms[] = {ATP_DTYPE_INT32, ATP_DTYPE_INT16, ATP_DTYPE_INT8};
constexpr double job_scale = 1e8;

std::uint32_t bits(float value) { return magnitude_bits(value); }

double integer_at(float value, std::uint8_t scale) { return value * protocol::scale_from(scale, job_scale); }

double largest_of(std::uint8_t form) {
    if (form == ATP_DTYPE_INT32) return INT32_MAX;
    return form == ATP_DTYPE_INT16 ? INT16_MAX : INT8_MAX;
}

TEST(NextScale, LeavesRoomForTheSumToGrowFourfold) {
    for (const std::uint8_t form : forms) {
        for (const float sum : {1.0F, 1.5F, 1.9999999F, 3e-9F, 7e5F}) {
            const std::uint8_t next = next_scale(255, bits(sum), form);
            EXPECT_LE(4 * integer_at(sum, next), largest_of(form) + 1) << unsigned{form} << ' ' << sum;
            EXPECT_GE(integer_at(sum, next), std::ldexp(1, bits_of_sum(form) - 1)) << unsigned{form} << ' ' << sum;
        }
    }
    EXPECT_GE(integer_at(1, next_scale(255, bits(1), ATP_DTYPE_INT32)), 0x1p24) << "int32 keeps all bits of a float32";
}

TEST(NextScale, H52_FallsAtOnceAndRisesByASmallStep) {
    const std::uint8_t used = next_scale(255, bits(1), ATP_DTYPE_INT16);
    EXPECT_EQ(next_scale(used, bits(0x1p20F), ATP_DTYPE_INT16), used - 20);
    EXPECT_EQ(next_scale(used, bits(0x1p-3F), ATP_DTYPE_INT16), used + 3);
    EXPECT_EQ(next_scale(used, bits(0x1p-20F), ATP_DTYPE_INT16), used + most_rise);
}

TEST(NextScale, H52_SumThatIsNotFiniteLowersTheScaleByOne) {
    for (const float sum : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
        EXPECT_EQ(next_scale(140, bits(sum), ATP_DTYPE_INT16), 139) << sum;
    }
    EXPECT_EQ(next_scale(1, bits(INFINITY), ATP_DTYPE_INT16), 1);
}

TEST(NextScale, ZerosKeepTheScale) { EXPECT_EQ(next_scale(140, 0, ATP_DTYPE_INT16), 140); }

TEST(NextScale, StaysWithinTheBytesOfAScale) {
    for (const std::uint8_t form : forms) {
        EXPECT_GE(next_scale(255, bits(FLT_MAX), form), 1);
        EXPECT_EQ(next_scale(255, 1, form), 255);
    }
}

TEST(FirstScale, H51_SumOfAllRanksFits) {
    for (const std::uint8_t form : forms) {
        for (const std::uint32_t ranks : {1U, 2U, 3U, 8U}) {
            for (const float value : {1.0F, 1.9999999F, 1e-12F, 1e6F, 1e4F * 65536}) {
                const unsigned exponent = bits(value) >> 23U;
                const std::uint8_t first = first_scale(exponent, ranks, form, job_scale);
                EXPECT_LE(4.0 * ranks * integer_at(value, first), largest_of(form) + 1) << ranks << ' ' << value;
            }
        }
    }
}

TEST(FirstScale, OfZerosIsNearThatOfTheJob) {
    EXPECT_EQ(protocol::scale_from(first_scale(std::nullopt, 4, ATP_DTYPE_INT32, job_scale), 0), 0x1p26);
}

TEST(FirstScale, SubnormalNumbersHaveTheLargestScale) { EXPECT_EQ(first_scale(0, 4, ATP_DTYPE_INT32, job_scale), 255); }

TEST(LeastMagnitude, IsOneThirdOfTheBitsBelowTheSum) {
    constexpr std::uint8_t scale = 140;
    const auto integer = [](std::uint32_t ranks, std::uint8_t form) {
        return protocol::scale_from(scale, 1) * std::bit_cast<float>(least_magnitude(scale, ranks, form));
    };
    EXPECT_EQ(integer(1, ATP_DTYPE_INT32), 0x1p16);
    EXPECT_EQ(integer(4, ATP_DTYPE_INT32), 0x1p14);
    EXPECT_EQ(integer(1, ATP_DTYPE_INT16), 0x1p8);
    EXPECT_EQ(integer(5, ATP_DTYPE_INT16), 0x1p5);
    EXPECT_EQ(integer(1024, ATP_DTYPE_INT16), 1) << "at least one integer";
    EXPECT_EQ(integer(1, ATP_DTYPE_INT8), 0x1p3);
}

class AdvanceCounter final : public protocol::Waker {
  public:
    void advance() override { ++advanced; }
    void fail(const Error& /*error*/) override { ADD_FAILURE() << "no call may fail"; }

    int advanced = 0;
};

class SpanScalesTest : public ::testing::Test {
  protected:
    // Two full spans and one of 10 elements.
    static constexpr std::uint64_t span = span_elements(ATP_DTYPE_INT32);
    static constexpr std::uint64_t elements = 2 * span + 10;

    [[nodiscard]] std::shared_ptr<SpanScales> make(std::shared_ptr<SpanScales> reference = nullptr) {
        return std::make_shared<SpanScales>(elements, ATP_DTYPE_INT32, std::move(reference), waker_);
    }
    [[nodiscard]] std::shared_ptr<SpanScales> begun(unsigned scale) {
        auto scales = make();
        scales->begin(static_cast<std::uint8_t>(scale));
        return scales;
    }

    std::shared_ptr<AdvanceCounter> waker_ = std::make_shared<AdvanceCounter>();
};

TEST_F(SpanScalesTest, OperationWithoutReferenceWaitsForItsCommonScale) {
    const auto scales = make();
    EXPECT_FALSE(scales->ready(0));
    EXPECT_FALSE(scales->ready(2));
    scales->begin(150);
    EXPECT_EQ(waker_->advanced, 1);
    for (const std::uint64_t span : {0U, 1U, 2U}) {
        EXPECT_TRUE(scales->ready(span));
        EXPECT_EQ(scales->proposal(span), 150);
    }
}

TEST_F(SpanScalesTest, H50_SpanWaitsForAllSumsOfTheSameSpanInItsReference) {
    const auto first = begun(140);
    const auto second = make(first);
    EXPECT_TRUE(first->ready(1));
    EXPECT_FALSE(second->ready(1));
    first->settle(1, 5000, bits(1));
    EXPECT_FALSE(second->ready(1));
    first->settle(1, span - 5000, bits(2));
    EXPECT_EQ(waker_->advanced, 1);
    EXPECT_TRUE(second->ready(1));
    EXPECT_EQ(second->proposal(1), next_scale(140, bits(2), ATP_DTYPE_INT32));
    EXPECT_FALSE(second->ready(0));
    first->settle(2, 10, bits(3));
    EXPECT_TRUE(second->ready(2)) << "the last span is shorter";
}

TEST_F(SpanScalesTest, WakerAdvancesOnlyIfAnOperationWaits) {
    const auto first = begun(140);
    first->settle(0, span, bits(1));
    EXPECT_EQ(waker_->advanced, 0);
    const auto second = make(first);
    EXPECT_TRUE(second->ready(0));
    EXPECT_FALSE(second->ready(1));
    EXPECT_FALSE(second->ready(2));
    first->settle(1, span, bits(1));
    EXPECT_EQ(waker_->advanced, 1);
    first->settle(2, 10, bits(1));
    EXPECT_EQ(waker_->advanced, 1);
}

TEST_F(SpanScalesTest, LargestMagnitudeCountsWhateverTheOrderOfSums) {
    const auto first = begun(140);
    first->settle(0, 100, bits(8));
    first->settle(0, span - 100, bits(0.5F));
    const auto second = make(first);
    EXPECT_TRUE(second->ready(0));
    EXPECT_EQ(second->proposal(0), next_scale(140, bits(8), ATP_DTYPE_INT32));
}

TEST_F(SpanScalesTest, OperationThatForgotItsReferenceKeepsItsScales) {
    auto first = begun(140);
    const auto second = make(first);
    first->settle(0, span, bits(1));
    EXPECT_TRUE(second->ready(0));
    const std::uint8_t scale = second->proposal(0);
    second->forget_reference();
    EXPECT_EQ(first.use_count(), 1);
    EXPECT_TRUE(second->ready(0));
    EXPECT_EQ(second->proposal(0), scale);
}

}  // namespace
}  // namespace atp::tensor
