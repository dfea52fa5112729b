// SPDX-License-Identifier: Apache-2.0
// Compares numeric/rank_sums.h, with every instruction set of this processor, with the arithmetic of workers and a
// server.
#include "numeric/rank_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "numeric/exact_sum.h"
#include "numeric/half.h"
#include "numeric/lanes32_sums.h"
#include "support/lanes.h"

namespace atp::numeric {
namespace {

constexpr double job_scale = 1e8;

std::vector<const std::byte*> starts(std::vector<Wire>& ranks) {
    std::vector<const std::byte*> found;
    for (Wire& rank : ranks) found.push_back(rank.data());
    return found;
}

// Of one element; nullopt: some rank has no integer.
std::optional<std::int64_t> sum_of_integers(std::vector<Wire>& ranks, std::size_t at) {
    std::int64_t sum = 0;
    for (Wire& rank : ranks) {
        const float product = as_float(rank.get(at)) * static_cast<float>(job_scale);
        if (!(std::fabs(product) < 0x1p31F)) return std::nullopt;
        sum += std::llrint(product);
    }
    return sum;
}

// One element, by the definition in docs/spec/numbers.md#result.
std::uint32_t reference(std::vector<Wire>& ranks, std::size_t at) {
    if (const auto sum = sum_of_integers(ranks, at)) {
        return bits_of(static_cast<float>(static_cast<double>(*sum) * (1 / job_scale)));
    }
    ExactLane exact{};
    for (Wire& rank : ranks) exact_add(rank.data() + at * lane_bytes, 1, &exact);
    Wire rounded(1);
    exact_round(&exact, 1, rounded.data());
    return rounded.get(0);
}

// The integer that a worker sends for these ranks, or INT32_MIN.
std::uint32_t reference_integer(std::vector<Wire>& ranks, std::size_t at) {
    const auto sum = sum_of_integers(ranks, at);
    const bool fits = sum && std::abs(*sum) <= INT32_MAX;
    return static_cast<std::uint32_t>(fits ? static_cast<std::int32_t>(*sum) : INT32_MIN);
}

class RankSums : public LanesOfTarget {
  protected:
    // Numbers of ranks that need one block and several, vectors and tails.
    template <class Draw>
    void compare(const Draw& draw) {
        for (const std::size_t world : {1U, 2U, 3U, 8U, 65U}) {
            for (const std::size_t count : {1U, 3U, 16U, 37U, 255U, 256U, 300U, 1000U}) {
                std::vector<Wire> ranks(world, Wire(count, count % 5));
                for (Wire& rank : ranks) {
                    for (std::size_t at = 0; at < count; ++at) rank.set(at, bits_of(draw()));
                }
                Wire sums(count, 1);
                const float largest = sum_float_ranks(starts(ranks), count, job_scale, sums.data());
                ASSERT_TRUE(sums.guards_intact());
                std::uint32_t magnitude = 0;  // the bits of magnitudes are in their order, NaN the largest
                for (std::size_t at = 0; at < count; ++at) {
                    ASSERT_EQ(sums.get(at), reference(ranks, at)) << at;
                    magnitude = std::max(magnitude, sums.get(at) & 0x7FFFFFFFU);
                }
                ASSERT_EQ(bits_of(largest), magnitude);
                scale_and_sum_ranks(starts(ranks), count, job_scale, sums.data());
                ASSERT_TRUE(sums.guards_intact());
                for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(sums.get(at), reference_integer(ranks, at)) << at;
            }
        }
    }

