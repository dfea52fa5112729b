// SPDX-License-Identifier: Apache-2.0
#include "tensor/host_part.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "numeric/lanes32_worker.h"
#include "tensor/tensors.h"

namespace atp::tensor {
namespace {

using numeric::ElementType;

constexpr std::size_t room = 64;  // lanes of a place

// Takes down how an operation is cut.
struct Group {
    std::uint64_t submit(std::uint64_t /*purpose*/, std::uint64_t number, std::uint32_t each, std::uint32_t last) {
        chunks = number;
        ranges = each;
        last_ranges = last;
        return first;
    }
    std::uint64_t first = 3;
    std::uint64_t chunks = 0;
    std::uint32_t ranges = 0;
    std::uint32_t last_ranges = 0;
};

// Two ranks of a host. Their places are used for one chunk after the other.
class Host {
  public:
    explicit Host(std::optional<ChunkRules> network, const std::vector<std::uint16_t>& numbers = {0, 1}) {
        for (unsigned rank = 0; rank < 2; ++rank) {
            rules[rank] = {.ranks = numbers,
                           .rank = rank,
                           .chunk_lanes = room,
                           .range_bytes = 32,
                           .scale = 100,
                           .network = network};
            places.ranks.push_back(lanes_[rank].data());
            places.votes.emplace_back();
        }
        places.sums = lanes_[2].data();
    }

    // Chunk by chunk, with these sums from the network if they are not empty.
    void sum(std::array<HostPart, 2>& parts, const std::vector<float>& results = {}) {
        Group group;
        for (HostPart& part : parts) part.submit(group);
        std::size_t at = 0;
        for (std::uint64_t chunk = group.first; chunk < parts[0].end_chunk(); ++chunk) {
            for (const HostPart& part : parts) part.load(chunk, places);
            const bool is_last = chunk + 1 == parts[0].end_chunk();
            for (std::uint32_t range = 0; range < (is_last ? group.last_ranges : group.ranges); ++range) {
                parts[range % 2].add(chunk, range, places);
            }
            if (!results.empty()) {
                const auto sums = parts[0].sums_of(chunk, places, nullptr);
                std::vector<std::byte> lanes(sums->size() * ATP_LANE_BYTES);
                numeric::floats_to_wire(results.data() + at, sums->size(), lanes.data());
                sums->store(0, lanes);
                at += sums->size();
            }
            for (const HostPart& part : parts) part.store(chunk, places);
        }
    }

    std::array<HostRules, 2> rules;
    ChunkPlaces places;

  private:
    std::array<std::array<std::byte, room * ATP_LANE_BYTES>, 3> lanes_;
};

std::unique_ptr<protocol::Tensor> floats(std::vector<float>& memory) {
    return make_sum_tensor(ElementType::float32, memory.data(), memory.data(), memory.size(), 100, 1);
}

TEST(HostPart, RanksWithoutOtherHostsSumNativeElementsOfWholeChunks) {
    Host host({});
    std::array<std::vector<float>, 2> memory{std::vector<float>(130, 1.5F), std::vector<float>(130, 2)};
    const std::array tensors{floats(memory[0]), floats(memory[1])};
    std::array parts{HostPart(*tensors[0], 10, host.rules[0]), HostPart(*tensors[1], 10, host.rules[1])};
    Group group;
    parts[0].submit(group);
    EXPECT_EQ(parts[0].first_chunk(), group.first);
    EXPECT_EQ(parts[0].end_chunk(), group.first + 3);  // of 64 elements
    EXPECT_EQ(group.ranges, 8U);                       // of 8 elements
    EXPECT_EQ(group.last_ranges, 1U);
    host.sum(parts);
    EXPECT_EQ(memory[0], std::vector<float>(130, 3.5F));
    EXPECT_EQ(memory[1], memory[0]);
}

TEST(HostPart, ChunksForOtherHostsCarryIntegersAndTakeTheirResults) {
    Host host(ChunkRules{.payload_lanes = 2, .channels = 1, .most_lanes = room});
    std::array<std::vector<float>, 2> memory{std::vector<float>(100, 1.5F), std::vector<float>(100, 2)};
    memory[1][99] = 1e30F;  // has no integer
    const std::array tensors{floats(memory[0]), floats(memory[1])};
    std::array parts{HostPart(*tensors[0], 1, host.rules[0]), HostPart(*tensors[1], 1, host.rules[1])};
    std::vector<float> results;
    for (int at = 0; at < 100; ++at) results.push_back(static_cast<float>(at));
    host.sum(parts, results);
    EXPECT_EQ(memory[0], results);
    EXPECT_EQ(memory[1], results);
}

TEST(HostPart, SumsOfAChunkAreIntegersUnlessANumberHasNone) {
    Host host(ChunkRules{.payload_lanes = 2, .channels = 1, .most_lanes = room});
    std::array<std::vector<float>, 2> memory{std::vector<float>{1, 2, 3}, std::vector<float>{4, 5, 1e30F}};
    const std::array tensors{floats(memory[0]), floats(memory[1])};
    std::array parts{HostPart(*tensors[0], 1, host.rules[0]), HostPart(*tensors[1], 1, host.rules[1])};
    Group group;
    for (HostPart& part : parts) part.submit(group);
    EXPECT_EQ(parts[0].purpose(), parts[1].purpose());
    for (const HostPart& part : parts) {
        ASSERT_TRUE(part.ready(group.first));
        part.load(group.first, host.places);
    }
    parts[1].add(group.first, 0, host.places);
    const auto sums = parts[0].sums_of(group.first, host.places, nullptr);
    EXPECT_EQ(sums->size(), 3U);
    EXPECT_EQ(sums->float_ranks(), 2U);
    std::array<std::byte, 2 * ATP_LANE_BYTES> lanes{};
    ASSERT_TRUE(sums->load_integers(0, lanes));
    EXPECT_EQ(
        lanes,
        (std::array<std::byte, 8>{{{}, {}, std::byte{1}, std::byte{0xF4}, {}, {}, std::byte{2}, std::byte{0xBC}}}));
    EXPECT_FALSE(sums->load_integers(1, lanes));
    sums->load_floats_of(1, 1, lanes);
    std::array<float, 2> values{};
    numeric::floats_from_wire(lanes.data(), 2, values.data());
    EXPECT_EQ(values, (std::array{5.0F, 1e30F}));
}

TEST(HostPart, OnlyTheSourceOfABroadcastIsRead) {
    Host host({}, {4, 7});
    std::array<std::vector<char>, 2> memory{std::vector<char>(20, 1), std::vector<char>(20, 2)};
    const std::array tensors{make_broadcast_tensor(nullptr, memory[0].data(), 20, 7),
                             make_broadcast_tensor(memory[1].data(), memory[1].data(), 20, 7)};
    std::array parts{HostPart(*tensors[0], 1, host.rules[0]), HostPart(*tensors[1], 1, host.rules[1])};
    host.sum(parts);
    EXPECT_EQ(memory[0], std::vector<char>(20, 2));
}

}  // namespace
}  // namespace atp::tensor
