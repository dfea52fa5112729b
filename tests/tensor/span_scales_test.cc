// SPDX-License-Identifier: Apache-2.0
#include "tensor/span_scales.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <initializer_list>
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
            const std::uint8_t next = next_scale(255, bits(sum), bits_of_sum(form));
            EXPECT_LE(4 * integer_at(sum, next), largest_of(form) + 1) << unsigned{form} << ' ' << sum;
            EXPECT_GE(integer_at(sum, next), std::ldexp(1, bits_of_sum(form) - 1)) << unsigned{form} << ' ' << sum;
        }
    }
    EXPECT_GE(integer_at(1, next_scale(255, bits(1), bits_of_sum(ATP_DTYPE_INT32))), 0x1p24)
        << "int32 keeps all bits of a float32";
}

TEST(NextScale, H52_FallsAtOnceAndRisesByASmallStep) {
    const std::uint8_t used = next_scale(255, bits(1), bits_of_sum(ATP_DTYPE_INT16));
    EXPECT_EQ(next_scale(used, bits(0x1p20F), bits_of_sum(ATP_DTYPE_INT16)), used - 20);
    EXPECT_EQ(next_scale(used, bits(0x1p-3F), bits_of_sum(ATP_DTYPE_INT16)), used + 3);
    EXPECT_EQ(next_scale(used, bits(0x1p-20F), bits_of_sum(ATP_DTYPE_INT16)), used + most_rise);
}

TEST(NextScale, H52_SumThatIsNotFiniteLowersTheScaleByOne) {
    for (const float sum : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
        EXPECT_EQ(next_scale(140, bits(sum), bits_of_sum(ATP_DTYPE_INT16)), 139) << sum;
    }
    EXPECT_EQ(next_scale(1, bits(INFINITY), bits_of_sum(ATP_DTYPE_INT16)), 1);
}

TEST(NextScale, ZerosKeepTheScale) { EXPECT_EQ(next_scale(140, 0, bits_of_sum(ATP_DTYPE_INT16)), 140); }

TEST(NextScale, StaysWithinTheBytesOfAScale) {
    for (const std::uint8_t form : forms) {
        EXPECT_GE(next_scale(255, bits(FLT_MAX), bits_of_sum(form)), 1);
        EXPECT_EQ(next_scale(255, 1, bits_of_sum(form)), 255);
    }
}

TEST(FirstScale, H51_SumOfAllRanksFits) {
    for (const std::uint8_t form : forms) {
        for (const std::uint32_t ranks : {1U, 2U, 3U, 8U}) {
            for (const float value : {1.0F, 1.9999999F, 1e-12F, 1e6F, 1e4F * 65536}) {
                const unsigned exponent = bits(value) >> 23U;
                const std::uint8_t first = first_scale(exponent, ranks, bits_of_sum(form), job_scale);
                EXPECT_LE(4.0 * ranks * integer_at(value, first), largest_of(form) + 1) << ranks << ' ' << value;
            }
        }
    }
}

TEST(FirstScale, NarrowSumsHaveAllBitsOfTheirForm) {
    for (const std::uint8_t form : {ATP_DTYPE_INT16, ATP_DTYPE_INT8}) {
        for (const std::uint32_t ranks : {1U, 2U, 4U}) {
            const std::uint8_t first = first_scale(bits(1) >> 23U, ranks, bits_of_first_sum(form), job_scale);
            EXPECT_LE(ranks * integer_at(1.9999999F, first), largest_of(form) + 1);
            EXPECT_EQ(ranks * integer_at(2, first), largest_of(form) + 1);
        }
    }
    EXPECT_EQ(bits_of_first_sum(ATP_DTYPE_INT32), bits_of_sum(ATP_DTYPE_INT32)) << "more than a float32 has";
}

TEST(FirstScale, OfZerosIsNearThatOfTheJob) {
    EXPECT_EQ(protocol::scale_from(first_scale(std::nullopt, 4, bits_of_sum(ATP_DTYPE_INT32), job_scale), 0), 0x1p26);
}

TEST(FirstScale, SubnormalNumbersHaveTheLargestScale) {
    EXPECT_EQ(first_scale(0, 4, bits_of_sum(ATP_DTYPE_INT32), job_scale), 255);
}

