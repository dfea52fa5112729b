// SPDX-License-Identifier: Apache-2.0
#include "tensor/chunks.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace atp::tensor {
namespace {

constexpr ChunkRules usual{.payload_lanes = 352, .channels = 4, .most_lanes = 65'536};

TEST(Chunks, ChunkIsFullPacketsAndWholeElementsAndFitsTheMemory) {
    for (const std::uint64_t payload : {62U, 352U, 2'200U}) {
        for (const std::uint32_t channels : {1U, 4U, 64U}) {
            for (const std::uint64_t lanes : {1U, 1'000U, 250'000U, 6'250'000U}) {
                const ChunkRules rules{.payload_lanes = payload, .channels = channels, .most_lanes = 65'536};
                const std::uint64_t chunk = lanes_of_chunk(rules, lanes, 0);
                EXPECT_EQ(chunk % (3 * payload), 0U);
                EXPECT_GT(chunk, 0U);
                EXPECT_LE(chunk, rules.most_lanes);
            }
        }
    }
}

TEST(Chunks, LongTensorHasTheLongestChunksAndAShortOneHasOne) {
    EXPECT_EQ(lanes_of_chunk(usual, 6'250'000, 0), 65'472U);
    EXPECT_EQ(lanes_of_chunk(usual, 1'000, 0), 8U * 3 * 352);
}

TEST(Chunks, EachChannelHasTwoChunksOfATensorThatIsLongEnough) {
    for (const std::uint64_t lanes : {100'000U, 250'000U, 500'000U}) {
        EXPECT_GE((lanes - 1) / lanes_of_chunk(usual, lanes, 0) + 1, 2 * usual.channels) << lanes;
    }
}

TEST(Chunks, PacketLongerThanTheMemoryOfAChunkIsCutAtAnElement) {
    EXPECT_EQ(lanes_of_chunk({.payload_lanes = 16'306, .channels = 1, .most_lanes = 1'024}, 50'000, 0), 1'023U);
}

TEST(Chunks, ChunkIsWholeSpansIfTheyHaveScalesOfTheirOwn) {
    for (const std::uint64_t lanes : {1U, 1'000U, 250'000U, 6'250'000U}) {
        const std::uint64_t chunk = lanes_of_chunk(usual, lanes, 5'632);
        EXPECT_EQ(chunk % 5'632, 0U);
        EXPECT_GE(chunk, 2 * 5'632U);
        EXPECT_LE(chunk, usual.most_lanes);
    }
}

}  // namespace
}  // namespace atp::tensor
