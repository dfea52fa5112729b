// SPDX-License-Identifier: Apache-2.0
// numeric/narrow_lanes.h at int8. narrow_lanes_test.cc has int16.
#include "numeric/narrow_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numeric/lanes32_worker.h"

namespace atp::numeric {
namespace {

using Bytes = std::vector<std::byte>;
using Sums = std::vector<std::int64_t>;

constexpr int highest_int8 = INT8_MAX;
constexpr int lowest_int8 = INT8_MIN;
// A number of lanes that fills the widest vectors and leaves a remainder.
constexpr std::size_t longest_int8 = 261;

int some_int8(std::size_t at) { return static_cast<std::int8_t>(at * 197U + 45U); }

Bytes wire_of(const std::vector<int>& lanes) {
    Bytes bytes;
    for (const int lane : lanes) bytes.push_back(static_cast<std::byte>(lane));
    return bytes;
}

int int8_in(const Bytes& bytes, std::size_t at) { return static_cast<std::int8_t>(bytes[at]); }

TEST(Int8Lanes, H53_EveryPairOfValuesSaturatesAloneAtEachPlaceOfAWord) {
    for (std::size_t place = 0; place < 4; ++place) {
        for (int a = lowest_int8; a <= highest_int8; ++a) {
            for (int b = lowest_int8; b <= highest_int8; ++b) {
                std::vector<int> addends{1, -1, 2, -2};
                std::vector<int> held{5, 6, 7, 8};
                addends[place] = a;
                held[place] = b;
                Bytes sums = wire_of(held);
                const int sum = a + b;
                ASSERT_EQ(int8_lanes().add(wire_of(addends).data(), 4, sums.data()),
                          sum > highest_int8 || sum < lowest_int8);
                for (std::size_t at = 0; at < 4; ++at) {
                    ASSERT_EQ(int8_in(sums, at), std::clamp(addends[at] + held[at], lowest_int8, highest_int8))
                        << a << " " << b;
                }
            }
        }
    }
}

TEST(Int8Lanes, QuantisationRoundsTiesToEvenAndRefusesValuesBeyond8Bits) {
    struct Case {
        float product;
        bool fits;
        int lane;
    };
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const auto& [product, fits, lane] :
         {Case{0.5F, true, 0}, Case{1.5F, true, 2}, Case{-2.5F, true, -2}, Case{-0.0F, true, 0},
          Case{127.4F, true, 127}, Case{-127.4F, true, -127}, Case{127.5F, false, 0}, Case{-127.5F, false, 0},
          Case{1e20F, false, 0}, Case{infinity, false, 0}, Case{-infinity, false, 0}, Case{std::nanf(""), false, 0}}) {
        for (const std::size_t place : {std::size_t{0}, longest_int8 / 2, longest_int8 - 1}) {
            std::vector<float> values(longest_int8, -1.25F);
            values[place] = product / 2;
            Bytes lanes(longest_int8);
            ASSERT_EQ(int8_lanes().quantise(values.data(), longest_int8, 2, lanes.data()), fits) << product;
            if (!fits) continue;
            for (std::size_t at = 0; at < longest_int8; ++at) {
                ASSERT_EQ(int8_in(lanes, at), at == place ? lane : -2) << product;
            }
        }
    }
}

TEST(Int8Lanes, FloatsAreTheLanesTimesTheInverseScale) {
    std::vector<int> lanes(longest_int8);
    for (std::size_t at = 0; at < longest_int8; ++at) lanes[at] = some_int8(at);
    std::vector<float> floats(longest_int8);
    Bytes wire(longest_int8 * 4);
    int8_lanes().to_floats(wire_of(lanes).data(), longest_int8, 1.0 / 3, wire.data());
    floats_from_wire(wire.data(), longest_int8, floats.data());
    for (std::size_t at = 0; at < longest_int8; ++at) {
        const auto expected = static_cast<float>(lanes[at] * (1.0 / 3));
        ASSERT_EQ(std::bit_cast<std::uint32_t>(floats[at]), std::bit_cast<std::uint32_t>(expected)) << lanes[at];
    }
}

TEST(Int8Lanes, EveryLaneIsAddedForEveryNumberOfLanes) {
    for (std::size_t count = 0; count <= longest_int8; ++count) {
        std::vector<int> addends(count), held(count);
        bool beyond = false;
        for (std::size_t at = 0; at < count; ++at) {
            addends[at] = some_int8(at);
            held[at] = some_int8(7 * at + 3) / 2;
            const int sum = addends[at] + held[at];
            beyond |= sum > highest_int8 || sum < lowest_int8;
        }
        Bytes sums = wire_of(held);
        EXPECT_EQ(int8_lanes().add(wire_of(addends).data(), count, sums.data()), beyond);
        for (std::size_t at = 0; at < count; ++at) {
            ASSERT_EQ(int8_in(sums, at), std::clamp(addends[at] + held[at], lowest_int8, highest_int8))
                << count << " " << at;
        }
    }
}

TEST(Int8Lanes, SumsOfAServerDoNotSaturate) {
    std::vector<int> lanes(longest_int8);
    for (std::size_t at = 0; at < longest_int8; ++at) lanes[at] = some_int8(at);
    const Bytes wire = wire_of(lanes);
    Sums sums(longest_int8, 99);
    int8_lanes().assign_sums(wire.data(), longest_int8, sums.data());
    for (int added = 0; added < 3; ++added) int8_lanes().add_sums(wire.data(), longest_int8, sums.data());
    for (std::size_t at = 0; at < longest_int8; ++at) ASSERT_EQ(sums[at], 4 * lanes[at]) << at;
}

TEST(Int8Lanes, SumsBeyond8BitsAreReportedAtEachLane) {
    for (const std::int64_t sum :
         {std::int64_t{highest_int8} + 1, std::int64_t{lowest_int8} - 1, std::int64_t{1} << 40}) {
        for (const std::size_t place : {std::size_t{0}, std::size_t{3}, longest_int8 - 1}) {
            Sums sums(longest_int8, -5);
            Bytes bytes(longest_int8);
            sums[0] = lowest_int8;
            sums[1] = highest_int8;
            EXPECT_TRUE(int8_lanes().from_sums(sums.data(), longest_int8, bytes.data()));
            EXPECT_EQ(int8_in(bytes, 0), lowest_int8);
            EXPECT_EQ(int8_in(bytes, 1), highest_int8);
            EXPECT_EQ(int8_in(bytes, longest_int8 - 1), -5);
            sums[place] = sum;
            EXPECT_FALSE(int8_lanes().from_sums(sums.data(), longest_int8, bytes.data())) << sum << " at " << place;
        }
    }
}

}  // namespace
}  // namespace atp::numeric
