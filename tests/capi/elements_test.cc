// SPDX-License-Identifier: Apache-2.0
// The 16-bit floats of the C++ header, each against the two floats beside it.
#include <gtest/gtest.h>
#include <atp/elements.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

namespace {

static_assert(sizeof(atp::float16) == 2 && std::is_trivially_copyable_v<atp::float16>);
static_assert(sizeof(atp::bfloat16) == 2 && std::is_trivially_copyable_v<atp::bfloat16>);

template <class Half>
Half of_bits(unsigned bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    return half;
}

// Positive numbers from 0 to `infinity`: each one, what lies between it and the next, and both with a minus sign.
template <class Half>
void expect_nearest_with_ties_to_even(unsigned infinity) {
    const float up = std::numeric_limits<float>::infinity();
    for (unsigned bits = 0; bits < infinity; ++bits) {
        const float here = static_cast<float>(of_bits<Half>(bits));
        ASSERT_EQ(Half(here).bits, bits);
        ASSERT_EQ(Half(-here).bits, bits | 0x8000U);
        ASSERT_EQ(static_cast<float>(of_bits<Half>(bits | 0x8000U)), -here);
        // Beyond the largest number, the next step decides what rounds to infinity.
        const float below = bits == 0 ? 0 : static_cast<float>(of_bits<Half>(bits - 1));
        const float next = bits + 1 < infinity ? static_cast<float>(of_bits<Half>(bits + 1)) : here + (here - below);
        if (std::isinf(next)) continue;  // the type has the range of float
        const float middle = here + (next - here) / 2;
        ASSERT_EQ(Half(std::nextafter(middle, 0.0F)).bits, bits);
        ASSERT_EQ(Half(std::nextafter(middle, up)).bits, bits + 1);
        ASSERT_EQ(Half(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    }
    ASSERT_EQ(static_cast<float>(of_bits<Half>(infinity)), up);
    ASSERT_EQ(Half(up).bits, infinity);
    ASSERT_EQ(Half(std::numeric_limits<float>::max()).bits, infinity);
}

TEST(Elements, Float16RoundsToNearestAndTiesToEven) { expect_nearest_with_ties_to_even<atp::float16>(0x7C00); }

// bfloat16 has subnormal floats, of which the middle may not exist.
TEST(Elements, Bfloat16RoundsToNearestAndTiesToEven) { expect_nearest_with_ties_to_even<atp::bfloat16>(0x7F80); }

TEST(Elements, NanStaysNan) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(static_cast<float>(atp::float16(nan))));
    EXPECT_TRUE(std::isnan(static_cast<float>(atp::bfloat16(nan))));
    EXPECT_EQ(atp::float16(-nan).bits, atp::float16(nan).bits ^ 0x8000U);
}

}  // namespace
