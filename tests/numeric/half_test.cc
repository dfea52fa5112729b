// SPDX-License-Identifier: Apache-2.0
// Compares conversions of 16-bit floats with a simple reference. The reference computes the value of a bit pattern with
// ldexp, and rounds by a search for the nearest bit pattern.
#include "numeric/half.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace atp::numeric {
namespace {

constexpr std::uint32_t patterns = 1U << 16U;

struct Format {
    const char* name;
    int exponent_bits;
    int fraction_bits;
    void (*widen)(const std::uint16_t*, std::size_t, float*);
    void (*narrow)(const float*, std::size_t, std::uint16_t*);

    [[nodiscard]] int fraction(std::uint16_t bits) const { return bits & ((1 << fraction_bits) - 1); }
    [[nodiscard]] int exponent(std::uint16_t bits) const {
        return (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    }
    [[nodiscard]] int highest_exponent() const { return (1 << exponent_bits) - 1; }
    [[nodiscard]] bool is_nan(std::uint16_t bits) const {
        return exponent(bits) == highest_exponent() && fraction(bits) != 0;
    }
    // Value of a bit pattern with sign bit 0 that is no NaN. Infinity counts as the power of two after the largest
    // number.
    [[nodiscard]] double magnitude(std::uint16_t bits) const {
        const int bias = highest_exponent() / 2;
        if (exponent(bits) == 0) return std::ldexp(fraction(bits), 1 - bias - fraction_bits);
        return std::ldexp((1 << fraction_bits) + fraction(bits), exponent(bits) - bias - fraction_bits);
    }
    [[nodiscard]] std::uint16_t infinity() const {
        return static_cast<std::uint16_t>(highest_exponent() << fraction_bits);
    }
    [[nodiscard]] float widened(std::uint16_t bits) const {
        float value = 0;
        widen(&bits, 1, &value);
        return value;
    }
    [[nodiscard]] std::uint16_t narrowed(float value) const {
        std::uint16_t bits = 0;
        narrow(&value, 1, &bits);
        return bits;
    }
    // Bit pattern nearest to `value`, ties to even. The search uses that patterns with sign bit 0 are ordered by value.
    [[nodiscard]] std::uint16_t nearest(double value) const {
        std::uint32_t low = 0;
        std::uint32_t high = infinity();
        if (std::fabs(value) >= magnitude(infinity())) return with_sign(infinity(), value);
        while (high - low > 1) {
            const std::uint32_t middle = (low + high) / 2;
            (magnitude(static_cast<std::uint16_t>(middle)) <= std::fabs(value) ? low : high) = middle;
        }
        const double below = std::fabs(value) - magnitude(static_cast<std::uint16_t>(low));
        const double above = magnitude(static_cast<std::uint16_t>(high)) - std::fabs(value);
        const bool up = above < below || (above == below && low % 2 != 0);
        return with_sign(static_cast<std::uint16_t>(up ? high : low), value);
    }

  private:
    static std::uint16_t with_sign(std::uint16_t bits, double value) {
        return static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0));
    }
};

class Half : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Formats, Half,
                         testing::Values(Format{"float16", 5, 10, halves_to_floats, floats_to_halves},
                                         Format{"bfloat16", 8, 7, bfloats_to_floats, floats_to_bfloats}),
                         [](const auto& format) { return format.param.name; });

TEST_P(Half, EveryPatternWidensToItsValue) {
    const Format& format = GetParam();
    for (std::uint32_t pattern = 0; pattern < patterns; ++pattern) {
        const auto bits = static_cast<std::uint16_t>(pattern);
        const auto unsigned_bits = static_cast<std::uint16_t>(pattern & 0x7FFFU);
        const float value = format.widened(bits);
        ASSERT_EQ(std::signbit(value), pattern >= 0x8000U) << pattern;
        if (format.is_nan(unsigned_bits)) {
            ASSERT_TRUE(std::isnan(value)) << pattern;
            const std::uint32_t payload = std::bit_cast<std::uint32_t>(value) & 0x007FFFFFU;
            ASSERT_EQ(payload, static_cast<std::uint32_t>(format.fraction(bits)) << (23 - format.fraction_bits));
        } else if (unsigned_bits == format.infinity()) {
            ASSERT_TRUE(std::isinf(value)) << pattern;
        } else {
            ASSERT_EQ(std::fabs(static_cast<double>(value)), format.magnitude(unsigned_bits)) << pattern;
        }
    }
}

