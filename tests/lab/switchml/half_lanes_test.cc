// SPDX-License-Identifier: Apache-2.0
#include "switchml/half_lanes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace atp::switchml {
namespace {

using Bytes = std::vector<std::byte>;

template <class Integer>
void put(Bytes& bytes, Integer value) {
    for (std::size_t byte = sizeof value; byte-- > 0;) {
        bytes.push_back(static_cast<std::byte>(static_cast<std::uint32_t>(value) >> (8 * byte)));
    }
}

std::int32_t integer_at(const Bytes& bytes, std::size_t lane) {
    std::uint32_t value = 0;
    for (std::size_t byte = 0; byte < 4; ++byte)
        value = value << 8U | std::to_integer<std::uint32_t>(bytes[4 * lane + byte]);
    return static_cast<std::int32_t>(value);
}

// The integers after a round trip as half-precision floats.
std::vector<std::int32_t> travelled(const std::vector<std::int32_t>& integers) {
    Bytes wire;
    for (const std::int32_t integer : integers) put(wire, integer);
    Bytes halves(integers.size() * 2);
    EXPECT_TRUE(lanes_to_halves(wire.data(), integers.size(), halves.data()));
    Bytes again(wire.size());
    EXPECT_TRUE(halves_to_lanes(halves.data(), integers.size(), again.data()));
    std::vector<std::int32_t> arrived;
    for (std::size_t lane = 0; lane < integers.size(); ++lane) arrived.push_back(integer_at(again, lane));
    return arrived;
}

TEST(HalfLanes, IntegersOfElevenBitsAreExact) {
    std::vector<std::int32_t> integers;
    for (std::int32_t integer = -2048; integer <= 2048; ++integer) integers.push_back(integer);
    integers.push_back(1 << 30);
    integers.push_back(-2047 * (1 << 19));
    EXPECT_EQ(travelled(integers), integers);
}

RC_GTEST_PROP(HalfLanes, OtherIntegersKeepElevenBits, (std::int32_t integer)) {
    RC_PRE(std::abs(static_cast<double>(integer)) < 65504.0 * 32768.0);
    const double arrived = travelled({integer}).front();
    RC_ASSERT(std::abs(arrived - integer) <= std::abs(static_cast<double>(integer)) / 2048.0 * 1.0001);
}

TEST(HalfLanes, IntegerBeyondTheLargestHalfIsRefused) {
    for (const std::int32_t integer :
         {std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
        Bytes wire;
        put(wire, integer);
        Bytes half(2);
        EXPECT_FALSE(lanes_to_halves(wire.data(), 1, half.data()));
    }
}

TEST(HalfLanes, InfinityOrNanInAnyLaneIsRefused) {
    for (const unsigned half : {0x7C00U, 0xFC00U, 0x7E00U, 0xFFFFU}) {
        for (const std::size_t at : {0U, 255U, 256U, 300U}) {
            Bytes halves(301 * 2);
            halves[2 * at] = static_cast<std::byte>(half >> 8U);
            halves[2 * at + 1] = static_cast<std::byte>(half & 0xFFU);
            Bytes wire(301 * 4);
            EXPECT_FALSE(halves_to_lanes(halves.data(), 301, wire.data())) << half << " at " << at;
        }
    }
}

}  // namespace
}  // namespace atp::switchml
