// SPDX-License-Identifier: Apache-2.0
#include "tensor/operation_seal.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "wire/packet.h"

namespace atp::tensor {
namespace {

using SealFinding = OperationSeal::SealFinding;
using Words = std::vector<std::uint32_t>;

std::vector<std::byte> bytes_of(const Words& words) {
    std::vector<std::byte> bytes(words.size() * ATP_LANE_BYTES);
    for (std::size_t at = 0; at < words.size(); ++at) wire::store_u32(bytes.data() + at * ATP_LANE_BYTES, words[at]);
    return bytes;
}

// The seals of three ranks about one operation of two words.
class OperationSealTest : public ::testing::Test {
  protected:
    static constexpr std::uint32_t ranks = 3;

    OperationSealTest() {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            seals_.emplace_back(OperationSeal::Rules{
                .operation = 5, .rank = rank, .ranks = ranks, .feed = std::make_shared<protocol::SilentWaker>()});
            EXPECT_EQ(seals_.back().expect(2), 0U);
        }
    }
    void note(std::uint32_t rank, const Words& sent, const Words& got, const SealedWords& kind = {}) {
        const auto own = bytes_of(sent);
        const auto sums = bytes_of(got);
        seals_[rank].note({.first = 0, .sent = own, .got = sums, .words = kind});
    }
    void exchange() {
        for (std::uint32_t from = 0; from < ranks; ++from) {
            for (std::uint32_t to = 0; to < ranks; ++to) {
                if (from != to) seals_[to].keep(from, 0, seals_[from].own_word());
            }
        }
    }
    std::vector<SealFinding> outcomes() {
        std::vector<SealFinding> all;
        for (OperationSeal& seal : seals_) all.push_back(seal.check());
        return all;
    }
    static std::vector<SealFinding> all(SealFinding outcome) { return std::vector(ranks, outcome); }

    std::deque<OperationSeal> seals_;
};

TEST_F(OperationSealTest, SumOfWhatAllSentHolds) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_FALSE(seals_[rank].ready());
        note(rank, {rank, 0xFFFFFFFF}, {3, 0xFFFFFFFD});
        EXPECT_TRUE(seals_[rank].ready());
    }
    exchange();
    EXPECT_EQ(outcomes(), all(SealFinding::holds));
}

TEST_F(OperationSealTest, WrongSumOfOneRankIsKnownToAll) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) note(rank, {rank, 1}, {3, rank == 1 ? 0x80000003 : 3});
    exchange();
    EXPECT_EQ(outcomes(), all(SealFinding::lied));
}

TEST_F(OperationSealTest, SumsThatAllGotButNobodySentAreALie) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) note(rank, {rank, 1}, {4, 2});
    exchange();
    EXPECT_EQ(outcomes(), all(SealFinding::lied));
}

TEST_F(OperationSealTest, ChangedOrMissingWordIsALie) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) note(rank, {0, 0}, {0, 0});
    seals_[0].keep(1, 0, seals_[1].own_word());
    EXPECT_EQ(seals_[0].check(), SealFinding::lied) << "that of rank 2 is missing";
    exchange();
    std::vector<std::byte> word(seals_[1].own_word().begin(), seals_[1].own_word().end());
    word.back() ^= std::byte{1};
    seals_[0].keep(1, 0, word);
    EXPECT_EQ(seals_[0].check(), SealFinding::lied);
    seals_[0].keep(1, 0, seals_[2].own_word());
    EXPECT_EQ(seals_[0].check(), SealFinding::lied) << "of another rank";
    EXPECT_EQ(seals_[2].check(), SealFinding::holds);
}

TEST_F(OperationSealTest, WordsOfAnotherOperationOrCallAreALie) {
    for (const bool another_call : {false, true}) {
        OperationSeal::Rules rules{.operation = 5, .rank = 1, .ranks = ranks};
        rules.feed = std::make_shared<protocol::SilentWaker>();
        if (another_call) rules.call[3] = std::byte{1};
        if (!another_call) rules.operation = 6;
        OperationSeal other(rules);
        static_cast<void>(other.expect(0));
        exchange();
        seals_[0].keep(1, 0, other.own_word());
        EXPECT_EQ(seals_[0].check(), SealFinding::lied);
    }
}

TEST_F(OperationSealTest, SumsThatMayHaveWrappedProveNothing) {
    constexpr SealedWords may_wrap{.kind = crypto::WordKind::balanced, .may_wrap = true};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) note(rank, {0x40000000, 0}, {0xC0000000, 0}, may_wrap);
    exchange();
    EXPECT_EQ(outcomes(), all(SealFinding::wraps));
}

TEST_F(OperationSealTest, ALieIsNoMisfit) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) note(rank, {0, 0}, {0, 0});
    seals_[1].note_misfit();
    exchange();
    EXPECT_EQ(outcomes(), all(SealFinding::misfits));
}

TEST_F(OperationSealTest, DemandOfASwitchIsKnownToAll) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) note(rank, {0, 0}, {0, 0});
    seals_[1].note_demand();
    exchange();
    EXPECT_EQ(outcomes(), all(SealFinding::demands));
}

TEST_F(OperationSealTest, AllRanksLearnWhatIsNotFinite) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) note(rank, {0, 0}, {0, 0});
    for (std::uint64_t at = 3; at < 6; ++at) {
        seals_[2].note(ExtremeRun{.first = at, .count = 1, .value = Extreme::infinity});
    }
    for (std::uint64_t at = 0; at < 40; at += 2) {
        seals_[1].note(ExtremeRun{.first = at, .count = 1, .value = Extreme::minus_infinity});
    }
    exchange();
    EXPECT_EQ(outcomes(), all(SealFinding::holds));
    const auto& runs = seals_[0].extremes();
    ASSERT_GE(runs.size(), 2U);
    EXPECT_EQ(runs.front().first, 0U);
    EXPECT_EQ(runs.front().value, Extreme::nan) << "one run for too many";
    EXPECT_EQ(runs.back().first, 3U);
    EXPECT_EQ(runs.back().count, 3U);
    EXPECT_EQ(runs.back().value, Extreme::infinity);
}

}  // namespace
}  // namespace atp::tensor
