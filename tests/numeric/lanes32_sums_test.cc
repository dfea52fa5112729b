// SPDX-License-Identifier: Apache-2.0
// Compares numeric/lanes32_sums.h, with every instruction set of this processor, with plain arithmetic.
#include "numeric/lanes32_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "support/lanes.h"

namespace atp::numeric {
namespace {

std::uint32_t reference_sum_to_float(std::int64_t sum, double inverse_scale) {
    static_assert(std::numeric_limits<long double>::digits >= 64);
    const double rounded = static_cast<double>(static_cast<long double>(sum));
    volatile double scaled = rounded * inverse_scale;
    return bits_of(static_cast<float>(scaled));
}

std::int64_t any_sum(Random& random) {
    const std::uint64_t draw = random();
    // The shift gives magnitudes of every order up to 2^62, the largest sum of 2^31 contributions.
    return static_cast<std::int64_t>(random()) >> (1 + draw % 63);
}

class Lanes32Sums : public LanesOfTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, Lanes32Sums, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), name_of_target);

TEST_P(Lanes32Sums, SumsMatchTheReferenceForEveryShape) {
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        const auto first = any_ints(count, random_);
        const auto second = any_ints(count, random_);
        const auto start = many<std::int64_t>(count, random_, any_sum);
        Wire wire_first(first, misalignment);
        Wire wire_second(second, misalignment);
        Host<std::int64_t> assigned(count);
        sums_assign(wire_first.data(), count, assigned.data());
        sums_add(wire_second.data(), count, assigned.data());
        Host<std::int64_t> grown(start);
        sums_add(wire_first.data(), count, grown.data());
        for (std::size_t at = 0; at < count; ++at) {
            ASSERT_EQ(assigned[at], std::int64_t{first[at]} + second[at]);
            ASSERT_EQ(grown[at], start[at] + first[at]);
        }
        ASSERT_TRUE(assigned.guards_intact() && grown.guards_intact());
    });
}

// H23, docs/spec/hazards.md#h23: 2^31 contributions of the most extreme lane, the limit of a 64-bit sum.
TEST_P(Lanes32Sums, SumsHoldTwoToTheThirtyOneContributions) {
    for (const std::int32_t extreme : {int_max, int_min}) {
        const std::int64_t almost = std::int64_t{extreme} * ((std::int64_t{1} << 31) - 1);
        std::vector<std::int64_t> sums(9, almost);
        Wire wire(std::vector<std::int32_t>(9, extreme), 0);
        sums_add(wire.data(), 9, sums.data());
        for (const std::int64_t sum : sums) {
            ASSERT_EQ(sum, almost + extreme);
            ASSERT_EQ(sum < 0, extreme < 0);
        }
    }
}

TEST_P(Lanes32Sums, SumsConvertToFloatsLikeTheReference) {
    const double scales[] = {1e-8, 1.0, 0x1p-20, 1.0 / 3.0, 1e-50, 0x1p-149, 0x1p-200, 1e30, 1e300};
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        const auto sums = many<std::int64_t>(count, random_, any_sum);
        const double inverse_scale = scales[(count + misalignment) % std::size(scales)];
        Wire wire(count, misalignment);
        sums_to_floats(sums.data(), count, inverse_scale, wire.data());
        for (std::size_t at = 0; at < count; ++at) {
            ASSERT_EQ(wire.get(at), reference_sum_to_float(sums[at], inverse_scale))
                << sums[at] << " * " << inverse_scale;
        }
        ASSERT_TRUE(wire.guards_intact());
    });
}

