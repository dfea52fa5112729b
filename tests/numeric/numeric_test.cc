// SPDX-License-Identifier: Apache-2.0
// Compares numeric/lanes.h, with every instruction set of this processor, with plain arithmetic.
#include "numeric/lanes.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace atp::numeric {
namespace {

constexpr std::size_t lane_bytes = 4;
// Several of the widest vectors, and every remainder.
constexpr std::size_t longest = 130;
constexpr std::int32_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t int_min = std::numeric_limits<std::int32_t>::min();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float default_scale = 1e8F;

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// Lanes of a packet at a chosen misalignment, between guards that no call may change.
class Wire {
  public:
    explicit Wire(std::size_t count, std::size_t misalignment = 0)
        : count_(count), start_(guard_bytes + misalignment), bytes_(start_ + count * lane_bytes + guard_bytes, guard) {}

    Wire(const std::vector<std::int32_t>& lanes, std::size_t misalignment) : Wire(lanes.size(), misalignment) {
        for (std::size_t at = 0; at < count_; ++at) {
            set(at, static_cast<std::uint32_t>(lanes[at]));
        }
    }

    std::byte* data() { return bytes_.data() + start_; }

    void set(std::size_t at, std::uint32_t bits) {
        for (std::size_t byte = 0; byte < lane_bytes; ++byte) {
            data()[at * lane_bytes + byte] = static_cast<std::byte>(bits >> (24 - 8 * byte));
        }
    }

    std::uint32_t get(std::size_t at) {
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < lane_bytes; ++byte) {
            bits = bits << 8 | std::to_integer<std::uint32_t>(data()[at * lane_bytes + byte]);
        }
        return bits;
    }

    std::int32_t get_int(std::size_t at) { return static_cast<std::int32_t>(get(at)); }

    bool guards_intact() const {
        for (std::size_t at = 0; at < bytes_.size(); ++at) {
            const bool inside = at >= start_ && at < start_ + count_ * lane_bytes;
            if (!inside && bytes_[at] != guard) {
                return false;
            }
        }
        return true;
    }

  private:
    static constexpr std::size_t guard_bytes = 64;
    static constexpr std::byte guard{0xA5};

    std::size_t count_;
    std::size_t start_;
    std::vector<std::byte> bytes_;
};

// A buffer in host order with guard elements behind it.
template <typename T>
class Host {
  public:
    explicit Host(std::size_t count) : count_(count), values_(count + guards, guard()) {}
    explicit Host(const std::vector<T>& values) : Host(values.size()) {
        std::copy(values.begin(), values.end(), values_.begin());
    }

    T* data() { return values_.data(); }
    T& operator[](std::size_t at) { return values_[at]; }

    bool guards_intact() const {
        const T expected = guard();
        for (std::size_t at = count_; at < values_.size(); ++at) {
            // Bits, not values: NaN and -0 count.
            // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
            if (std::memcmp(&values_[at], &expected, sizeof expected) != 0) {
                return false;
            }
        }
        return true;
    }

  private:
    static constexpr std::size_t guards = 16;
    static T guard() { return static_cast<T>(-77); }

    std::size_t count_;
    std::vector<T> values_;
};

// ---------------------------------------------------------------------------------------------------- Expected results

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

struct Quantised {
    std::int32_t value;
    bool fits;
};

// Double represents the product of two float32 and its rounding to an integer exactly.
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

std::uint32_t reference_sum_to_float(std::int64_t sum, double inverse_scale) {
    static_assert(std::numeric_limits<long double>::digits >= 64);
    const double rounded = static_cast<double>(static_cast<long double>(sum));
    volatile double scaled = rounded * inverse_scale;
    return bits_of(static_cast<float>(scaled));
}

// ------------------------------------------------------------------------------------------------------ Random inputs

using Random = std::mt19937_64;

std::int32_t any_int(Random& random) {
    constexpr std::int32_t edges[] = {0, 1, -1, int_max, int_max - 1, int_min, int_min + 1, 1 << 30, -(1 << 30)};
    const std::uint64_t draw = random();
    return draw % 4 == 0 ? edges[draw / 4 % std::size(edges)] : static_cast<std::int32_t>(draw >> 32);
}

std::int64_t any_sum(Random& random) {
    const std::uint64_t draw = random();
    // Magnitudes of every size up to 2^62, the largest sum of 2^31 contributions.
    return static_cast<std::int64_t>(random()) >> (1 + draw % 63);
}

template <typename T, typename Draw>
std::vector<T> many(std::size_t count, Random& random, Draw draw) {
    std::vector<T> values(count);
    for (T& value : values) {
        value = draw(random);
    }
    return values;
}

std::vector<std::int32_t> any_ints(std::size_t count, Random& random) {
    return many<std::int32_t>(count, random, any_int);
}

// ------------------------------------------------------------------------------------------- One run per vector target

class Lanes : public testing::TestWithParam<std::int64_t> {
  protected:
    void SetUp() override {
        hwy::SetSupportedTargetsForTest(GetParam());
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        ASSERT_EQ(hwy::SupportedTargets(), GetParam());
    }
    void TearDown() override {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }

