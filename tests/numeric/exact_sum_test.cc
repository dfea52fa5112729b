// SPDX-License-Identifier: Apache-2.0
// Compares numeric/exact_sum.h with integers that are wide enough for any sum of float32 values.
#include "numeric/exact_sum.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace atp::numeric {
namespace {

constexpr std::uint32_t plus_zero = 0x00000000;
constexpr std::uint32_t minus_zero = 0x80000000;
constexpr std::uint32_t plus_infinity = 0x7F800000;
constexpr std::uint32_t minus_infinity = 0xFF800000;
constexpr std::uint32_t nan_bits = 0x7FC00000;
constexpr std::uint32_t largest = 0x7F7FFFFF;
constexpr std::uint32_t least = 0x00000001;
constexpr std::uint32_t one = 0x3F800000;

constexpr std::uint32_t negated(std::uint32_t bits) { return bits ^ minus_zero; }

std::vector<std::byte> to_wire(const std::vector<std::uint32_t>& floats) {
    std::vector<std::byte> wire;
    for (const std::uint32_t bits : floats) {
        for (unsigned shift : {24U, 16U, 8U, 0U}) {
            wire.push_back(static_cast<std::byte>(bits >> shift));
        }
    }
    return wire;
}

std::uint32_t from_wire(const std::byte* wire) {
    std::uint32_t bits = 0;
    for (std::size_t at = 0; at < 4; ++at) {
        bits = bits << 8 | std::to_integer<std::uint32_t>(wire[at]);
    }
    return bits;
}

void add_to(ExactLane& lane, std::uint32_t bits) { exact_add(to_wire({bits}).data(), 1, &lane); }

std::uint32_t rounded(const ExactLane& lane) {
    std::byte wire[4];
    exact_round(&lane, 1, wire);
    return from_wire(wire);
}

std::uint32_t sum_of(const std::vector<std::uint32_t>& addends) {
    ExactLane lane{};
    for (const std::uint32_t bits : addends) {
        add_to(lane, bits);
    }
    return rounded(lane);
}

// Reference: an integer of 12 digits in base 2^32, in units of 2^-149. sign() propagates the carries.
class Wide {
  public:
    // Adds a float32 `times` times. `bits` is its bit pattern, not a NaN. Infinity counts as 2^128, as in rounding.
    void add(std::uint32_t bits, std::int64_t times) {
        const std::uint32_t exponent = bits >> 23 & 0xFF;
        const std::int64_t fraction = bits & 0x7FFFFF;
        const std::int64_t significand = exponent == 0 ? fraction : fraction | 0x800000;
        const std::uint32_t position = exponent == 0 ? 0 : exponent - 1;
        const std::int64_t shifted = significand << (position % 32);
        const std::int64_t factor = (bits & minus_zero) != 0 ? -times : times;
        digits_[position / 32] += factor * (shifted & 0xFFFFFFFF);
        digits_[position / 32 + 1] += factor * (shifted >> 32);
    }

    // Sign of the integer: -1, 0 or 1.
    int sign() {
        std::int64_t carry = 0;
        for (std::size_t at = 0; at + 1 < std::size(digits_); ++at) {
            const std::int64_t value = digits_[at] + carry;
            carry = value >> 32;
            digits_[at] = value & 0xFFFFFFFF;
        }
        digits_[std::size(digits_) - 1] += carry;
        const std::int64_t top = digits_[std::size(digits_) - 1];
        if (top != 0) {
            return top < 0 ? -1 : 1;
        }
        return std::any_of(std::begin(digits_), std::end(digits_), [](std::int64_t digit) { return digit != 0; }) ? 1
                                                                                                                  : 0;
    }

