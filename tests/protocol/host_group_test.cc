// SPDX-License-Identifier: Apache-2.0
#include "protocol/host_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace atp::protocol {
namespace {

using Kind = HostAction::Kind;

// The words of all ranks in one process.
class Board final : public HostBoard {
  public:
    Board(unsigned ranks, unsigned slots)
        : slots_(slots), purposes_(slots, std::vector<std::uint64_t>(ranks)), loaded_(ranks), lost_(ranks) {}

    std::uint64_t arrive(unsigned slot) override { return ++slots_[slot].arrived; }
    void open(unsigned slot, std::uint64_t chunk) override {
        slots_[slot].open = chunk;
        slots_[slot].next = slots_[slot].finished = 0;
    }
    std::optional<std::uint32_t> unclaimed(unsigned slot, std::uint64_t chunk) const override {
        if (slots_[slot].open != chunk) return std::nullopt;
        return slots_[slot].next;
    }
    bool claim(unsigned slot, std::uint64_t chunk, std::uint32_t range) override {
        if (slots_[slot].open != chunk || slots_[slot].next != range) return false;
        ++slots_[slot].next;
        return true;
    }
    std::uint32_t finish(unsigned slot) override { return ++slots_[slot].finished; }
    void offer(unsigned slot, std::uint64_t chunk) override { slots_[slot].offered = chunk; }
    bool is_offered(unsigned slot, std::uint64_t chunk) const override { return slots_[slot].offered == chunk; }
    void complete(unsigned slot, std::uint64_t chunk) override { slots_[slot].complete = chunk; }
    bool is_complete(unsigned slot, std::uint64_t chunk) const override { return slots_[slot].complete == chunk; }
    std::uint64_t leave(unsigned slot) override { return ++slots_[slot].left; }
    std::uint64_t left(unsigned slot) const override { return slots_[slot].left; }
    std::optional<unsigned> rank_without(unsigned slot, std::uint64_t purpose) const override {
        const auto& purposes = purposes_[slot];
        const auto other = std::ranges::find_if(purposes, [&](std::uint64_t each) { return each != purpose; });
        if (other == purposes.end()) return std::nullopt;
        return static_cast<unsigned>(other - purposes.begin());
    }
    std::optional<unsigned> lost(std::uint64_t chunk) const override {
        for (unsigned rank = 0; rank < lost_.size(); ++rank) {
            if (lost_[rank] == Loss::ended || (lost_[rank] == Loss::left && loaded_[rank] <= chunk)) return rank;
        }
        return std::nullopt;
    }

    enum class Loss { none, left, ended };

    void load(unsigned rank, unsigned slot, std::uint64_t purpose) {
        purposes_[slot][rank] = purpose;
        ++loaded_[rank];
    }
    void lose(unsigned rank, Loss loss) { lost_[rank] = loss; }

  private:
    struct Slot {
        std::uint64_t arrived = 0;
        std::optional<std::uint64_t> open{};
        std::uint32_t next = 0;
        std::uint32_t finished = 0;
        std::optional<std::uint64_t> offered{};
        std::optional<std::uint64_t> complete{};
        std::uint64_t left = 0;
    };

    std::vector<Slot> slots_;
    std::vector<std::vector<std::uint64_t>> purposes_;
    std::vector<std::uint64_t> loaded_;
    std::vector<Loss> lost_;
};

// Ranks that take steps in an order that the test chooses. Lanes are one number for each chunk and range.
class Host {
  public:
    // Rank 0 speaks for the host if the job has other hosts.
    Host(unsigned ranks, unsigned slots, bool other_hosts = false)
        : board_(ranks, slots), places_(slots + 1), ranks_(ranks) {
        for (unsigned rank = 0; rank < ranks; ++rank) {
            groups_.emplace_back(HostGroupConfig{
                .ranks = ranks, .slots = slots, .other_hosts = other_hosts, .speaks = other_hosts && rank == 0});
        }
        for (Slot& slot : places_) slot.lanes.resize(ranks);
        for (Rank& rank : ranks_) rank.ends = Kind::none;
    }

    Board& board() { return board_; }
    void submit(unsigned rank, std::uint64_t purpose, std::uint64_t chunks, std::uint32_t ranges = 1) {
        groups_[rank].submit(purpose, chunks, ranges, ranges);
        ranks_[rank].purposes.insert(ranks_[rank].purposes.end(), chunks, purpose);
    }
    void submit_all(std::uint64_t purpose, std::uint64_t chunks, std::uint32_t ranges = 1) {
        for (unsigned rank = 0; rank < groups_.size(); ++rank) submit(rank, purpose, chunks, ranges);
    }