    // Every length, each at every misalignment of a lane.
    template <typename Check>
    void for_every_shape(Check check) {
        for (std::size_t count = 0; count <= longest; ++count) {
            for (std::size_t misalignment = 0; misalignment < lane_bytes; ++misalignment) {
                SCOPED_TRACE("lanes " + std::to_string(count) + ", misaligned by " + std::to_string(misalignment));
                check(count, misalignment);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }

    Random random_{2021};
};

INSTANTIATE_TEST_SUITE_P(Targets, Lanes, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<std::int64_t>& target) {
                             return std::string(hwy::TargetName(target.param));
                         });

// ------------------------------------------------------------------------------------------------------------- Worker

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

TEST_P(Lanes, QuantiseIsExactAtEveryBoundaryInEveryLane) {
    constexpr std::size_t count = 37;  // whole, half and quarter vectors of every width, and single lanes
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

TEST_P(Lanes, QuantiseMatchesTheReferenceForEveryShape) {
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        // Products up to 2^31, at every exponent.
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

TEST_P(Lanes, QuantiseRefusesExactlyWhatTheReferenceRefuses) {
    for (int round = 0; round < 20000; ++round) {
        // Around 2^31, where about every other product must be refused.
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

TEST_P(Lanes, DequantiseMatchesTheReferenceForEveryShape) {
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

TEST_P(Lanes, QuantiseThenDequantiseStaysWithinHalfAStep) {
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

TEST_P(Lanes, FloatsKeepTheirBitsOnTheWire) {
    const std::uint32_t edges[] = {0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F800000, 0xFF800000,
                                   0x7F800001, 0xFFBFFFFF, 0x7FC00000, 0xFFFFFFFF, 0x3F800000, 0x7F7FFFFF};
    for_every_shape([&](std::size_t count, std::size_t misalignment) {
        // Bits, not floats: loading a signalling NaN into a float register could already change it.
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
        floats_from_wire(wire.data(), count, back.data());
        ASSERT_EQ(std::memcmp(back.data(), bits.data(), count * sizeof(float)), 0);
        ASSERT_TRUE(back.guards_intact());
    });
}

// ------------------------------------------------------------------------------------------------------------- Switch

TEST_P(Lanes, StoreThenEmitGivesTheSamePacket) {
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

TEST_P(Lanes, AddMatchesTheReferenceForEveryShape) {
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
            ASSERT_EQ(wire.get_int(at), addends[at]) << "lanes_add only reads the packet";
        }
        ASSERT_TRUE(lanes.guards_intact() && lanes_of_emit.guards_intact() && emitted.guards_intact());
    });
}

TEST_P(Lanes, AddIsExactForEveryPairOfExtremes) {
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

TEST_P(Lanes, OverflowIsReportedFromEveryLane) {
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

// The flag alone shows that the lanes have no meaning: the lanes themselves return into range and look valid.
TEST_P(Lanes, SaturatedLaneReturnsIntoRangeAfterTheOppositeSign) {
    for (const std::int32_t sign : {1, -1}) {
        constexpr std::size_t count = 23;
        const std::int32_t big = sign * (1 << 30);
        Host<std::int32_t> lanes(count);
        Wire wire(std::vector<std::int32_t>(count, big), 0);
        lanes_store(wire.data(), count, lanes.data());
        ASSERT_EQ(lanes_add(wire.data(), count, lanes.data()), sign > 0) << "2^31 leaves int32, -2^31 does not";
        ASSERT_EQ(lanes_add(wire.data(), count, lanes.data()), true);
        ASSERT_EQ(lanes[count - 1], sign > 0 ? int_max : int_min);
        Wire opposite(std::vector<std::int32_t>(count, -big), 0);
        ASSERT_FALSE(lanes_add(opposite.data(), count, lanes.data()));
        ASSERT_EQ(lanes[0], (sign > 0 ? int_max : int_min) - big);
    }
}

// H21, docs/protocol.md#h21: the extreme values that a worker can send do not count as an overflow by themselves.
TEST_P(Lanes, ExtremesThatFitAreNoOverflow) {
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

// ------------------------------------------------------------------------------------------------------------- Server

TEST_P(Lanes, SumsMatchTheReferenceForEveryShape) {
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

// H23, docs/protocol.md#h23, at its limit: 2^31 contributions of the most extreme lane.
TEST_P(Lanes, SumsHoldTwoToTheThirtyOneContributions) {
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

TEST_P(Lanes, SumsConvertToFloatsLikeTheReference) {
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

TEST_P(Lanes, SumsConvertToIntegersModulo2To32ForEveryShape) {
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

// A sum that arrived whole in one packet is converted in one pass, to the same bits.
TEST_P(Lanes, LanesConvertToFloatsLikeASumOfOne) {
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

TEST_P(Lanes, SumsConvertToFloatsAtEveryBoundaryInEveryLane) {
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

// --------------------------------------------------------------------------------------------------------- Dispatch

TEST(LanesDispatch, BuildHasMoreThanOneTargetOnX86) {
#if defined(__x86_64__)
    EXPECT_GT(std::popcount(static_cast<std::uint64_t>(HWY_TARGETS)), 3)
        << "a portable binary must find AVX2 and AVX-512";
#else
    EXPECT_NE(HWY_TARGETS, 0);
#endif
}

}  // namespace
}  // namespace atp::numeric
