// SPDX-License-Identifier: Apache-2.0
// Ranks that sum in the memory of their host before one of them sends.
#include "host/host_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "numeric/lanes32_worker.h"

namespace atp::host {
namespace {

constexpr unsigned ranks_of_host = 3;
constexpr unsigned slots_of_host = 2;
constexpr float scale_of_host = 1024;

// Three ranks with the numbers 1, 2 and 4. The other hosts add `elsewhere` to each sum.
class HostMemory {
  public:
    explicit HostMemory(std::uint64_t seed)
        : memory_({.slots = slots_of_host,
                   .rules = {.ranks = {0, 1, 2},
                             .chunk_lanes = 64,
                             .range_bytes = 40,
                             .scale = scale_of_host,
                             .network = tensor::ChunkRules{.payload_lanes = 2, .channels = 1, .most_lanes = 64}},
                   .seed = seed}) {
        for (unsigned rank = 0; rank < ranks_of_host; ++rank) {
            numbers_[rank].assign(elements, static_cast<float>(1U << rank));
            tensors_.emplace_back(numbers_[rank], numbers_[rank], scale_of_host);
        }
    }

    void submit(unsigned rank) { memory_.submit(rank, tensors_[rank]); }
    void run() {
        memory_.run();
        while (const auto chunk = memory_.poll_send()) {
            EXPECT_EQ(chunk->number, sent++);
            in_network.push_back(*chunk);
        }
        EXPECT_LE(in_network.size(), slots_of_host);
        while (const auto rank = memory_.poll_stored()) stored.push_back(*rank);
    }
    // The newest of the chunks in the network gets its results.
    void finish_newest(float elsewhere) {
        const HostRanks::SentChunk chunk = in_network.back();
        in_network.pop_back();
        std::vector<std::byte> lanes(chunk.sums->size() * ATP_LANE_BYTES);
        ASSERT_TRUE(chunk.sums->load_integers(0, lanes));
        std::vector<float> sums(chunk.sums->size());
        numeric::dequantise(lanes.data(), sums.size(), 1 / scale_of_host, sums.data());
        for (float& sum : sums) sum += elsewhere;
        numeric::floats_to_wire(sums.data(), sums.size(), lanes.data());
        chunk.sums->store(0, lanes);
        memory_.finish(chunk.number);
        run();
    }
    [[nodiscard]] bool all_are(float sum) const {
        return std::ranges::all_of(numbers_, [&](const auto& of_rank) {
            return std::ranges::all_of(of_rank, [&](float number) { return number == sum; });
        });
    }

    std::deque<HostRanks::SentChunk> in_network;
    std::uint64_t sent = 0;
    std::vector<unsigned> stored;

  private:
    static constexpr std::size_t elements = 300;

    std::array<std::vector<float>, ranks_of_host> numbers_;
    std::deque<protocol::FloatTensor> tensors_;
    HostRanks memory_;
};

TEST(HostRanks, EveryOrderOfStepsSumsAllRanksAndStoresTheResults) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        HostMemory host(seed);
        for (unsigned rank = 0; rank < ranks_of_host; ++rank) host.submit(rank);
        host.run();
        while (!host.in_network.empty()) host.finish_newest(10);
        EXPECT_EQ(host.sent, 5U);  // of 60 elements
        EXPECT_TRUE(host.all_are(17)) << seed;
        std::ranges::sort(host.stored);
        EXPECT_EQ(host.stored, (std::vector<unsigned>{0, 1, 2}));
    }
}

TEST(HostRanks, NothingIsSentBeforeAllRanksCall) {
    HostMemory host(1);
    host.submit(0);
    host.submit(2);
    host.run();
    EXPECT_TRUE(host.in_network.empty());
    host.submit(1);
    host.run();
    EXPECT_EQ(host.in_network.size(), slots_of_host);
    EXPECT_TRUE(host.stored.empty());
}

TEST(HostRanks, SlotIsSentAgainOnlyAfterItsResults) {
    HostMemory host(1);
    for (unsigned rank = 0; rank < ranks_of_host; ++rank) host.submit(rank);
    host.run();
    EXPECT_EQ(host.sent, slots_of_host);
    host.finish_newest(0);  // the first chunk is still in the network
    EXPECT_EQ(host.sent, slots_of_host);
    host.finish_newest(0);
    EXPECT_EQ(host.sent, 2 * slots_of_host);
}

}  // namespace
}  // namespace atp::host