    // Returns the kind of the action, which is done.
    Kind step(unsigned number) {
        Rank& rank = ranks_[number];
        if (rank.ends != Kind::none) return rank.ends;
        const HostAction action = groups_[number].poll_action(board_, true);
        Slot& slot = places_[action.slot];
        switch (action.kind) {
            case Kind::load:
                slot.lanes[number] = value(number, action.chunk);
                board_.load(number, action.slot, rank.purposes[action.chunk]);
                break;
            case Kind::add:
                EXPECT_TRUE(slot.added.insert({action.chunk, action.range}).second) << "a range is added once";
                slot.sum = 0;
                for (const std::uint64_t lanes : slot.lanes) slot.sum += lanes;
                break;
            case Kind::store:
                EXPECT_EQ(slot.sum, sum(action.chunk)) << "chunk " << action.chunk;
                rank.stored.push_back(action.chunk);
                break;
            case Kind::send:
                EXPECT_EQ(slot.sum, sum(action.chunk)) << "chunk " << action.chunk;
                sent_.push_back(action.chunk);
                break;
            case Kind::mismatch:
            case Kind::lost:
                rank.ends = action.kind;
                rank.named = action.rank;
                break;
            default: break;
        }
        return action.kind;
    }
    // Until the rank waits or ends.
    Kind run(unsigned rank) {
        while (true) {
            const Kind kind = step(rank);
            if (kind == Kind::wait || kind == Kind::mismatch || kind == Kind::lost) return kind;
        }
    }
    void run_all() {
        for (int round = 0; round < 100; ++round) {
            for (unsigned rank = 0; rank < groups_.size(); ++rank) run(rank);
        }
    }

    // The results of a chunk that was sent are there.
    void answer(std::uint64_t chunk) { board_.complete(static_cast<unsigned>(chunk % (places_.size() - 1)), chunk); }
    [[nodiscard]] const std::vector<std::uint64_t>& sent() const { return sent_; }
    [[nodiscard]] const std::vector<std::uint64_t>& stored(unsigned rank) const { return ranks_[rank].stored; }
    [[nodiscard]] unsigned named(unsigned rank) const { return ranks_[rank].named; }
    [[nodiscard]] const HostGroup& group(unsigned rank) const { return groups_[rank]; }

  private:
    struct Slot {
        std::vector<std::uint64_t> lanes;
        std::uint64_t sum = 0;
        std::set<std::pair<std::uint64_t, std::uint32_t>> added;
    };
    struct Rank {
        std::vector<std::uint64_t> purposes;  // by chunk
        std::vector<std::uint64_t> stored;
        Kind ends = Kind::none;
        unsigned named = 0;
    };

    [[nodiscard]] static std::uint64_t value(unsigned rank, std::uint64_t chunk) { return (chunk + 1) << (8 * rank); }
    [[nodiscard]] std::uint64_t sum(std::uint64_t chunk) const {
        std::uint64_t all = 0;
        for (unsigned rank = 0; rank < groups_.size(); ++rank) all += value(rank, chunk);
        return all;
    }

    Board board_;
    std::vector<Slot> places_;  // the last one is no slot: the rank that speaks waits there
    std::vector<std::uint64_t> sent_;
    std::vector<Rank> ranks_;
    std::vector<HostGroup> groups_;
};

std::vector<std::uint64_t> first_chunks(std::uint64_t count) {
    std::vector<std::uint64_t> chunks;
    for (std::uint64_t chunk = 0; chunk < count; ++chunk) chunks.push_back(chunk);
    return chunks;
}

TEST(HostGroup, RankAloneStoresItsOwnNumbers) {
    Host host(1, 2);
    host.submit_all(7, 5, 3);
    EXPECT_EQ(host.run(0), Kind::wait);
    EXPECT_EQ(host.stored(0), first_chunks(5));
}

TEST(HostGroup, IdleRankWaitsAndNeverEnds) {
    Host host(2, 1);
    host.board().lose(1, Board::Loss::ended);
    EXPECT_EQ(host.run(0), Kind::wait);
}

// docs/spec/hazards.md#h42
TEST(HostGroup, H42_EveryOrderOfStepsGivesTheSums) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        const unsigned ranks = 2 + seed % 4;
        Host host(ranks, 1 + seed % 3);
        host.submit_all(1, 4, 1 + seed % 5);
        host.submit_all(2, 3, 2);
        std::uint64_t steps = 0;
        const auto unfinished = [&] {
            for (unsigned rank = 0; rank < ranks; ++rank) {
                if (host.stored(rank).size() != 7) return true;
            }
            return false;
        };
        while (unfinished()) {
            host.step(static_cast<unsigned>(random() % ranks));
            ASSERT_LT(++steps, 100'000U);
        }
        for (unsigned rank = 0; rank < ranks; ++rank) ASSERT_EQ(host.stored(rank), first_chunks(7));
    }
}

