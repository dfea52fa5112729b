// SPDX-License-Identifier: Apache-2.0
#include "protocol/slot_indices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace atp::protocol {
namespace {

constexpr ChannelConfig slots_channel{.job = 1, .token = 2, .window_log2 = 3, .aggregators = 4096};

TEST(SlotIndices, StartAtTheHashWithAttempt0) {
    const SlotIndices indices(slots_channel);
    for (std::uint32_t seq = 0; seq < 2 * slots_channel.window(); ++seq)
        EXPECT_EQ(indices.index(seq), slots_channel.index(seq, 0));
}

TEST(SlotIndices, H107_BaseSlotsStartApart) {
    for (std::uint64_t token = 1; token <= 200; ++token) {
        const ChannelConfig channel{.job = 1, .token = token, .window_log2 = 9, .aggregators = 4096};
        const SlotIndices indices(channel);
        std::set<std::uint32_t> used;
        for (std::uint32_t seq = 0; seq < channel.window(); ++seq) used.insert(indices.index(seq));
        EXPECT_EQ(used.size(), 128U) << token;
    }
}

// Four times as many slots as base slots.
constexpr ChannelConfig wide_channel{.job = 1, .token = 2, .window_log2 = 6, .aggregators = 4096};

TEST(SlotIndices, H107_ChannelUsesAsManyIndicesAsItHasPacketsInFlight) {
    for (const auto& [window_log2, expected] : {std::pair{0, 1U}, {3, 8U}, {4, 8U}, {5, 8U}, {6, 16U}, {9, 128U}}) {
        ChannelConfig channel = wide_channel;
        channel.window_log2 = static_cast<std::uint8_t>(window_log2);
        channel.aggregators = 1U << 30U;
        const SlotIndices indices(channel);
        std::set<std::uint32_t> used;
        for (std::uint32_t seq = 0; seq < channel.window(); ++seq) used.insert(indices.index(seq));
        EXPECT_EQ(used.size(), expected) << window_log2;
        EXPECT_EQ(indices.index(0), indices.index(expected));
    }
}

TEST(SlotIndices, H107_EachPacketInFlightHasAnIndexOfItsOwn) {
    for (std::uint32_t packets = 1; packets <= 1U << ATP_WINDOW_LOG2_MAX; packets *= 2)
        EXPECT_GE(usual_base_slots(slots_for(packets)), packets);
}

TEST(SlotIndices, H107_MoveReachesEachSlotWithItsNextAckAndCollisionsOfTheOldIndexCountNoMore) {
    SlotIndices indices(wide_channel);
    const std::uint32_t old = indices.index(5);
    EXPECT_FALSE(indices.next(5, old, true).moved);
    const auto next = indices.next(5 + 16, old, true);
    EXPECT_TRUE(next.moved);
    EXPECT_EQ(next.index, wide_channel.index(5, 1));
    EXPECT_EQ(indices.index(5 + 2 * 16), old) << "an ACK named this index before the move";
    for (const std::uint32_t seq : {5U + 2 * 16, 5U + 3 * 16}) {
        const auto later = indices.next(seq, old, true);
        EXPECT_FALSE(later.moved);
        EXPECT_EQ(later.index, next.index);
    }
    EXPECT_EQ(indices.index(5 + wide_channel.window()), old) << "completed before the move";
    EXPECT_EQ(indices.index(5 + 16 + wide_channel.window()), next.index);
}

TEST(SlotIndices, OneCollisionInThreeFragmentsMovesNoSlot) {
    SlotIndices indices(slots_channel);
    std::uint32_t seq = 5;
    for (int round = 0; round < 20; ++round) {
        for (const bool collision : {true, false, false}) {
            const auto next = indices.next(seq, indices.index(seq), collision);
            EXPECT_FALSE(next.moved);
            EXPECT_EQ(next.index, slots_channel.index(5, 0));
            seq += slots_channel.window();
        }
    }
}

TEST(SlotIndices, TwoCollisionsInThreeFragmentsMoveThatSlotAndNoOther) {
    for (const bool between : {false, true}) {
        SlotIndices indices(slots_channel);
        std::uint32_t seq = 5;
        EXPECT_FALSE(indices.next(seq, indices.index(seq), true).moved);
        seq += slots_channel.window();
        if (between) {
            EXPECT_FALSE(indices.next(seq, indices.index(seq), false).moved);
            seq += slots_channel.window();
        }
        const auto next = indices.next(seq, indices.index(seq), true);
        EXPECT_TRUE(next.moved);
        EXPECT_EQ(next.index, slots_channel.index(5, 1));
        EXPECT_EQ(indices.index(seq + slots_channel.window()), next.index);
        EXPECT_EQ(indices.index(6), slots_channel.index(6, 0));
        EXPECT_FALSE(indices.next(seq + slots_channel.window(), next.index, true).moved)
            << "after a move, the collision score starts at 0";
    }
}

TEST(SlotIndices, SlotMovesToAnIndexThatNoOtherSlotUses) {
    ChannelConfig crowded = slots_channel;
    crowded.aggregators = 32;
    SlotIndices indices(crowded);
    unsigned shared = 0;
    for (std::uint32_t seq = 0; seq < 400 * crowded.window(); ++seq) {
        const auto next = indices.next(seq, indices.index(seq), true);
        if (!next.moved) continue;
        for (std::uint32_t slot = 0; slot < crowded.window(); ++slot) {
            if (slot != crowded.slot(seq) && indices.index(slot) == next.index) ++shared;
        }
    }
    // Each move tries four of 32 indices, of which other slots use at most seven. Of 1,600 moves, about 3.7 find no
    // free index.
    EXPECT_LT(shared, 40U);
}

TEST(SlotIndices, SlotMovesEvenIfEachIndexIsInUse) {
    ChannelConfig tiny = slots_channel;
    tiny.aggregators = 1;
    SlotIndices indices(tiny);
    (void)indices.next(0, 0, true);
    const auto next = indices.next(8, 0, true);
    EXPECT_TRUE(next.moved);
    EXPECT_EQ(next.index, 0U);
}

// Counts how often an index is computed.
class CountedIndices final : public IndexRule {
  public:
    [[nodiscard]] std::uint32_t index(const ChannelConfig& of, std::uint32_t slot,
                                      std::uint32_t attempt) const override {
        ++computed;
        return aggregator_index(index_seed(of.job, of.token, of.channel), slot, attempt, of.aggregators);
    }
    mutable std::uint64_t computed = 0;
};

// The flag comes from the network: a packet of 60 bytes must not cost 262,144 hashes.
TEST(SlotIndices, MoveCostsFewStepsWhateverTheWindow) {
    for (const std::uint32_t aggregators : {1U, 50'000U, 1U << 20U}) {
        CountedIndices counted;
        ChannelConfig widest = slots_channel;
        widest.window_log2 = ATP_WINDOW_LOG2_MAX;
        widest.aggregators = aggregators;
        widest.indices = &counted;
        SlotIndices indices(widest);
        std::uint64_t most = 0;
        for (std::uint32_t seq = 0; seq < 1000; ++seq) {
            static_cast<void>(indices.next(seq, indices.index(seq), true));
            const std::uint32_t index = indices.index(seq + widest.window());
            counted.computed = 0;
            static_cast<void>(indices.next(seq + widest.window(), index, true));
            most = std::max(most, counted.computed);
        }
        EXPECT_LT(most, 100U) << aggregators;
    }
}

}  // namespace
}  // namespace atp::protocol