    float small() { return static_cast<float>(static_cast<std::int32_t>(random_())) * 0x1p-33F; }
};
INSTANTIATE_TEST_SUITE_P(Targets, RankSums, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), name_of_target);

TEST_P(RankSums, SmallFloatsAreSumsOfIntegers) {
    compare([&] { return small(); });
}

// docs/spec/hazards.md#h47: the sum of a host's ranks leaves 32 bits, in whatever order they are added.
TEST_P(RankSums, H47_SumsBeyond32BitsAreExact) {
    compare([&] { return small() * 80; });
}

// docs/spec/hazards.md#h48: floats of ranks that share a host are added like those of ranks that do not.
TEST_P(RankSums, H48_FloatsWithoutAnIntegerLeaveTheirNeighbours) {
    compare([&] {
        switch (random_() % 200) {
            case 0: return infinity;
            case 1: return -infinity;
            case 2: return quiet_nan;
            case 3: return 1e30F;
            case 4: return -3e38F;
            case 5: return -0.0F;
            case 6: return 21.4748364F;
            default: return small();
        }
    });
}

TEST_P(RankSums, WideIntegersWrapAround) {
    for (const std::size_t count : {1U, 3U, 511U, 512U, 1300U}) {
        std::vector<std::vector<std::uint64_t>> ranks(3, std::vector<std::uint64_t>(count));
        std::vector<std::uint64_t> expected(count);
        std::vector<const std::byte*> places;
        for (auto& rank : ranks) {
            for (std::size_t at = 0; at < count; ++at) expected[at] += rank[at] = random_();
            places.push_back(reinterpret_cast<const std::byte*>(rank.data()));
        }
        std::vector<std::uint64_t> sums(count);
        sum_native_ranks({.type = ElementType::int64}, places, count, reinterpret_cast<std::byte*>(sums.data()));
        ASSERT_EQ(sums, expected);
    }
}

// Elements without lanes have the sums of the same elements in lanes.
class NativeSums : public RankSums {
  protected:
    template <class Element, class Narrow, class Widen>
    void compare(ElementType type, double factor, const Narrow& narrow, const Widen& widen) {
        for (const std::size_t world : {1U, 2U, 5U}) {
            for (const std::size_t count : {1U, 3U, 16U, 37U, 256U, 1000U}) {
                std::vector<std::vector<Element>> ranks(world, std::vector<Element>(count));
                std::vector<Wire> lanes(world, Wire(count, 0));
                std::vector<const std::byte*> places;
                for (std::size_t rank = 0; rank < world; ++rank) {
                    for (std::size_t at = 0; at < count; ++at) {
                        narrow(draw(), ranks[rank][at]);
                        lanes[rank].set(at, bits_of(widen(ranks[rank][at])));
                    }
                    places.push_back(reinterpret_cast<const std::byte*>(ranks[rank].data()));
                }
                Wire sums(count, 0);
                const float largest = sum_float_ranks(starts(lanes), count, job_scale, sums.data());
                std::vector<Element> natives(count);
                const NativeSum sum{.type = type, .scale = job_scale, .factor = factor};
                const float found = sum_native_ranks(sum, places, count, reinterpret_cast<std::byte*>(natives.data()));
                ASSERT_EQ(bits_of(found), bits_of(largest)) << "before the factor";
                for (std::size_t at = 0; at < count; ++at) {
                    Element expected;
                    narrow(static_cast<float>(double{as_float(sums.get(at))} * factor), expected);
                    if constexpr (std::is_same_v<Element, float>) {
                        ASSERT_EQ(bits_of(natives[at]), bits_of(expected)) << world << " ranks, " << at;
                    } else {
                        ASSERT_EQ(natives[at], expected) << world << " ranks, " << at;
                    }
                }
            }
        }
    }

  private:
    // One in 200 has no integer; some are subnormal.
    float draw() {
        switch (random_() % 1000) {
            case 0: return infinity;
            case 1: return -infinity;
            case 2: return quiet_nan;
            case 3: return 30000.0F;
            case 4: return -0.0F;
            case 5: return 1e-7F;
            case 6: return -6e-5F;
            default: return small();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Targets, NativeSums, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), name_of_target);

TEST_P(NativeSums, EqualThoseOfLanes) {
    const auto same = [](float value, float& element) { element = value; };
    const auto half = [](float value, std::uint16_t& element) { floats_to_halves(&value, 1, &element); };
    const auto bfloat = [](float value, std::uint16_t& element) { floats_to_bfloats(&value, 1, &element); };
    const auto of_half = [](std::uint16_t element) {
        float value = 0;
        halves_to_floats(&element, 1, &value);
        return value;
    };
    const auto of_bfloat = [](std::uint16_t element) {
        float value = 0;
        bfloats_to_floats(&element, 1, &value);
        return value;
    };
    for (const double factor : {1.0, 1.0 / 3}) {
        compare<float>(ElementType::float32, factor, same, [](float value) { return value; });
        compare<std::uint16_t>(ElementType::float16, factor, half, of_half);
        compare<std::uint16_t>(ElementType::bfloat16, factor, bfloat, of_bfloat);
    }
}

// Every half, so that each case of its conversion is met.
TEST_P(NativeSums, EveryHalfOfOneRankIsItsOwnSum) {
    constexpr std::size_t all = 65536;
    std::vector<std::uint16_t> halves(all);
    std::vector<float> floats(all);
    for (std::size_t at = 0; at < all; ++at) halves[at] = static_cast<std::uint16_t>(at);
    halves_to_floats(halves.data(), all, floats.data());
    const std::byte* const places[] = {reinterpret_cast<const std::byte*>(halves.data())};
    std::vector<std::uint16_t> sums(all);
    // Each half but NaN and infinity is a multiple of 2^-24, and the largest has 40 bits of them.
    sum_native_ranks({.type = ElementType::float16, .scale = 0x1p24}, places, all,
                     reinterpret_cast<std::byte*>(sums.data()));
    for (std::size_t at = 0; at < all; ++at) {
        const std::uint16_t expected = floats[at] == 0 ? 0 : halves[at];
        if (!std::isnan(floats[at])) {
            ASSERT_EQ(sums[at], expected);
        }
    }
}

TEST_P(RankSums, IntegersWrapAround) {
    for (const std::size_t world : {1U, 2U, 5U}) {
        for_every_shape([&](std::size_t count, std::size_t misalignment) {
            std::vector<Wire> ranks;
            std::vector<std::uint32_t> expected(count);
            for (std::size_t rank = 0; rank < world; ++rank) {
                const auto lanes = any_ints(count, random_);
                for (std::size_t at = 0; at < count; ++at) expected[at] += static_cast<std::uint32_t>(lanes[at]);
                ranks.emplace_back(lanes, misalignment);
            }
            Wire sums(count, misalignment);
            sum_integer_ranks(starts(ranks), count, sums.data());
            ASSERT_TRUE(sums.guards_intact());
            for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(sums.get(at), expected[at]);
        });
    }
}

}  // namespace
}  // namespace atp::numeric