TEST_P(Half, EveryPatternRoundTripsAndNansBecomeQuiet) {
    const Format& format = GetParam();
    const int quiet = 1 << (format.fraction_bits - 1);
    for (std::uint32_t pattern = 0; pattern < patterns; ++pattern) {
        const auto bits = static_cast<std::uint16_t>(pattern);
        const bool nan = format.is_nan(static_cast<std::uint16_t>(pattern & 0x7FFFU));
        ASSERT_EQ(format.narrowed(format.widened(bits)), nan ? bits | quiet : bits) << pattern;
    }
}

// Tests every number, every middle between two neighbours, and the floats just below and above each of them.
TEST_P(Half, FloatsAroundEveryBoundaryRoundToNearestTiesToEven) {
    const Format& format = GetParam();
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (std::uint16_t bits = 0; bits < format.infinity(); ++bits) {
        const double here = format.magnitude(bits);
        const double next = format.magnitude(static_cast<std::uint16_t>(bits + 1));
        for (const double exact : {here, (here + next) / 2}) {
            const auto middle = static_cast<float>(exact);
            for (const float value : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, infinity)}) {
                ASSERT_EQ(format.narrowed(value), format.nearest(value)) << value;
                ASSERT_EQ(format.narrowed(-value), format.nearest(-value)) << -value;
            }
        }
    }
}

TEST_P(Half, RandomFloatsRoundLikeTheReference) {
    const Format& format = GetParam();
    std::mt19937 random(7);
    for (int run = 0; run < 300'000; ++run) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        const std::uint16_t bits = format.narrowed(value);
        if (std::isnan(value)) {
            ASSERT_TRUE(format.is_nan(static_cast<std::uint16_t>(bits & 0x7FFFU)))
                << std::bit_cast<std::uint32_t>(value);
            ASSERT_EQ(bits >= 0x8000U, std::signbit(value));
        } else {
            ASSERT_EQ(bits, format.nearest(static_cast<double>(value))) << value;
        }
    }
}

TEST_P(Half, NansWithAnyPayloadStayNans) {
    const Format& format = GetParam();
    for (const std::uint32_t bits : {0x7F800001U, 0xFF800001U, 0x7FFFFFFFU, 0xFFFFFFFFU, 0x7FC00000U}) {
        const std::uint16_t narrowed = format.narrowed(std::bit_cast<float>(bits));
        EXPECT_TRUE(format.is_nan(static_cast<std::uint16_t>(narrowed & 0x7FFFU))) << bits;
        EXPECT_EQ(narrowed >= 0x8000U, bits >= 0x80000000U);
    }
}

TEST_P(Half, RowsOfUpTo69NumbersMatchSingleConversions) {
    const Format& format = GetParam();
    std::mt19937 random(11);
    for (std::size_t count = 0; count < 70; ++count) {
        std::vector<float> floats(count);
        for (float& value : floats) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        std::vector<std::uint16_t> narrow(count + 1, 0xABCD);
        format.narrow(floats.data(), count, narrow.data());
        std::vector<float> wide(count + 1, 0.25F);
        format.widen(narrow.data(), count, wide.data());
        for (std::size_t at = 0; at < count; ++at) {
            ASSERT_EQ(narrow[at], format.narrowed(floats[at]));
            ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[at]), std::bit_cast<std::uint32_t>(format.widened(narrow[at])));
        }
        ASSERT_EQ(narrow[count], 0xABCD);
        ASSERT_EQ(wide[count], 0.25F);
    }
}

// Selects an instruction set. 0: the best one of the processor.
void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// A single number uses only the code for the remainder after the vectors. This test therefore converts long rows, with
// every instruction set of this processor, and compares them with single numbers.
TEST_P(Half, EveryInstructionSetGivesTheSameBits) {
    const Format& format = GetParam();
    std::vector<std::uint16_t> all(patterns);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    std::mt19937 random(13);
    std::vector<float> floats(1U << 18U);
    for (float& value : floats) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    for (std::size_t at = 0; at < floats.size(); at += 2) floats[at] = format.widened(all[at / 2 % patterns]) * 1.001F;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        choose(target);
        std::vector<float> wide(all.size());
        std::vector<std::uint16_t> narrow(floats.size());
        format.widen(all.data(), all.size(), wide.data());
        format.narrow(floats.data(), floats.size(), narrow.data());
        choose(0);
        for (std::size_t at = 0; at < all.size(); ++at) {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[at]), std::bit_cast<std::uint32_t>(format.widened(all[at])))
                << hwy::TargetName(target);
        }
        for (std::size_t at = 0; at < floats.size(); ++at) {
            ASSERT_EQ(narrow[at], format.narrowed(floats[at])) << hwy::TargetName(target);
        }
    }
}

}  // namespace
}  // namespace atp::numeric
