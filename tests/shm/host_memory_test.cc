// SPDX-License-Identifier: Apache-2.0
#include "shm/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "net/clock.h"

namespace atp::shm {
namespace {

constexpr HostShape spacious{.ranks = 2, .slots = 2, .chunk_lanes = 64, .chunk_spans = 3, .chunk_cells = 5};

// Two ranks, each with its own mapping of one memory.
struct Pair {
    Pair() {
        auto created = SharedMemory::create(spacious.bytes());
        auto adopted = SharedMemory::adopt(net::Descriptor(dup(created->descriptor())), spacious.bytes());
        rank0 = std::make_unique<HostMemory>(*std::move(created), spacious, 0);
        rank1 = std::make_unique<HostMemory>(*std::move(adopted), spacious, 1);
    }
    std::unique_ptr<HostMemory> rank0, rank1;
};

TEST(HostMemory, BothRanksCountAndClaimTheSameChunk) {
    const Pair pair;
    EXPECT_EQ(pair.rank0->ranks_without(0), (std::vector<unsigned>{0, 1}));
    EXPECT_EQ(pair.rank0->arrive(1), 1U);
    EXPECT_EQ(pair.rank0->ranks_without(0), std::vector<unsigned>{1});
    EXPECT_EQ(pair.rank1->arrive(1), 2U);
    EXPECT_FALSE(pair.rank0->unclaimed(1, 0)) << "not open yet";
    pair.rank1->open(1, 0);
    EXPECT_EQ(pair.rank0->unclaimed(1, 0), 0U);
    EXPECT_TRUE(pair.rank0->claim(1, 0, 0));
    EXPECT_FALSE(pair.rank1->claim(1, 0, 0)) << "the other rank has it";
    EXPECT_EQ(pair.rank1->unclaimed(1, 0), 1U);
    EXPECT_TRUE(pair.rank1->claim(1, 0, 1));
    EXPECT_EQ(pair.rank0->finish(1), 1U);
    EXPECT_EQ(pair.rank1->finish(1), 2U);
    EXPECT_FALSE(pair.rank1->is_offered(1, 0));
    pair.rank0->offer(1, 0);
    EXPECT_TRUE(pair.rank1->is_offered(1, 0));
    EXPECT_FALSE(pair.rank1->is_complete(1, 0));
    pair.rank0->complete(1, 0);
    EXPECT_TRUE(pair.rank1->is_complete(1, 0));
    EXPECT_FALSE(pair.rank1->is_complete(0, 0)) << "another slot";
    EXPECT_EQ(pair.rank0->leave(1), 1U);
    EXPECT_EQ(pair.rank1->left(1), 1U);
    pair.rank0->open(1, 2);
    EXPECT_FALSE(pair.rank1->unclaimed(1, 0)) << "the slot holds a later chunk";
    EXPECT_FALSE(pair.rank1->claim(1, 0, 2));
}

TEST(HostMemory, LanesSumsVotesAndMagnitudesOfEachSlotLieApart) {
    const Pair pair;
    for (unsigned slot = 0; slot < spacious.slots; ++slot) {
        for (unsigned rank = 0; rank < spacious.ranks; ++rank) {
            std::fill_n(pair.rank0->lanes_of(slot, rank), spacious.chunk_lanes * 4, std::byte(10 * slot + rank));
            std::ranges::fill(pair.rank0->votes_of(slot, rank), 10 * slot + rank);
        }
        std::fill_n(pair.rank0->sums_of(slot), spacious.chunk_lanes * 4, std::byte(10 * slot + 9));
        std::ranges::fill(pair.rank0->magnitudes_of(slot), static_cast<float>(slot) + 0.5F);
    }
    const auto is_filled = [](const auto& range, auto value) {
        return std::ranges::all_of(range, [&](auto found) { return found == value; });
    };
    const auto lanes_at = [](std::byte* lanes) { return std::span(lanes, spacious.chunk_lanes * 4); };
    for (unsigned slot = 0; slot < spacious.slots; ++slot) {
        for (unsigned rank = 0; rank < spacious.ranks; ++rank) {
            EXPECT_TRUE(is_filled(lanes_at(pair.rank1->lanes_of(slot, rank)), std::byte(10 * slot + rank)));
            EXPECT_EQ(pair.rank1->votes_of(slot, rank).size(), spacious.chunk_spans);
            EXPECT_TRUE(is_filled(pair.rank1->votes_of(slot, rank), 10 * slot + rank));
        }
        EXPECT_TRUE(is_filled(lanes_at(pair.rank1->sums_of(slot)), std::byte(10 * slot + 9)));
        EXPECT_EQ(pair.rank1->magnitudes_of(slot).size(), spacious.chunk_cells);
        EXPECT_TRUE(is_filled(pair.rank1->magnitudes_of(slot), static_cast<float>(slot) + 0.5F));
    }
}

TEST(HostMemory, RankThatCallsAnotherOperationIsFound) {
    const Pair pair;
    pair.rank0->state_call(0, 7, "all_reduce of 5 float32");
    pair.rank1->state_call(0, 8, std::string(500, 'x'));
    EXPECT_EQ(pair.rank0->rank_without(0, 7), 1U);
    EXPECT_EQ(pair.rank1->call_of(0, 0), "all_reduce of 5 float32");
    const std::string cut = pair.rank0->call_of(0, 1);
    EXPECT_LT(cut.size(), 500U);
    EXPECT_EQ(cut, std::string(cut.size(), 'x'));
    pair.rank1->state_call(0, 7, "all_reduce of 5 float32");
    EXPECT_FALSE(pair.rank0->rank_without(0, 7));
}

TEST(HostMemory, RankThatLeftIsMissedOnlyByChunksThatItDidNotLoad) {
    const Pair pair;
    EXPECT_FALSE(pair.rank0->lost(0));
    pair.rank1->arrive(0);
    pair.rank1->set_presence(1, Presence::left, "done");
    EXPECT_FALSE(pair.rank0->lost(0));
    EXPECT_EQ(pair.rank0->lost(1), 1U);
    EXPECT_EQ(pair.rank0->why_of(1), "done");
}

TEST(HostMemory, AllRanksNameTheRankThatFailedFirst) {
    const Pair pair;
    const std::uint32_t before = pair.rank0->state_of(spacious.slots);
    pair.rank1->blame(1);
    pair.rank0->blame(0);
    pair.rank1->set_presence(1, Presence::ended, "no memory");
    pair.rank1->set_presence(1, Presence::left, "done");
    EXPECT_EQ(pair.rank0->presence_of(1), Presence::ended) << "a presence only rises";
    EXPECT_EQ(pair.rank0->why_of(1), "no memory") << "the first reason stays";
    pair.rank0->set_presence(0, Presence::ended);
    EXPECT_EQ(pair.rank1->lost(0), 1U);
    EXPECT_NE(pair.rank0->state_of(spacious.slots), before) << "those who wait are woken";
}

TEST(HostMemory, NumberThatIsNoRankIsNotBlamed) {
    const Pair pair;
    pair.rank1->blame(spacious.ranks);
    EXPECT_FALSE(pair.rank0->lost(0));
    pair.rank1->set_presence(1, Presence::ended);
    EXPECT_EQ(pair.rank0->lost(0), 1U);
}

TEST(HostMemory, SleeperWakesWithTheState) {
    const Pair pair;
    HostMemory& memory = *pair.rank0;
    const std::uint32_t seen = memory.state_of(0);
    std::jthread sleeper([&] {
        const Time until = net::now() + std::chrono::seconds(20);
        while (memory.state_of(0) == seen && net::now() < until) memory.sleep(0, seen, until);
        EXPECT_LT(net::now(), until);
    });
    memory.notify(0);
}

TEST(HostMemory, SleepWithoutTimeLeftReturnsAtOnce) {
    const Pair pair;
    pair.rank0->sleep(0, pair.rank0->state_of(0), net::now());
}

}  // namespace
}  // namespace atp::shm