  private:
    std::int64_t digits_[12] = {};
};

// Compares the sum with the middle between the neighbours a and b: 1 if the sum is above the middle, 0 if equal, -1 if
// below. It compares twice the sum with a + b, so that no division rounds.
int side_of_middle(const std::vector<std::uint32_t>& addends, std::uint32_t a, std::uint32_t b) {
    Wide difference;
    for (const std::uint32_t bits : addends) {
        difference.add(bits, 2);
    }
    difference.add(a, -1);
    difference.add(b, -1);
    return difference.sign();
}

int sign_of_sum(const std::vector<std::uint32_t>& addends) {
    Wide sum;
    for (const std::uint32_t bits : addends) {
        sum.add(bits, 1);
    }
    return sum.sign();
}

// Checks whether `result` is the sum of finite addends, rounded to nearest, ties to even. By this definition, the exact
// sum lies between the middles from `result` to its two neighbours. The sum equals a middle only if `result` is even.
testing::AssertionResult is_nearest(std::uint32_t result, const std::vector<std::uint32_t>& addends) {
    const int sign = sign_of_sum(addends);
    if (sign == 0) {
        const bool all_minus_zero =
            !addends.empty() &&
            std::all_of(addends.begin(), addends.end(), [](std::uint32_t bits) { return bits == minus_zero; });
        const std::uint32_t expected = all_minus_zero ? minus_zero : plus_zero;
        return result == expected ? testing::AssertionSuccess() : testing::AssertionFailure() << "wrong sign of zero";
    }
    if ((sign < 0) != ((result & minus_zero) != 0)) {
        return testing::AssertionFailure() << "wrong sign";
    }
    const bool even = (result & 1) == 0;
    const bool infinite = (result & ~minus_zero) == plus_infinity;
    // Bit patterns with the same sign are ordered by magnitude.
    const int outward = infinite ? -sign : side_of_middle(addends, result, result + 1);
    if (outward == sign || (outward == 0 && !even)) {
        return testing::AssertionFailure() << std::hex << result << " is too small in magnitude";
    }
    const bool zero = (result & ~minus_zero) == 0;
    const int inward = zero ? sign : side_of_middle(addends, result, result - 1);
    if (inward == -sign || (inward == 0 && !even)) {
        return testing::AssertionFailure() << std::hex << result << " is too large in magnitude";
    }
    return testing::AssertionSuccess();
}

// Bits of a random finite float32 of any exponent. It can be subnormal.
std::uint32_t any_finite(std::mt19937_64& random) {
    const std::uint32_t exponent = static_cast<std::uint32_t>(random() % 255);
    return (static_cast<std::uint32_t>(random()) & 0x807FFFFF) | exponent << 23;
}

// ----------------------------------------------------------------------------------------------------- Special values

struct Case {
    const char* what;
    std::vector<std::uint32_t> addends;
    std::uint32_t sum;
};

TEST(ExactSum, EdgeValuesFollowIeee) {
    const Case cases[] = {
        {"nothing", {}, plus_zero},
        {"+0", {plus_zero}, plus_zero},
        {"-0", {minus_zero}, minus_zero},
        {"-0 alone, often", {minus_zero, minus_zero, minus_zero}, minus_zero},
        {"-0 and +0", {minus_zero, plus_zero}, plus_zero},
        {"x + -x", {one, negated(one)}, plus_zero},
        {"x + -x + -0", {one, negated(one), minus_zero}, plus_zero},
        {"-0 + x + -x", {minus_zero, largest, negated(largest)}, plus_zero},
        {"-0 beside a number", {minus_zero, negated(one)}, negated(one)},
        {"infinity", {plus_infinity, one}, plus_infinity},
        {"minus infinity", {negated(largest), minus_infinity, minus_zero}, minus_infinity},
        {"one infinity, twice", {plus_infinity, plus_infinity}, plus_infinity},
        {"infinity + minus infinity", {plus_infinity, minus_infinity}, nan_bits},
        {"NaN", {nan_bits}, nan_bits},
        {"a NaN with sign and payload", {0xFFFFFFFF, one}, nan_bits},
        {"a signalling NaN", {0x7F800001}, nan_bits},
        {"NaN wins over infinity", {plus_infinity, 0xFFC12345, one}, nan_bits},
        {"largest + least", {largest, least}, largest},
        {"largest + just under half its ulp", {largest, 0x72FFFFFF}, largest},
        {"largest + half its ulp", {largest, 0x73000000}, plus_infinity},
        {"largest + half its ulp - least", {largest, 0x73000000, negated(least)}, largest},
        {"overflow, negative", {negated(largest), negated(largest)}, minus_infinity},
        {"an intermediate overflow is no overflow", {largest, largest, negated(largest)}, largest},
        {"subnormals", {least, least, least}, 0x00000003},
        {"subnormals to the first normal", {0x007FFFFF, least}, 0x00800000},
        {"from the first normal to a subnormal", {0x00800000, negated(least)}, 0x007FFFFF},
        {"a tie to even, down", {0x4B800000, one}, 0x4B800000},
        {"a tie to even, up", {0x4B800001, one}, 0x4B800002},
        {"a tie broken far below", {0x4B800000, one, least}, 0x4B800001},
        {"a tie broken far below, downwards", {0x4B800001, one, negated(least)}, 0x4B800001},
        {"a carry into the next power of two", {0x4BFFFFFF, one}, 0x4C000000},
        {"all but the least cancels", {largest, least, negated(largest)}, least},
        {"negative, all but the least cancels", {negated(largest), negated(least), largest}, negated(least)},
    };
    for (const Case& c : cases) {
        std::vector<std::uint32_t> addends = c.addends;
        std::sort(addends.begin(), addends.end());
        do {
            EXPECT_EQ(sum_of(addends), c.sum) << c.what;
        } while (std::next_permutation(addends.begin(), addends.end()));
    }
}

TEST(ExactSum, SingleAddendIsUnchanged) {
    std::mt19937_64 random(7);
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
        for (const std::uint32_t fraction :
             {0U, 1U, 0x7FFFFFU, 0x400000U, static_cast<std::uint32_t>(random() >> 41)}) {
            for (const std::uint32_t sign : {plus_zero, minus_zero}) {
                const std::uint32_t bits = sign | exponent << 23 | fraction;
                ASSERT_EQ(sum_of({bits}), bits) << std::hex << bits;
            }
        }
    }
}

