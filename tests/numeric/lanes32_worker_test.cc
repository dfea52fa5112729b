// SPDX-License-Identifier: Apache-2.0
// Compares numeric/lanes32_worker.h, with every instruction set of this processor, with plain arithmetic.
#include "numeric/lanes32_worker.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/lanes.h"

namespace atp::numeric {
namespace {

constexpr float default_scale = 1e8F;

struct Quantised {
    std::int32_t value;
    bool fits;
};

// Double represents the product of two float32 values exactly, and also the integer to which the product rounds.
Quantised reference_quantise(float value, float scale) {
    const float product = static_cast<float>(static_cast<double>(value) * static_cast<double>(scale));
    if (!(std::fabs(static_cast<double>(product)) < 2147483648.0)) {
        return {0, false};
    }
    const double down = std::floor(static_cast<double>(product));
    const double fraction = static_cast<double>(product) - down;
    const bool down_is_odd = std::fmod(down, 2.0) != 0.0;
    const bool up = fraction > 0.5 || (fraction == 0.5 && down_is_odd);
    return {static_cast<std::int32_t>(down + (up ? 1.0 : 0.0)), true};
}

class Lanes32Worker : public LanesOfTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, Lanes32Worker, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         name_of_target);

struct QuantiseCase {
    const char* what;
    float value;
    float scale;
    bool fits;
    std::int32_t lane;
};

const QuantiseCase quantise_cases[] = {
    {"zero", 0.0F, default_scale, true, 0},
    {"minus zero", -0.0F, default_scale, true, 0},
    {"half a unit rounds to even zero", 0.5F, 1.0F, true, 0},
    {"minus half a unit rounds to even zero", -0.5F, 1.0F, true, 0},
    {"just under half a unit", std::nextafter(0.5F, 0.0F), 1.0F, true, 0},
    {"just over half a unit", std::nextafter(0.5F, 1.0F), 1.0F, true, 1},
    {"one and a half rounds to even two", 1.5F, 1.0F, true, 2},
    {"two and a half rounds to even two", 2.5F, 1.0F, true, 2},
    {"minus two and a half rounds to even", -2.5F, 1.0F, true, -2},
    {"the last half there is", 4194303.5F, 1.0F, true, 4194304},
    {"an odd integer past all halves", 8388609.0F, 1.0F, true, 8388609},
    {"an odd negative integer past all halves", -16777215.0F, 1.0F, true, -16777215},
    {"a gradient", 0.0123F, default_scale, true, 1230000},
    {"the largest product under 2^31", 2147483520.0F, 1.0F, true, 2147483520},
    {"the least product over -2^31", -2147483520.0F, 1.0F, true, -2147483520},
    {"2^31", 2147483648.0F, 1.0F, false, 0},
    {"-2^31, though int32 has it", -2147483648.0F, 1.0F, false, 0},
    {"-2^31 - 1 is -2^31 in float32", -2147483649.0F, 1.0F, false, 0},
    {"2^31 less 13, which is 2^31 in float32", 21.4748364F, 1e8F, false, 0},
    {"2^31 less 185, which is 2^31 - 128 in float32", 21.4748364F, 1e8F - 8.0F, true, 2147483520},
    {"far beyond", 1e30F, default_scale, false, 0},
    {"a product beyond float32", 1e38F, default_scale, false, 0},
    {"infinity", infinity, default_scale, false, 0},
    {"minus infinity", -infinity, default_scale, false, 0},
    {"NaN", quiet_nan, default_scale, false, 0},
    {"minus NaN", -quiet_nan, default_scale, false, 0},
    {"a signalling NaN", as_float(0x7F800001), default_scale, false, 0},
    {"a NaN of all ones", as_float(0xFFFFFFFF), default_scale, false, 0},
    {"infinity times zero", infinity, 0.0F, false, 0},
    {"the least subnormal", as_float(1), default_scale, true, 0},
    {"minus the largest subnormal", as_float(0x807FFFFF), default_scale, true, 0},
    {"a subnormal made visible by the scale", as_float(0x00400000), 0x1p127F, true, 1},
    {"the least subnormal under the largest scale", as_float(1), 0x1p127F, true, 0},
};

TEST_P(Lanes32Worker, QuantiseIsExactAtEveryBoundaryInEveryLane) {
    constexpr std::size_t count = 37;  // covers whole, half and quarter vectors of every width, and single lanes
    for (const QuantiseCase& c : quantise_cases) {
        SCOPED_TRACE(c.what);
        for (std::size_t position = 0; position < count; ++position) {
            std::vector<float> values(count, 0.0F);
            values[position] = c.value;
            Wire wire(count, position % lane_bytes);
            ASSERT_EQ(quantise(values.data(), count, c.scale, wire.data()), c.fits) << "position " << position;
            if (c.fits) {
                ASSERT_EQ(wire.get_int(position), c.lane) << "position " << position;
            }
        }
    }
}

TEST_P(Lanes32Worker, QuantiseMatchesTheReferenceForEveryShape) {
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        // The products reach 2^31 and have every exponent below.
        const auto values = many<float>(count, random_, [](Random& random) {
            const std::uint32_t exponent = 1 + static_cast<std::uint32_t>(random() % (127 + 3));
            return as_float(static_cast<std::uint32_t>(random()) >> 9 | exponent << 23 |
                            (random() % 2 == 0 ? 1U << 31 : 0));
        });
        Wire wire(count, misalignment);
        ASSERT_TRUE(quantise(values.data(), count, default_scale, wire.data()));
        for (std::size_t at = 0; at < count; ++at) {
            ASSERT_EQ(wire.get_int(at), reference_quantise(values[at], default_scale).value) << values[at];
        }
        ASSERT_TRUE(wire.guards_intact());
    });
}

