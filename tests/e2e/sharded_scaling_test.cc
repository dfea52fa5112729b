// SPDX-License-Identifier: Apache-2.0
// Dynamic scales of sums that only their owners get. No other rank can follow their magnitude.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sharded.h"

namespace atp::test {
namespace {

class ShardedScaling : public testing::TestWithParam<Placement> {};

float value_of(std::uint32_t rank, std::size_t at, float magnitude) {
    return magnitude * std::sin(static_cast<float>(at * 3 + rank));
}

// Sums of reduce-scatters of several magnitudes on four ranks: bits of the elements of rank 0, then of rank 1, ...
std::vector<std::uint32_t> sums_at(const std::vector<float>& magnitudes, const Placement& placement) {
    const Sizes sizes = {700, 5000, 0, 301};
    std::vector<std::vector<std::uint32_t>> of_rank(sizes.size());
    placement.run(4, dynamic_options(), [&](Communicator& communicator) {
        const std::uint32_t rank = communicator.rank();
        const std::size_t begin = first_of(sizes, rank);
        for (const float magnitude : magnitudes) {
            std::vector<float> input(6001);
            for (std::size_t at = 0; at < input.size(); ++at) input[at] = value_of(rank, at, magnitude);
            std::vector<float> part(sizes[rank]);
            if (!scatters(communicator, input, part, sizes)) return;
            for (std::size_t at = 0; at < part.size(); ++at) {
                double sum = 0;
                for (std::uint32_t other = 0; other < 4; ++other) {
                    sum += static_cast<double>(value_of(other, begin + at, magnitude));
                }
                EXPECT_NEAR(part[at], sum, 1e-6 * static_cast<double>(magnitude));
                of_rank[rank].push_back(std::bit_cast<std::uint32_t>(part[at]));
            }
        }
    });
    std::vector<std::uint32_t> all;
    for (const auto& bits : of_rank) all.insert(all.end(), bits.begin(), bits.end());
    return all;
}

TEST_P(ShardedScaling, DynamicScaleSuitsEveryMagnitudeAndEqualsThatOfEveryPlacement) {
    const std::vector<float> magnitudes = {1.0F, 1e4F, 1e-9F, 1e-25F, 6e8F, 0.0F, 2.0F, 3.0F};
    static const std::vector<std::uint32_t> expected = sums_at(magnitudes, placements().front());
    EXPECT_TRUE(sums_at(magnitudes, GetParam()) == expected);
}

// A scale has room for numbers of up to 64 times the largest one of the step before.
TEST_P(ShardedScaling, DynamicScaleFollowsTheStepBeforeWithoutFloats) {
    for (const float first : {1e4F, 1e-12F}) {
        const Placement watched{GetParam().name, [&](std::uint32_t world, const auto& options, const auto& body) {
                                    GetParam().run(world, options, [&](Communicator& communicator) {
                                        body(communicator);
                                        EXPECT_TRUE(succeeds(communicator.barrier()));
                                        for (const auto& channel : communicator.counters()) {
                                            EXPECT_EQ(channel.worker.float_fragments, 0U);
                                        }
                                    });
                                }};
        EXPECT_FALSE(sums_at({first, first * 60, first * 50}, watched).empty());
    }
}

TEST_P(ShardedScaling, DynamicScaleOfAReduceSuitsItsNumbers) {
    GetParam().run(3, dynamic_options(), [](Communicator& communicator) {
        for (const float number : {1e5F, 3e-10F}) {
            const std::vector<float> input(2000, number);
            std::vector<float> sums(2000);
            void* const out = communicator.rank() == 1 ? sums.data() : nullptr;
            if (!succeeds(
                    communicator.reduce({input.data(), out, input.size()}, ElementType::float32, Reduction::sum, 1)))
                return;
            if (communicator.rank() == 1) {
                EXPECT_NEAR(sums.back() / (3 * number), 1, 1e-6);
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Operations, ShardedScaling, testing::ValuesIn(placements()), name_of);

}  // namespace
}  // namespace atp::test
