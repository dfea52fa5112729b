// SPDX-License-Identifier: Apache-2.0
// Compares numeric/rank_sums.h, with every instruction set of this processor, with the arithmetic of workers and a
// server.
#include "numeric/rank_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "numeric/exact_sum.h"
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

// One element, by the definition in docs/protocol.md#result.
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
                sum_float_ranks(starts(ranks), count, job_scale, sums.data());
                ASSERT_TRUE(sums.guards_intact());
                for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(sums.get(at), reference(ranks, at)) << at;
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

// docs/protocol.md#h47: the sum of a host's ranks leaves 32 bits, in whatever order they are added.
TEST_P(RankSums, H47_SumsBeyond32BitsAreExact) {
    compare([&] { return small() * 80; });
}

// docs/protocol.md#h48: floats of ranks that share a host are added like those of ranks that do not.
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
        sum_wide_ranks(places, count, reinterpret_cast<std::byte*>(sums.data()));
        ASSERT_EQ(sums, expected);
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