// -------------------------------------------------------------------------------------------------------------
// Rounding

TEST(ExactSum, SumOverTheFullRangeOfExponentsIsTheNearestFloat) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::uint32_t> addends(1 + random() % 12);
        for (std::uint32_t& bits : addends) {
            bits = any_finite(random);
        }
        ASSERT_TRUE(is_nearest(sum_of(addends), addends)) << "round " << round;
    }
}

// The addends have close exponents. Each one is added again with the other sign and changed low bits. This gives
// cancellation, ties and subnormal results, which random exponents rarely give.
TEST(ExactSum, SumAfterCancellationIsTheNearestFloat) {
    std::mt19937_64 random(13);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::uint32_t> addends;
        const std::uint32_t base = static_cast<std::uint32_t>(random() % 220);
        for (std::size_t pair = 1 + random() % 4; pair > 0; --pair) {
            const std::uint32_t exponent = base + static_cast<std::uint32_t>(random() % 34);
            const std::uint32_t bits = (static_cast<std::uint32_t>(random()) & 0x807FFFFF) | exponent << 23;
            addends.push_back(bits);
            addends.push_back(negated(bits ^ static_cast<std::uint32_t>(random() % 4)));
            if (random() % 2 == 0) {
                addends.push_back(exponent > 25 ? (exponent - 25) << 23 : least);
            }
        }
        ASSERT_TRUE(is_nearest(sum_of(addends), addends)) << "round " << round;
    }
}

// These sums have at most 53 bits, so double represents them exactly. The rounding of the processor is the reference.
TEST(ExactSum, SumMatchesDoubleWhereDoubleIsExact) {
    std::mt19937_64 random(17);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::uint32_t> addends;
        double exact = 0.0;
        const std::uint32_t base = static_cast<std::uint32_t>(random() % 230);
        for (int at = 0; at < 8; ++at) {
            const std::uint32_t exponent = base + static_cast<std::uint32_t>(random() % 24);
            addends.push_back((static_cast<std::uint32_t>(random()) & 0x807FFFFF) | exponent << 23);
            exact += static_cast<double>(std::bit_cast<float>(addends.back()));
        }
        ASSERT_EQ(sum_of(addends), std::bit_cast<std::uint32_t>(static_cast<float>(exact)));
    }
}

