// SPDX-License-Identifier: Apache-2.0
#include "numeric/exact_sum.h"

#include <bit>

#include "numeric/lane.h"

namespace atp::numeric {
namespace {

// float32: 1 sign bit, 8 bits of exponent, 23 of fraction.
constexpr unsigned fraction_bits = 23;
constexpr unsigned significand_bits = fraction_bits + 1;
constexpr std::uint32_t fraction_mask = (1U << fraction_bits) - 1;
constexpr std::uint32_t sign_mask = 1U << 31;
constexpr std::uint32_t exponent_special = 0xFF;
constexpr std::uint32_t infinity_bits = exponent_special << fraction_bits;
constexpr std::uint32_t quiet_nan_bits = infinity_bits | (1U << (fraction_bits - 1));

constexpr unsigned word_bits = 64;
// A finite float32 is below 2^128, which is bit 128 + 149 of the sum. 65,536 addends need 16 more bits, and the sign
// needs one more.
static_assert(128 + 149 + 16 + 1 <= ExactLane::words * word_bits);
static_assert(exact_addends_max <= 1U << 16);

// Kinds of addends that a lane received. A lane with seen_minus_zero alone received only -0.
enum : std::uint64_t {
    seen_nan = 1,
    seen_plus_infinity = 2,
    seen_minus_infinity = 4,
    seen_minus_zero = 8,
    seen_other = 16,
};

// Adds `low` and `high` to the words `at` and `at` + 1, and propagates the carry. A negative addend is in two's
// complement; `extension` is then all ones, for the higher words.
void add_words(std::uint64_t (&sum)[ExactLane::words], unsigned at, std::uint64_t low, std::uint64_t high,
               std::uint64_t extension) {
    bool carry = __builtin_add_overflow(sum[at], low, &sum[at]);
    for (unsigned word = at + 1; word < ExactLane::words; ++word) {
        const std::uint64_t addend = word == at + 1 ? high : extension;
        std::uint64_t partial;
        const bool first = __builtin_add_overflow(sum[word], addend, &partial);
        const bool second = __builtin_add_overflow(partial, static_cast<std::uint64_t>(carry), &sum[word]);
        carry = first || second;
        // The remaining words do not change: they would add zeros without a carry, or ones with a carry.
        if (carry == (extension != 0)) {
            return;
        }
    }
}

void add_finite(std::uint64_t (&sum)[ExactLane::words], std::uint32_t bits) {
    const std::uint32_t exponent = (bits & ~sign_mask) >> fraction_bits;
    // A subnormal has exponent 0 and no hidden bit, but the scale of exponent 1.
    const std::uint64_t significand = (bits & fraction_mask) | (exponent == 0 ? 0U : 1U << fraction_bits);
    const unsigned position = exponent == 0 ? 0 : exponent - 1;
    const unsigned shift = position % word_bits;
    const std::uint64_t low = significand << shift;
    const std::uint64_t high = shift == 0 ? 0 : significand >> (word_bits - shift);
    if ((bits & sign_mask) == 0) {
        add_words(sum, position / word_bits, low, high, 0);
    } else if (significand != 0) {
        add_words(sum, position / word_bits, ~low + 1, ~high + (low == 0), ~std::uint64_t{0});
    }
}

void add_lane(ExactLane& lane, std::uint32_t bits) {
    const std::uint32_t magnitude = bits & ~sign_mask;
    if (magnitude > infinity_bits) {
        lane.seen |= seen_nan;
    } else if (magnitude == infinity_bits) {
        lane.seen |= bits == infinity_bits ? seen_plus_infinity : seen_minus_infinity;
    } else if (bits == sign_mask) {
        lane.seen |= seen_minus_zero;
    } else {
        lane.seen |= seen_other;
        add_finite(lane.sum, bits);
    }
}

struct Magnitude {
    std::uint64_t words[ExactLane::words];
    bool negative;
};

Magnitude magnitude_of(const ExactLane& lane) {
    Magnitude magnitude{};
    magnitude.negative = (lane.sum[ExactLane::words - 1] >> (word_bits - 1)) != 0;
    std::uint64_t carry = magnitude.negative ? 1 : 0;
    for (std::size_t word = 0; word < ExactLane::words; ++word) {
        const std::uint64_t flipped = magnitude.negative ? ~lane.sum[word] : lane.sum[word];
        magnitude.words[word] = flipped + carry;
        carry = carry != 0 && magnitude.words[word] == 0 ? 1 : 0;
    }
    return magnitude;
}

// Number of bits up to the highest set bit.
unsigned width_of(const Magnitude& magnitude) {
    for (unsigned word = ExactLane::words; word-- > 0;) {
        if (magnitude.words[word] != 0) {
            return word * word_bits + static_cast<unsigned>(std::bit_width(magnitude.words[word]));
        }
    }
    return 0;
}

// `significand_bits` bits from `position` on.
std::uint32_t bits_at(const Magnitude& magnitude, unsigned position) {
    const unsigned word = position / word_bits;
    const unsigned shift = position % word_bits;
    std::uint64_t bits = magnitude.words[word] >> shift;
    if (shift + significand_bits > word_bits && word + 1 < ExactLane::words) {
        bits |= magnitude.words[word + 1] << (word_bits - shift);
    }
    return static_cast<std::uint32_t>(bits & ((std::uint64_t{1} << significand_bits) - 1));
}

bool any_below(const Magnitude& magnitude, unsigned position) {
    const unsigned word = position / word_bits;
    for (unsigned below = 0; below < word; ++below) {
        if (magnitude.words[below] != 0) {
            return true;
        }
    }
    const std::uint64_t mask = (std::uint64_t{1} << (position % word_bits)) - 1;
    return (magnitude.words[word] & mask) != 0;
}

// Bits of the float32 nearest to the magnitude, without sign.
std::uint32_t round_magnitude(const Magnitude& magnitude) {
    const unsigned width = width_of(magnitude);
    if (width <= significand_bits) {
        // Exact. If the sum fills the significand, its highest bit reads as exponent 1, as required.
        return static_cast<std::uint32_t>(magnitude.words[0]);
    }
    const unsigned position = width - significand_bits;
    const std::uint32_t significand = bits_at(magnitude, position);
    const bool half = (magnitude.words[(position - 1) / word_bits] >> ((position - 1) % word_bits) & 1) != 0;
    const bool up = half && ((significand & 1) != 0 || any_below(magnitude, position - 1));
    // The exponent is position + 1: the hidden bit of the significand adds the 1. Rounding up to the next power of two
    // carries into the exponent, and from the largest finite number into infinity.
    const std::uint64_t rounded = (std::uint64_t{position} << fraction_bits) + significand + (up ? 1 : 0);
    return rounded >= infinity_bits ? infinity_bits : static_cast<std::uint32_t>(rounded);
}

std::uint32_t round_lane(const ExactLane& lane) {
    const std::uint64_t infinities = lane.seen & (seen_plus_infinity | seen_minus_infinity);
    if ((lane.seen & seen_nan) != 0 || infinities == (seen_plus_infinity | seen_minus_infinity)) {
        return quiet_nan_bits;
    }
    if (infinities != 0) {
        return infinities == seen_plus_infinity ? infinity_bits : sign_mask | infinity_bits;
    }
    if (lane.seen == seen_minus_zero) {
        return sign_mask;
    }
    const Magnitude magnitude = magnitude_of(lane);
    return round_magnitude(magnitude) | (magnitude.negative ? sign_mask : 0);
}

}  // namespace

void exact_add(const std::byte* wire_floats, std::size_t count, ExactLane* lanes) {
    for (std::size_t at = 0; at < count; ++at) {
        add_lane(lanes[at], lane::load(wire_floats + 4 * at));
    }
}

void exact_round(const ExactLane* lanes, std::size_t count, std::byte* wire) {
    for (std::size_t at = 0; at < count; ++at) {
        lane::store(round_lane(lanes[at]), wire + 4 * at);
    }
}

}  // namespace atp::numeric