TEST(LeastMagnitude, IsOneThirdOfTheBitsBelowTheSum) {
    constexpr std::uint8_t scale = 140;
    const auto integer = [](std::uint32_t ranks, std::uint8_t form) {
        return protocol::scale_from(scale, 1) * std::bit_cast<float>(least_magnitude(scale, ranks, bits_of_sum(form)));
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

    // All cells of an int32 span are one.
    static void settle(SpanScales& scales, std::uint64_t span, std::uint64_t count, float largest) {
        scales.record(span, bits(largest));
        scales.settle(span, count);
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

TEST_F(SpanScalesTest, H51_EachSpanBeginsWithItsOwnScale) {
    const auto scales = make();
    EXPECT_FALSE(scales->ready(1));
    scales->begin(1, 90);
    EXPECT_EQ(waker_->advanced, 1);
    EXPECT_TRUE(scales->ready(1));
    EXPECT_FALSE(scales->ready(0));
    scales->begin(0, 150);
    EXPECT_EQ(scales->proposal(1), 90);
    EXPECT_EQ(scales->coarsest(0), 150);
}

TEST_F(SpanScalesTest, H50_SpanWaitsForAllSumsOfTheSameSpanInItsReference) {
    const auto first = begun(140);
    const auto second = make(first);
    EXPECT_TRUE(first->ready(1));
    EXPECT_FALSE(second->ready(1));
    settle(*first, 1, 5000, 1);
    EXPECT_FALSE(second->ready(1));
    settle(*first, 1, span - 5000, 2);
    EXPECT_EQ(waker_->advanced, 1);
    EXPECT_TRUE(second->ready(1));
    EXPECT_EQ(second->proposal(1), next_scale(140, bits(2), bits_of_sum(ATP_DTYPE_INT32)));
    EXPECT_FALSE(second->ready(0));
    settle(*first, 2, 10, 3);
    EXPECT_TRUE(second->ready(2)) << "the last span is shorter";
}

TEST_F(SpanScalesTest, WakerAdvancesOnlyIfAnOperationWaits) {
    const auto first = begun(140);
    settle(*first, 0, span, 1);
    EXPECT_EQ(waker_->advanced, 0);
    const auto second = make(first);
    EXPECT_TRUE(second->ready(0));
    EXPECT_FALSE(second->ready(1));
    EXPECT_FALSE(second->ready(2));
    settle(*first, 1, span, 1);
    EXPECT_EQ(waker_->advanced, 1);
    settle(*first, 2, 10, 1);
    EXPECT_EQ(waker_->advanced, 1);
}

TEST_F(SpanScalesTest, LargestMagnitudeCountsWhateverTheOrderOfSums) {
    const auto first = begun(140);
    settle(*first, 0, 100, 8);
    settle(*first, 0, span - 100, 0.5F);
    const auto second = make(first);
    EXPECT_TRUE(second->ready(0));
    EXPECT_EQ(second->proposal(0), next_scale(140, bits(8), bits_of_sum(ATP_DTYPE_INT32)));
}

TEST_F(SpanScalesTest, OperationThatForgotItsReferenceKeepsItsScales) {
    auto first = begun(140);
    const auto second = make(first);
    settle(*first, 0, span, 1);
    EXPECT_TRUE(second->ready(0));
    const std::uint8_t scale = second->proposal(0);
    second->forget_reference();
    EXPECT_EQ(first.use_count(), 1);
    EXPECT_TRUE(second->ready(0));
    EXPECT_EQ(second->proposal(0), scale);
}

// Cells of int16: two full spans.
class CellScalesTest : public ::testing::Test {
  protected:
    static constexpr std::uint8_t form = ATP_DTYPE_INT16;
    static constexpr std::uint64_t cells_of_span = span_elements(form) / cell_elements(form);
    static constexpr std::uint8_t common = 140;

    [[nodiscard]] std::shared_ptr<SpanScales> make(std::shared_ptr<SpanScales> reference = nullptr) {
        return std::make_shared<SpanScales>(2 * span_elements(form), form, std::move(reference),
                                            std::make_shared<protocol::SilentWaker>());
    }
    // What follows an operation in which cell n of the first span has the sum n of `sums`, and all others have 0.
    [[nodiscard]] std::shared_ptr<SpanScales> after(std::initializer_list<float> sums, std::uint8_t used = common) {
        const auto first = make();
        first->begin(used);
        std::uint64_t cell = 0;
        for (const float sum : sums) first->record(cell++, bits(sum));
        first->settle(0, span_elements(form));
        auto second = make(first);
        EXPECT_TRUE(second->ready(0));
        EXPECT_FALSE(second->ready(1));
        second->decide(0, true);
        return second;
    }
};

TEST_F(CellScalesTest, EachCellHasAScaleThatFitsItsOwnSum) {
    const auto scales = after({8.0F, 2.0F, 4.0F});
    const std::uint8_t coarsest = next_scale(common, bits(8), bits_of_sum(form));
    EXPECT_EQ(scales->cells(), 2 * cells_of_span);
    EXPECT_EQ(scales->cell_scale(0), coarsest);
    EXPECT_EQ(scales->cell_scale(1), coarsest + 2);
    EXPECT_EQ(scales->cell_scale(2), coarsest + 1);
    EXPECT_EQ(scales->coarsest(0), coarsest);
    EXPECT_EQ(scales->scale(0), coarsest + 2) << "packets have the finest scale";
    EXPECT_EQ(scales->units(1), protocol::scale_from(coarsest + 2, 1));
}

TEST_F(CellScalesTest, CellOfZerosTakesTheCoarsestScale) {
    const auto scales = after({8.0F, 2.0F});
    EXPECT_EQ(scales->cell_scale(cells_of_span - 1), scales->coarsest(0));
}

TEST_F(CellScalesTest, ZerosAloneKeepTheScales) {
    const auto scales = after({});
    EXPECT_EQ(scales->scale(0), common);
    EXPECT_EQ(scales->coarsest(0), common);
    EXPECT_EQ(scales->cell_scale(5), common);
}

TEST_F(CellScalesTest, H52_NoCellIsMuchFinerThanTheCoarsest) {
    const auto scales = after({8.0F, 1e-20F}, 200);
    EXPECT_EQ(scales->cell_scale(1), scales->coarsest(0) + most_gain);
    EXPECT_EQ(after({8.0F, INFINITY})->coarsest(0),
              std::min(common - 1, int{next_scale(common, bits(8), bits_of_sum(form))}));
}

TEST_F(CellScalesTest, SubnormalProductsCannotOccur) {
    const float tiny = 0x1p-95F;
    const auto scales = after({tiny, tiny / 4}, 255);
    EXPECT_GT(scales->coarsest(0), finest_gain);
    EXPECT_EQ(scales->cell_scale(1), scales->cell_scale(0));
}

TEST_F(CellScalesTest, RefusedSpanIsExactInAllCells) {
    const auto scales = after({8.0F, 2.0F});
    scales->decide(0, false);
    EXPECT_EQ(scales->scale(0), protocol::exact_scale);
    EXPECT_EQ(scales->cell_scale(0), protocol::exact_scale);
    EXPECT_EQ(scales->cell_scale(1), protocol::exact_scale);
}

}  // namespace
}  // namespace atp::tensor