TEST(ExactSum, SumOf65536AddendsOfTheLargestMagnitudeIsExact) {
    for (const std::uint32_t sign : {plus_zero, minus_zero}) {
        ExactLane lane{};
        for (std::uint32_t at = 0; at < exact_addends_max; ++at) {
            add_to(lane, largest | sign);
        }
        EXPECT_EQ(rounded(lane), plus_infinity | sign);
        // No bit is lost: after all other addends are subtracted, exactly one addend remains.
        for (std::uint32_t at = 0; at + 1 < exact_addends_max; ++at) {
            add_to(lane, negated(largest | sign));
        }
        EXPECT_EQ(rounded(lane), largest | sign);
    }
}

// ----------------------------------------------------------------------------------------------------------------
// Lanes

TEST(ExactSum, LanesAreSummedSeparatelyFromUnalignedPackets) {
    std::mt19937_64 random(19);
    for (std::size_t count = 0; count <= 130; ++count) {
        std::vector<ExactLane> lanes(count + 1);
        std::vector<std::vector<std::uint32_t>> addends(count);
        for (int packet = 0; packet < 3; ++packet) {
            std::vector<std::uint32_t> floats;
            for (std::size_t at = 0; at < count; ++at) {
                floats.push_back(any_finite(random));
                addends[at].push_back(floats.back());
            }
            std::vector<std::byte> wire = to_wire(floats);
            wire.insert(wire.begin(), 1 + static_cast<std::size_t>(packet), std::byte{0});
            exact_add(wire.data() + 1 + packet, count, lanes.data());
        }
        std::vector<std::byte> out(count * 4 + 4, std::byte{0xA5});
        exact_round(lanes.data(), count, out.data() + 1);
        for (std::size_t at = 0; at < count; ++at) {
            ASSERT_EQ(from_wire(out.data() + 1 + 4 * at), sum_of(addends[at]));
        }
        EXPECT_EQ(out.front(), std::byte{0xA5});
        EXPECT_EQ(out.back(), std::byte{0xA5});
        EXPECT_EQ(rounded(lanes[count]), plus_zero) << "the lane after the last one is unchanged";
    }
}

// ----------------------------------------------------------------------------------------------------------------
// Order

TEST(ExactSum, AnyOrderGivesTheSameBits) {
    EXPECT_TRUE(rc::check("the rounded sum, and the accumulator itself, are the same in every order", [] {
        // Any 32 bits, including NaN, infinities, subnormals and both zeros. One addend of about 31 is a special value.
        const auto special = rc::gen::element(plus_zero, minus_zero, plus_infinity, minus_infinity, nan_bits, largest,
                                              negated(largest), least, negated(least));
        const auto addends = *rc::gen::container<std::vector<std::uint32_t>>(
            rc::gen::weightedOneOf<std::uint32_t>({{30, rc::gen::arbitrary<std::uint32_t>()}, {1, special}}));
        std::vector<std::uint32_t> shuffled = addends;
        std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        ExactLane a{};
        ExactLane b{};
        for (std::size_t at = 0; at < addends.size(); ++at) {
            add_to(a, addends[at]);
            add_to(b, shuffled[at]);
        }
        RC_ASSERT(rounded(a) == rounded(b));
        RC_ASSERT(std::memcmp(&a, &b, sizeof a) == 0);
    }));
}

TEST(ExactSum, SumOfFiniteFloatsIsTheNearestFloat) {
    EXPECT_TRUE(rc::check("sums of finite floats are correctly rounded", [] {
        const auto finite = rc::gen::map(rc::gen::arbitrary<std::uint32_t>(), [](std::uint32_t bits) {
            return (bits >> 23 & 0xFF) == 0xFF ? bits ^ 0x40000000 : bits;
        });
        const auto addends = *rc::gen::container<std::vector<std::uint32_t>>(finite);
        const auto verdict = is_nearest(sum_of(addends), addends);
        RC_LOG() << verdict.message();
        RC_ASSERT(static_cast<bool>(verdict));
    }));
}

}  // namespace
}  // namespace atp::numeric
