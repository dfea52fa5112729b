// SPDX-License-Identifier: Apache-2.0
// Compares numeric/lanes32_switch.h, with every instruction set of this processor, with plain arithmetic.
#include "numeric/lanes32_switch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/lanes.h"

namespace atp::numeric {
namespace {

struct Sum {
    std::int32_t value;
    bool overflow;
};

Sum reference_add(std::int32_t a, std::int32_t b) {
    const std::int64_t exact = std::int64_t{a} + b;
    if (exact > int_max) {
        return {int_max, true};
    }
    if (exact < int_min) {
        return {int_min, true};
    }
    return {static_cast<std::int32_t>(exact), false};
}

class Lanes32Switch : public LanesOfTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, Lanes32Switch, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         name_of_target);

TEST_P(Lanes32Switch, StoreThenEmitGivesTheSamePacket) {
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        const auto expected = any_ints(count, random_);
        Wire in(expected, misalignment);
        Host<std::int32_t> lanes(count);
        lanes_store(in.data(), count, lanes.data());
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), lanes.data()));
        ASSERT_TRUE(lanes.guards_intact());
        Wire out(count, lane_bytes - misalignment);
        lanes_emit(lanes.data(), count, out.data());
        ASSERT_EQ(std::memcmp(in.data(), out.data(), count * lane_bytes), 0);
        ASSERT_TRUE(out.guards_intact());
    });
}

TEST_P(Lanes32Switch, AddMatchesTheReferenceForEveryShape) {
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        const auto addends = any_ints(count, random_);
        const auto start = any_ints(count, random_);
        bool overflow = false;
        for (std::size_t at = 0; at < count; ++at) {
            overflow |= reference_add(start[at], addends[at]).overflow;
        }
        Wire wire(addends, misalignment);
        Wire emitted(addends, misalignment);
        Host<std::int32_t> lanes(start);
        Host<std::int32_t> lanes_of_emit(start);
        ASSERT_EQ(lanes_add(wire.data(), count, lanes.data()), overflow);
        ASSERT_EQ(lanes_add_emit(emitted.data(), count, lanes_of_emit.data()), overflow);
        for (std::size_t at = 0; at < count; ++at) {
            const std::int32_t expected = reference_add(start[at], addends[at]).value;
            ASSERT_EQ(lanes[at], expected) << start[at] << " + " << addends[at];
            ASSERT_EQ(lanes_of_emit[at], expected);
            ASSERT_EQ(emitted.get_int(at), expected);
            ASSERT_EQ(wire.get_int(at), addends[at]) << "lanes_add() leaves the packet unchanged";
        }
        ASSERT_TRUE(lanes.guards_intact() && lanes_of_emit.guards_intact() && emitted.guards_intact());
    });
}

TEST_P(Lanes32Switch, AddIsExactForEveryPairOfExtremes) {
    const std::int32_t extremes[] = {0,
                                     1,
                                     -1,
                                     2,
                                     -2,
                                     int_max,
                                     int_max - 1,
                                     int_max - 2,
                                     int_min,
                                     int_min + 1,
                                     int_min + 2,
                                     1 << 30,
                                     (1 << 30) - 1,
                                     -(1 << 30),
                                     -(1 << 30) - 1};
    for (const std::int32_t a : extremes) {
        for (const std::int32_t b : extremes) {
            for (const std::size_t count : {std::size_t{1}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
                Wire wire(std::vector<std::int32_t>(count, b), 1);
                Host<std::int32_t> lanes(std::vector<std::int32_t>(count, a));
                const Sum expected = reference_add(a, b);
                ASSERT_EQ(lanes_add(wire.data(), count, lanes.data()), expected.overflow) << a << " + " << b;
                ASSERT_EQ(lanes[count - 1], expected.value) << a << " + " << b;
            }
        }
    }
}

TEST_P(Lanes32Switch, OverflowIsReportedFromEveryLane) {
    for (std::size_t count = 1; count <= longest; ++count) {
        for (std::size_t position = 0; position < count; ++position) {
            const bool up = (count + position) % 2 == 0;
            std::vector<std::int32_t> addends(count, 3);
            addends[position] = up ? 1 : -1;
            Wire wire(addends, 2);
            Wire emitted(addends, 3);
            Host<std::int32_t> lanes(std::vector<std::int32_t>(count, 4));
            lanes[position] = up ? int_max : int_min;
            Host<std::int32_t> lanes_of_emit = lanes;
            ASSERT_TRUE(lanes_add(wire.data(), count, lanes.data())) << position << " of " << count;
            ASSERT_TRUE(lanes_add_emit(emitted.data(), count, lanes_of_emit.data())) << position << " of " << count;
            for (std::size_t at = 0; at < count; ++at) {
                const std::int32_t expected = at != position ? 7 : up ? int_max : int_min;
                ASSERT_EQ(lanes[at], expected);
                ASSERT_EQ(emitted.get_int(at), expected);
            }
        }
    }
}

// Only the overflow flag shows that the lanes have no meaning. After an addend of the opposite sign, the lanes are in
// range again and look valid.
TEST_P(Lanes32Switch, SaturatedLaneReturnsIntoRangeAfterTheOppositeSign) {
    for (const std::int32_t sign : {1, -1}) {
        constexpr std::size_t count = 23;
        const std::int32_t big = sign * (1 << 30);
        Host<std::int32_t> lanes(count);
        Wire wire(std::vector<std::int32_t>(count, big), 0);
        lanes_store(wire.data(), count, lanes.data());
        ASSERT_EQ(lanes_add(wire.data(), count, lanes.data()), sign > 0) << "2^31 exceeds int32, -2^31 fits";
        ASSERT_EQ(lanes_add(wire.data(), count, lanes.data()), true);
        ASSERT_EQ(lanes[count - 1], sign > 0 ? int_max : int_min);
        Wire opposite(std::vector<std::int32_t>(count, -big), 0);
        ASSERT_FALSE(lanes_add(opposite.data(), count, lanes.data()));
        ASSERT_EQ(lanes[0], (sign > 0 ? int_max : int_min) - big);
    }
}

// H21, docs/spec/hazards.md#h21: an extreme value of a single worker is no overflow.
TEST_P(Lanes32Switch, ExtremesThatFitAreNoOverflow) {
    constexpr std::size_t count = 19;
    for (const std::int32_t extreme : {int_max, int_min, int_min + 1}) {
        Wire wire(std::vector<std::int32_t>(count, extreme), 1);
        Wire nothing(std::vector<std::int32_t>(count, 0), 1);
        Host<std::int32_t> lanes(count);
        lanes_store(wire.data(), count, lanes.data());
        ASSERT_FALSE(lanes_add(nothing.data(), count, lanes.data()));
        ASSERT_EQ(lanes[count / 2], extreme);
        lanes_store(nothing.data(), count, lanes.data());
        ASSERT_FALSE(lanes_add_emit(wire.data(), count, lanes.data()));
        ASSERT_EQ(wire.get_int(count - 1), extreme);
    }
}

}  // namespace
}  // namespace atp::numeric
