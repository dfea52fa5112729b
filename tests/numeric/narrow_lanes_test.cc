// SPDX-License-Identifier: Apache-2.0
// numeric/narrow_lanes.h at int16. int8_lanes_test.cc has int8.
#include "numeric/narrow_lanes.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numeric/lanes32_sums.h"
#include "numeric/lanes32_worker.h"

namespace atp::numeric {
namespace {

using Bytes = std::vector<std::byte>;
using Shorts = std::vector<std::int16_t>;
using Sums = std::vector<std::int64_t>;

constexpr std::int16_t highest = std::numeric_limits<std::int16_t>::max();
constexpr std::int16_t lowest = std::numeric_limits<std::int16_t>::min();

Bytes wire_of(const Shorts& lanes) {
    Bytes bytes;
    for (const std::int16_t lane : lanes) {
        bytes.push_back(static_cast<std::byte>(lane >> 8));
        bytes.push_back(static_cast<std::byte>(lane));
    }
    return bytes;
}

Shorts shorts_in(const Bytes& bytes) {
    Shorts lanes;
    for (std::size_t at = 0; at < bytes.size(); at += 2) {
        const auto high = std::to_integer<unsigned>(bytes[at]);
        lanes.push_back(static_cast<std::int16_t>(high << 8U | std::to_integer<unsigned>(bytes[at + 1])));
    }
    return lanes;
}

// A number of lanes that fills the widest vectors and leaves a remainder.
constexpr std::size_t longest_shorts = 131;

std::int16_t some_short(std::size_t at) { return static_cast<std::int16_t>(at * 40503U + 12345U); }

TEST(Int16Lanes, LanesAreBigEndian) {
    const float value = 258;
    Bytes bytes(sizeof(std::int16_t));
    ASSERT_TRUE(int16_lanes().quantise(&value, 1, 1, bytes.data()));
    EXPECT_EQ(bytes, (Bytes{std::byte{1}, std::byte{2}}));
}

TEST(Int16Lanes, QuantisationRoundsTiesToEvenAndRefusesValuesBeyond16Bits) {
    struct Case {
        float product;
        bool fits;
        std::int16_t lane;
    };
    const float infinity = std::numeric_limits<float>::infinity();
    for (const Case& one : {Case{0.5F, true, 0}, Case{1.5F, true, 2}, Case{-2.5F, true, -2}, Case{-0.0F, true, 0},
                            Case{32767.0F, true, highest}, Case{32767.4F, true, highest}, Case{32767.5F, false, 0},
                            Case{-32767.4F, true, -highest}, Case{-32767.5F, false, 0}, Case{1e30F, false, 0},
                            Case{infinity, false, 0}, Case{std::numeric_limits<float>::quiet_NaN(), false, 0}}) {
        // The value is at the first lane of a vector, within a vector, and in the remainder.
        for (const std::size_t place : {std::size_t{0}, std::size_t{17}, longest_shorts - 1}) {
            std::vector<float> values(longest_shorts, 3.0F);
            values[place] = one.product / 4;
            Bytes bytes(longest_shorts * sizeof(std::int16_t));
            EXPECT_EQ(int16_lanes().quantise(values.data(), longest_shorts, 4, bytes.data()), one.fits) << one.product;
            if (one.fits) {
                EXPECT_EQ(shorts_in(bytes)[place], one.lane) << one.product;
            }
        }
    }
}

TEST(Int16Lanes, EveryLaneIsAddedForEveryNumberOfLanes) {
    for (std::size_t count = 0; count <= longest_shorts; ++count) {
        Shorts held(count);
        Shorts addends(count);
        Shorts expected(count);
        for (std::size_t at = 0; at < count; ++at) {
            held[at] = static_cast<std::int16_t>(some_short(at) / 2);
            addends[at] = static_cast<std::int16_t>(some_short(at + 1000) / 2);
            expected[at] = static_cast<std::int16_t>(held[at] + addends[at]);
        }
        Bytes sums = wire_of(held);
        EXPECT_FALSE(int16_lanes().add(wire_of(addends).data(), count, sums.data()));
        EXPECT_EQ(shorts_in(sums), expected);
    }
}

TEST(Int16Lanes, AdditionBeyond16BitsSaturatesAndReportsOverflow) {
    struct Case {
        std::int16_t held, addend, sum;
        bool left;
    };
    for (const Case& one :
         {Case{highest, 1, highest, true}, Case{lowest, -1, lowest, true}, Case{highest, 0, highest, false},
          Case{lowest, 0, lowest, false}, Case{lowest, highest, -1, false}, Case{highest, highest, highest, true}}) {
        for (const std::size_t place : {std::size_t{0}, std::size_t{40}, longest_shorts - 1}) {
            Shorts held(longest_shorts, 7);
            Shorts addends(longest_shorts, -7);
            held[place] = one.held;
            addends[place] = one.addend;
            Bytes sums = wire_of(held);
            EXPECT_EQ(int16_lanes().add(wire_of(addends).data(), longest_shorts, sums.data()), one.left);
            EXPECT_EQ(shorts_in(sums)[place], one.sum);
        }
    }
}

TEST(Int16Lanes, ServerSumsExceed16BitsWithoutOverflow) {
    const Bytes wire = wire_of(Shorts(longest_shorts, lowest));
    Sums sums(longest_shorts, 99);
    int16_lanes().assign_sums(wire.data(), longest_shorts, sums.data());
    for (int more = 0; more < 1000; ++more) int16_lanes().add_sums(wire.data(), longest_shorts, sums.data());
    EXPECT_EQ(sums, Sums(longest_shorts, 1001 * std::int64_t{lowest}));
}

TEST(Int16Lanes, SumsConvertToInt16OnlyIfAllFit) {
    for (const std::int64_t sum : {std::int64_t{highest}, std::int64_t{lowest}, std::int64_t{0}}) {
        Bytes wire(longest_shorts * sizeof(std::int16_t));
        EXPECT_TRUE(int16_lanes().from_sums(Sums(longest_shorts, sum).data(), longest_shorts, wire.data()));
        EXPECT_EQ(shorts_in(wire), Shorts(longest_shorts, static_cast<std::int16_t>(sum)));
    }
    for (const std::int64_t sum : {highest + std::int64_t{1}, lowest - std::int64_t{1}, std::int64_t{1} << 40}) {
        Sums sums(longest_shorts, 5);
        sums.back() = sum;
        Bytes wire(longest_shorts * sizeof(std::int16_t));
        EXPECT_FALSE(int16_lanes().from_sums(sums.data(), longest_shorts, wire.data())) << sum;
    }
}

TEST(Int16Lanes, LanesConvertToTheSameFloatsAsTheirSums) {
    Shorts lanes(longest_shorts);
    Sums sums(longest_shorts);
    for (std::size_t at = 0; at < longest_shorts; ++at) sums[at] = lanes[at] = some_short(at);
    for (const double inverse : {1.0, 0x1p-13, 1e-3, 0x1p100}) {
        Bytes expected(longest_shorts * 4);
        Bytes actual(longest_shorts * 4);
        sums_to_floats(sums.data(), longest_shorts, inverse, expected.data());
        int16_lanes().to_floats(wire_of(lanes).data(), longest_shorts, inverse, actual.data());
        EXPECT_EQ(actual, expected);
    }
}

TEST(LargestMagnitude, IsFoundAtEveryElementWithEitherSign) {
    EXPECT_EQ(largest_magnitude(nullptr, 0), 0.0F);
    for (std::size_t place = 0; place < longest_shorts; ++place) {
        std::vector<float> values(longest_shorts, -1.0F);
        values[place] = place % 2 == 0 ? 2.5F : -2.5F;
        EXPECT_EQ(largest_magnitude(values.data(), longest_shorts), 2.5F);
        values[place] = -std::numeric_limits<float>::infinity();
        EXPECT_EQ(largest_magnitude(values.data(), longest_shorts), std::numeric_limits<float>::infinity());
        values[place] = std::numeric_limits<float>::quiet_NaN();
        EXPECT_TRUE(std::isnan(largest_magnitude(values.data(), longest_shorts)));
    }
}

}  // namespace
}  // namespace atp::numeric
