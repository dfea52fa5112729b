// SPDX-License-Identifier: Apache-2.0
// What a server takes from the memory that it shares with others, and what it does without.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "support/server_bench.h"

namespace atp::testing {
namespace {

using protocol::FragmentRecords;
using protocol::fragments_with_room;
using protocol::Membership;

constexpr protocol::ChannelConfig wide{
    .job = 1, .token = 0x5eed, .channel = 2, .lanes = 64, .window_log2 = 5, .aggregators = 1024};

TEST(ServerMemory, GrowsWithTheSumsInProgressAndShrinksAsTheyComplete) {
    MemoryBudget memory(4 << 20);
    ServerBench bench(*Membership::star(2), wide, &memory);
    for (std::uint32_t seq = 0; seq < wide.window(); ++seq) bench.handle(bench.members_gradient(0, 0x3, seq, 1));
    EXPECT_EQ(memory.used(), 0U) << "a sum of all workers needs no room for sums";
    for (std::uint32_t seq = wide.window(); seq < 2 * wide.window(); ++seq) bench.handle(bench.gradient(0, seq, 1));
    const std::uint64_t integers = memory.used();
    EXPECT_GT(integers, 0U);
    EXPECT_LT(integers, (wide.window() + 1) * wide.lanes * 12U) << "eight bytes for each lane, and a header";
    for (std::uint32_t seq = wide.window(); seq < 2 * wide.window(); ++seq) bench.handle(bench.floats(1, seq, 1));
    EXPECT_GT(memory.used(), 4 * integers);
    for (std::uint32_t seq = wide.window(); seq < 2 * wide.window(); ++seq) bench.handle(bench.floats(0, seq, 1));
    EXPECT_EQ(memory.used(), 0U);
    EXPECT_EQ(bench.server.counters().completed, 2 * wide.window());
    EXPECT_EQ(bench.server.counters().no_memory, 0U);
}

TEST(ServerMemory, H99_FirstFragmentsInProgressCompleteWithoutAnyAndTheOthersAfterThem) {
    MemoryBudget memory(0);
    ServerBench bench(*Membership::star(2), wide, &memory);
    const std::uint32_t end = 4 * wide.window();
    std::set<std::uint32_t> complete;
    unsigned rounds = 0;
    for (; complete.size() < end && rounds < end; ++rounds) {
        const std::uint32_t base = bench.server.base();
        // The latest first: what is far ahead must not keep the first out.
        for (std::uint32_t ahead = std::min(wide.window(), end - base); ahead-- > 0;) {
            const bool as_floats = (base + ahead) % 3 == 0;
            for (std::uint16_t rank = 0; rank < 2; ++rank) {
                bench.handle(as_floats ? bench.floats(rank, base + ahead, 1) : bench.gradient(rank, base + ahead, 1));
            }
        }
        for (const ServerAnswer& answer : bench.answers()) {
            if (answer.header.type != ATP_TYPE_ACK) continue;
            EXPECT_EQ(answer.sums[0], 2) << answer.header.seq;
            complete.insert(answer.header.seq);
        }
    }
    EXPECT_EQ(complete.size(), end);
    EXPECT_LE(rounds, end / fragments_with_room(wide.window()));
    EXPECT_GT(rounds, end / wide.window()) << "slower than with memory";
    EXPECT_GT(bench.server.counters().no_memory, 0U);
    EXPECT_EQ(memory.used(), 0U);
}

TEST(ServerMemory, OneChannelGrowsByAnEighthAndAllByHalfOfTheLimit) {
    MemoryBudget memory(64'000);
    std::vector<std::unique_ptr<ServerBench>> benches;
    for (int i = 0; i < 8; ++i) benches.push_back(std::make_unique<ServerBench>(*Membership::star(2), wide, &memory));
    for (std::uint32_t seq = 0; seq < wide.window(); ++seq) benches[0]->handle(benches[0]->floats(0, seq, 1));
    EXPECT_LE(memory.used(), memory.limit() / 8);
    EXPECT_GT(memory.used(), memory.limit() / 16);
    for (const auto& bench : benches) {
        for (std::uint32_t seq = 0; seq < wide.window(); ++seq) bench->handle(bench->floats(0, seq, 1));
    }
    EXPECT_LE(memory.used(), memory.limit() / 2);
    EXPECT_TRUE(memory.fits(memory.limit() / 2)) << "channels that begin find room";
    benches.clear();
    EXPECT_EQ(memory.used(), 0U);
}

TEST(ServerMemory, ReserveOfAChannelIsFarBelowWhatItsSumsCanNeed) {
    const std::uint64_t reserved = FragmentRecords::reserved_bytes(352, 128, 1);
    EXPECT_LT(reserved, 3'000'000U) << "of 22 MB for sums as floats, in int8";
    EXPECT_GT(reserved, 2U * 128 * 352 * 16) << "all results of two windows";
}

}  // namespace
}  // namespace atp::testing