TEST_P(Lanes32Sums, SumsConvertToIntegersModulo2To32ForEveryShape) {
    constexpr std::int64_t two_32 = std::int64_t{1} << 32;
    const std::int64_t edges[] = {0,           -1,         int_max, std::int64_t{int_max} + 1, int_min,    two_32 - 1,
                                  two_32,      two_32 + 7, -two_32, std::int64_t{int_min} - 1, two_32 * 5, -two_32 - 9,
                                  two_32 << 30};
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        auto sums = many<std::int64_t>(count, random_, any_sum);
        for (std::size_t at = misalignment; at < count; at += 3) sums[at] = edges[(at + count) % std::size(edges)];
        Wire wire(count, misalignment);
        sums_to_integers(sums.data(), count, wire.data());
        for (std::size_t at = 0; at < count; ++at) {
            const std::int64_t above = ((sums[at] % two_32) + two_32) % two_32;
            ASSERT_EQ(wire.get(at), static_cast<std::uint32_t>(above)) << sums[at];
        }
        ASSERT_TRUE(wire.guards_intact());
    });
}

// If one packet has the whole sum, lanes_to_floats() converts it in one pass, to the same bits.
TEST_P(Lanes32Sums, LanesConvertToFloatsLikeASumOfOne) {
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        Wire from(count, misalignment);
        for (std::size_t at = 0; at < count; ++at) from.set(at, static_cast<std::uint32_t>(random_()));
        std::vector<std::int64_t> sums(count);
        sums_assign(from.data(), count, sums.data());
        Wire expected(count, misalignment);
        sums_to_floats(sums.data(), count, 1e-8, expected.data());
        Wire wire(count, misalignment);
        lanes_to_floats(from.data(), count, 1e-8, wire.data());
        for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(wire.get(at), expected.get(at));
        ASSERT_TRUE(wire.guards_intact());
    });
}

struct SumCase {
    const char* what;
    std::int64_t sum;
    double inverse_scale;
    std::uint32_t bits;
};

const SumCase sum_cases[] = {
    {"zero", 0, 1e-8, 0x00000000},
    {"one", 100'000'000, 1e-8, 0x3F800000},
    {"minus one", -100'000'000, 1e-8, 0xBF800000},
    {"a tie to even, down", (1 << 24) + 1, 1.0, 0x4B800000},
    {"a tie to even, up", (1 << 24) + 3, 1.0, 0x4B800002},
    {"over 53 bits, rounded to double first", (std::int64_t{1} << 53) + 1, 1.0, 0x5A000000},
    {"rounds up to 2^62", (std::int64_t{1} << 62) - 1, 1.0, 0x5E800000},
    {"-2^62", -(std::int64_t{1} << 62), 1.0, 0xDE800000},
    {"the most negative sum of all", std::numeric_limits<std::int64_t>::min(), 1.0, 0xDF000000},
    {"the least subnormal", 1, 0x1p-149, 0x00000001},
    {"half the least subnormal is even zero", 1, 0x1p-150, 0x00000000},
    {"minus half the least subnormal", -1, 0x1p-150, 0x80000000},
    {"three quarters of it", 3, 0x1p-151, 0x00000001},
    {"the largest subnormal", 0x7FFFFF, 0x1p-149, 0x007FFFFF},
    {"the largest float", 0xFFFFFF, 0x1p104, 0x7F7FFFFF},
    {"half an ulp more is infinity", 0x1FFFFFF, 0x1p103, 0x7F800000},
    {"beyond float32", 1, 1e300, 0x7F800000},
    {"beyond float32, negative", -1, 1e300, 0xFF800000},
};

TEST_P(Lanes32Sums, SumsConvertToFloatsAtEveryBoundaryInEveryLane) {
    constexpr std::size_t count = 15;
    for (const SumCase& c : sum_cases) {
        SCOPED_TRACE(c.what);
        for (std::size_t position = 0; position < count; ++position) {
            std::vector<std::int64_t> sums(count, 0);
            sums[position] = c.sum;
            Wire wire(count, position % lane_bytes);
            sums_to_floats(sums.data(), count, c.inverse_scale, wire.data());
            ASSERT_EQ(wire.get(position), c.bits) << "position " << position;
        }
    }
}

}  // namespace
}  // namespace atp::numeric