// docs/spec/hazards.md#h43
TEST(HostGroup, H43_SlotIsNotUsedAgainBeforeAllHaveStored) {
    Host host(2, 1);
    host.submit_all(1, 2);
    host.run(0);
    while (host.stored(1).empty()) host.step(1);
    // Rank 1 stores chunk 0 only now; rank 0 stored it and would load chunk 1.
    host.run(0);
    EXPECT_EQ(host.group(0).next_load(), 1U);
    host.run_all();
    EXPECT_EQ(host.stored(0), first_chunks(2));
    EXPECT_EQ(host.stored(1), first_chunks(2));
}

// docs/spec/hazards.md#h45
TEST(HostGroup, H45_DifferentOperationsEndOnAllRanksAndStoreNothing) {
    Host host(3, 2);
    host.submit(0, 5, 3);
    host.submit(1, 5, 3);
    host.submit(2, 6, 1);
    host.run_all();
    EXPECT_EQ(host.run(0), Kind::mismatch);
    EXPECT_EQ(host.run(1), Kind::mismatch);
    EXPECT_EQ(host.run(2), Kind::mismatch);
    EXPECT_EQ(host.named(0), 2U);
    EXPECT_EQ(host.named(1), 2U);
    for (unsigned rank = 0; rank < 3; ++rank) EXPECT_TRUE(host.stored(rank).empty());
}

// docs/spec/hazards.md#h44
TEST(HostGroup, H44_RankThatEndedEndsThoseWhoWait) {
    Host host(3, 2);
    host.submit_all(1, 2);
    host.run(0);
    host.run(1);
    host.board().lose(2, Board::Loss::ended);
    EXPECT_EQ(host.run(0), Kind::lost);
    EXPECT_EQ(host.run(1), Kind::lost);
    EXPECT_EQ(host.named(0), 2U);
}

TEST(HostGroup, RankThatLeftDoesNotEndThoseWhoHaveItsNumbers) {
    Host host(2, 2);
    host.submit_all(1, 2);
    host.run(0);
    host.run(1);
    ASSERT_EQ(host.stored(1), first_chunks(2));
    host.board().lose(1, Board::Loss::left);
    EXPECT_EQ(host.run(0), Kind::wait);
    EXPECT_EQ(host.stored(0), first_chunks(2));
    host.submit(0, 2, 1);
    EXPECT_EQ(host.run(0), Kind::lost);
}

// docs/spec/hazards.md#h42
TEST(HostGroup, H42_OnlyTheRankThatSpeaksSendsAndOnlyWholeSums) {
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        std::mt19937 random(seed);
        const unsigned ranks = 1 + seed % 4;
        Host host(ranks, 2, true);
        host.submit_all(1, 5, 1 + seed % 3);
        std::uint64_t answered = 0;
        for (int step = 0; step < 10'000; ++step) {
            host.step(static_cast<unsigned>(random() % ranks));
            if (answered < host.sent().size() && random() % 8 == 0) host.answer(answered++);
        }
        EXPECT_EQ(host.sent(), first_chunks(5));
        for (unsigned rank = 0; rank < ranks; ++rank) ASSERT_EQ(host.stored(rank), first_chunks(5));
    }
}

TEST(HostGroup, ChunkIsNotStoredBeforeItsResultsAreThere) {
    Host host(2, 2, true);
    host.submit_all(1, 1);
    host.run_all();
    EXPECT_EQ(host.sent(), first_chunks(1));
    EXPECT_TRUE(host.stored(0).empty());
    EXPECT_TRUE(host.stored(1).empty());
    host.answer(0);
    host.run_all();
    EXPECT_EQ(host.stored(0), first_chunks(1));
    EXPECT_EQ(host.stored(1), first_chunks(1));
}

TEST(HostGroup, ElementsThatAreNotReadyAreNotLoaded) {
    Board board(1, 1);
    HostGroup group({.ranks = 1, .slots = 1});
    group.submit(1, 1, 1, 1);
    Kind kind = Kind::none;
    while (kind == Kind::none) kind = group.poll_action(board, false).kind;
    EXPECT_EQ(kind, Kind::wait);
    EXPECT_EQ(group.next_load(), 0U);
}

}  // namespace
}  // namespace atp::protocol