TEST_P(Lanes32Worker, QuantiseRefusesExactlyWhatTheReferenceRefuses) {
    for (int round = 0; round < 20000; ++round) {
        // The products are near 2^31, where about half of them must be refused.
        const float value = as_float(bits_of(21.4748364F) - 64 + static_cast<std::uint32_t>(random_() % 128));
        const float scale = as_float(bits_of(default_scale) - 64 + static_cast<std::uint32_t>(random_() % 128));
        const Quantised expected = reference_quantise(value, scale);
        Wire wire(1);
        ASSERT_EQ(quantise(&value, 1, scale, wire.data()), expected.fits) << value << " * " << scale;
        const std::vector<float> values(16, -value);
        Wire wide(16);
        ASSERT_EQ(quantise(values.data(), 16, scale, wide.data()), expected.fits) << -value << " * " << scale;
        if (expected.fits) {
            ASSERT_EQ(wire.get_int(0), expected.value);
            ASSERT_EQ(wide.get_int(7), -expected.value);
        }
    }
}

TEST_P(Lanes32Worker, ExceedsFindsEveryLaneAboveTheMagnitude) {
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    constexpr std::size_t count = 37;
    for (const std::int32_t magnitude : {0, 1, most / 3, most - 1, most}) {
        for (const std::size_t misalignment : {0U, 1U}) {
            Wire wire(count, misalignment);
            for (std::size_t at = 0; at < count; ++at) {
                wire.set(at, static_cast<std::uint32_t>(at % 2 == 0 ? magnitude : -magnitude));
            }
            EXPECT_FALSE(exceeds(wire.data(), count, static_cast<std::uint32_t>(magnitude))) << magnitude;
            for (std::size_t at = 0; at < count; ++at) {
                const std::uint32_t before = wire.get(at);
                for (const std::int64_t value : {std::int64_t{magnitude} + 1, -std::int64_t{magnitude} - 1}) {
                    if (value > most) continue;
                    wire.set(at, static_cast<std::uint32_t>(value));
                    EXPECT_TRUE(exceeds(wire.data(), count, static_cast<std::uint32_t>(magnitude)))
                        << value << " at " << at;
                }
                wire.set(at, before);
            }
        }
    }
}

TEST_P(Lanes32Worker, DequantiseMatchesTheReferenceForEveryShape) {
    constexpr float inverse_scale = 1e-8F;
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        const auto lanes = any_ints(count, random_);
        Wire wire(lanes, misalignment);
        Host<float> values(count);
        dequantise(wire.data(), count, inverse_scale, values.data());
        for (std::size_t at = 0; at < count; ++at) {
            const float rounded = static_cast<float>(static_cast<double>(lanes[at]));
            const float expected =
                static_cast<float>(static_cast<double>(rounded) * static_cast<double>(inverse_scale));
            ASSERT_EQ(bits_of(values[at]), bits_of(expected)) << lanes[at];
        }
        ASSERT_TRUE(values.guards_intact());
    });
}

TEST_P(Lanes32Worker, QuantiseThenDequantiseStaysWithinHalfAStep) {
    for (int round = 0; round < 1000; ++round) {
        const float value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(random_())),
                                       -31 - static_cast<int>(random_() % 12));
        Wire wire(1);
        ASSERT_TRUE(quantise(&value, 1, 0x1p20F, wire.data()));
        float back = 0.0F;
        dequantise(wire.data(), 1, 0x1p-20F, &back);
        ASSERT_LE(std::fabs(back - value), 0x1p-21F);
    }
}

TEST_P(Lanes32Worker, FloatsKeepTheirBitsOnTheWire) {
    const std::uint32_t edges[] = {0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F800000, 0xFF800000,
                                   0x7F800001, 0xFFBFFFFF, 0x7FC00000, 0xFFFFFFFF, 0x3F800000, 0x7F7FFFFF};
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        // The test copies bits, not floats: a load of a signalling NaN into a float register could change it.
        std::vector<std::uint32_t> bits(longest);
        for (std::size_t at = 0; at < count; ++at) {
            bits[at] = at % 2 == 0 ? edges[at / 2 % std::size(edges)] : static_cast<std::uint32_t>(random_());
        }
        std::vector<float> values(longest);
        std::memcpy(values.data(), bits.data(), count * sizeof(float));
        Wire wire(count, misalignment);
        floats_to_wire(values.data(), count, wire.data());
        for (std::size_t at = 0; at < count; ++at) {
            ASSERT_EQ(wire.get(at), bits[at]);
        }
        ASSERT_TRUE(wire.guards_intact());
        Host<float> back(count);
        const float largest = floats_from_wire(wire.data(), count, back.data());
        ASSERT_EQ(std::memcmp(back.data(), bits.data(), count * sizeof(float)), 0);
        std::uint32_t expected = 0;
        for (std::size_t at = 0; at < count; ++at) expected = std::max(expected, bits[at] & 0x7FFFFFFF);
        ASSERT_EQ(bits_of(largest), expected);
        ASSERT_TRUE(back.guards_intact());
    });
}

TEST(LanesDispatch, BuildHasMoreThanOneTargetOnX86) {
#if defined(__x86_64__)
    EXPECT_GT(std::popcount(static_cast<std::uint64_t>(HWY_TARGETS)), 3)
        << "a portable binary must contain code for AVX2 and AVX-512";
#else
    EXPECT_NE(HWY_TARGETS, 0);
#endif
}

}  // namespace
}  // namespace atp::numeric
