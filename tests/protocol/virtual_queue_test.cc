// SPDX-License-Identifier: Apache-2.0
#include "protocol/virtual_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace atp::protocol {
namespace {

constexpr std::uint64_t half_gigabit = 500'000'000;
constexpr std::uint32_t frame_bytes = 1500;

// Share of `frames` equal frames, each `gap_ns` after the one before, that are marked.
double marked_share(atp_virtual_queue& queue, std::uint64_t& now_ns, std::uint64_t gap_ns, unsigned frames = 200'000) {
    unsigned marked = 0;
    for (unsigned i = 0; i < frames; ++i) {
        if (atp_queue_add(&queue, now_ns, frame_bytes) != 0) ++marked;
        now_ns += gap_ns;
    }
    return marked / static_cast<double>(frames);
}

std::uint64_t gap_at(double share_of_rate, std::uint64_t rate) {
    return static_cast<std::uint64_t>(frame_bytes * 8e9 / (share_of_rate * static_cast<double>(rate)));
}

std::uint32_t burst_before_a_mark(std::uint64_t rate) {
    atp_virtual_queue queue = atp_queue_of_link(rate, 0);
    std::uint32_t bytes = 0;
    while (atp_queue_add(&queue, 0, 100) == 0) bytes += 100;
    return bytes;
}

TEST(VirtualQueue, SteadyLoadIsMarkedAboveNinetyEightPercentOfTheRate) {
    for (const std::uint64_t rate : {UINT64_C(1'000'000), half_gigabit, UINT64_C(100'000'000'000)}) {
        std::uint64_t now_ns = 7;
        atp_virtual_queue queue = atp_queue_of_link(rate, now_ns);
        EXPECT_EQ(marked_share(queue, now_ns, gap_at(0.5, rate)), 0) << rate;
        EXPECT_EQ(marked_share(queue, now_ns, gap_at(0.97, rate)), 0) << rate;
        EXPECT_GT(marked_share(queue, now_ns, gap_at(0.99, rate)), 0.5) << rate;
        EXPECT_GT(marked_share(queue, now_ns, gap_at(1.5, rate)), 0.98) << rate;
    }
}

TEST(VirtualQueue, BurstIsMarkedBeyondALimitThatGrowsWithTheRate) {
    EXPECT_NEAR(burst_before_a_mark(half_gigabit), 100'000, 250);
    EXPECT_NEAR(burst_before_a_mark(10'000'000'000), 174'400, 250);
    EXPECT_NEAR(burst_before_a_mark(100'000'000'000), 880'000, 500);
}

TEST(VirtualQueue, TwoFramesOfAnOffloadOnAnIdleLinkAreUnmarked) {
    atp_virtual_queue queue = atp_queue_of_link(half_gigabit, 0);
    EXPECT_EQ(atp_queue_add(&queue, 0, 65'000), 0);
    EXPECT_EQ(atp_queue_add(&queue, 0, 65'000), 0);
    EXPECT_EQ(atp_queue_add(&queue, 0, 100), 1);
}

TEST(VirtualQueue, LargeFramesAtTheFullRateAreMarkedAsSmallOnesAre) {
    atp_virtual_queue queue = atp_queue_of_link(half_gigabit, 0);
    const std::uint64_t gap_ns = UINT64_C(65'000) * 16;
    unsigned marked = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        if (atp_queue_add(&queue, i * gap_ns, 65'000) != 0) ++marked;
    }
    EXPECT_GT(marked, 800U);
}

TEST(VirtualQueue, EveryByteOfAPortCountsWhoeverSentIt) {
    std::uint64_t now_ns = 0;
    atp_virtual_queue queue = atp_queue_of_link(half_gigabit, now_ns);
    unsigned marked = 0;
    for (unsigned i = 0; i < 20'000; ++i, now_ns += gap_at(0.5, half_gigabit)) {
        atp_queue_add(&queue, now_ns, frame_bytes);                     // another sender's
        if (atp_queue_add(&queue, now_ns, frame_bytes) != 0) ++marked;  // ours, half of the rate
    }
    EXPECT_GT(marked, 15'000U);
}

TEST(VirtualQueue, MarksEndSoonAfterALongOverload) {
    std::uint64_t now_ns = 0;
    atp_virtual_queue queue = atp_queue_of_link(half_gigabit, now_ns);
    EXPECT_GT(marked_share(queue, now_ns, gap_at(3, half_gigabit)), 0.99);
    now_ns += 2'000'000;  // drains the limit of a queue of twice the limit
    EXPECT_EQ(atp_queue_add(&queue, now_ns, frame_bytes), 0);
}

TEST(VirtualQueue, IdleTimeOfAnyLengthLeavesAnEmptyQueue) {
    for (const std::uint64_t idle_ns : {UINT64_C(2'000'000), UINT64_C(3'600'000'000'000), UINT64_C(1) << 54U}) {
        std::uint64_t now_ns = 5;
        atp_virtual_queue queue = atp_queue_of_link(half_gigabit, now_ns);
        EXPECT_GT(marked_share(queue, now_ns, 0), 0.9);
        now_ns += idle_ns;
        EXPECT_EQ(atp_queue_add(&queue, now_ns, frame_bytes), 0) << idle_ns;
        EXPECT_LT(queue.empty_at - (now_ns << ATP_QUEUE_TICK_LOG2), queue.limit);
    }
}

TEST(VirtualQueue, WorksAcrossTheWrapOfItsClock) {
    const std::uint64_t wrap_ns = std::numeric_limits<std::uint64_t>::max() >> ATP_QUEUE_TICK_LOG2;
    std::uint64_t now_ns = wrap_ns - 1000;
    atp_virtual_queue full = atp_queue_of_link(half_gigabit, now_ns);
    for (unsigned i = 0; i < 100; ++i) atp_queue_add(&full, now_ns, frame_bytes);
    EXPECT_LT(full.empty_at, now_ns << ATP_QUEUE_TICK_LOG2) << "it will be empty after the wrap";
    EXPECT_EQ(atp_queue_add(&full, now_ns, frame_bytes), 1);
    EXPECT_EQ(atp_queue_add(&full, now_ns + 2000, frame_bytes), 1);

    now_ns = wrap_ns - 10'000'000;
    atp_virtual_queue drained = atp_queue_of_link(half_gigabit, now_ns);
    for (unsigned i = 0; i < 100; ++i) atp_queue_add(&drained, now_ns, frame_bytes);
    EXPECT_EQ(atp_queue_add(&drained, wrap_ns + 1000, frame_bytes), 0);
}

// The same queue as bytes that wait, in numbers that do not round.
struct Model {
    double drain_bytes_per_ns;
    double limit_bytes;
    double waiting = 0;
    std::uint64_t last_ns = 0;

    // Bytes in front of a frame.
    double add(std::uint64_t now_ns, std::uint32_t bytes) {
        waiting = std::max(0.0, waiting - drain_bytes_per_ns * static_cast<double>(now_ns - last_ns));
        waiting = std::min(waiting, 2 * limit_bytes);
        last_ns = now_ns;
        return std::exchange(waiting, waiting + bytes);
    }
};

RC_GTEST_PROP(VirtualQueue, MarksWhatAQueueOfBytesMarks, ()) {
    const auto rate = static_cast<std::uint64_t>(*rc::gen::inRange<std::int64_t>(1'000'000, 400'000'000'000));
    const double drain = 0.98 * static_cast<double>(rate) / 8e9;
    Model model{.drain_bytes_per_ns = drain, .limit_bytes = 96'000 + 64'000 * drain};
    std::uint64_t now_ns = 0;
    atp_virtual_queue queue = atp_queue_of_link(rate, now_ns);
    for (unsigned i = 0; i < 300; ++i) {
        const auto bytes = *rc::gen::inRange<std::uint32_t>(60, 65'000);
        now_ns += static_cast<std::uint64_t>(*rc::gen::inRange(0, 300) / 100.0 * bytes / drain);
        const double waiting = model.add(now_ns, bytes);
        const bool is_marked = atp_queue_add(&queue, now_ns, bytes) != 0;
        // Rounding may decide for a queue that is as long as the limit.
        if (std::abs(waiting - model.limit_bytes) > 0.01 * model.limit_bytes) {
            RC_ASSERT(is_marked == (waiting > model.limit_bytes));
        }
    }
}

// A sender of equal frames at a share of the link's rate.
struct Sender {
    std::uint32_t number;
    double share;
    std::uint32_t weight = 1;
};

constexpr std::uint32_t others = ATP_SENDER_OTHERS;
constexpr std::uint32_t job = 1;

// Which share of each sender's frames is marked within a second.
std::vector<double> marked_shares(atp_shared_queue& queue, std::uint64_t& now_ns, const std::vector<Sender>& senders) {
    constexpr std::uint64_t step_ns = 1000;
    const double bytes_per_step = half_gigabit / 8e9 * step_ns;
    std::vector<double> due(senders.size());
    std::vector<double> sent(senders.size());
    std::vector<double> marked(senders.size());
    for (unsigned step = 0; step < 1'000'000; ++step, now_ns += step_ns) {
        for (std::size_t i = 0; i < senders.size(); ++i) {
            due[i] += senders[i].share * bytes_per_step;
            if (due[i] < frame_bytes) continue;
            due[i] -= frame_bytes;
            sent[i] += 1;
            if (atp_shared_queue_add(&queue, now_ns, frame_bytes, senders[i].number, senders[i].weight) != 0)
                ++marked[i];
        }
    }
    for (std::size_t i = 0; i < senders.size(); ++i) marked[i] /= std::max(sent[i], 1.0);
    return marked;
}

std::vector<double> marked_shares(const std::vector<Sender>& senders) {
    std::uint64_t now_ns = 5;
    atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
    return marked_shares(queue, now_ns, senders);
}

TEST(SharedQueue, SenderThatIsAloneMayUseTheWholeRate) {
    for (const std::uint32_t number : {others, job, ATP_QUEUE_SENDERS - 1}) {
        EXPECT_EQ(marked_shares({{number, 0.97, 7}})[0], 0) << number;
        EXPECT_GT(marked_shares({{number, 1.1, 7}})[0], 0.9) << number;
    }
}

TEST(SharedQueue, OnlyASenderThatUsesMoreThanHalfIsMarked) {
    for (const auto& [first, second] : {std::pair{0.2, 0.9}, {0.45, 0.6}, {0.9, 0.2}, {0.6, 0.45}}) {
        for (const std::uint32_t other : {others, job + 1}) {
            const auto marked = marked_shares({{job, first}, {other, second}});
            EXPECT_EQ(marked[first < second ? 0 : 1], 0) << first << " beside " << other;
            EXPECT_GT(marked[first < second ? 1 : 0], 0.5) << first << " beside " << other;
        }
    }
}

TEST(SharedQueue, EveryoneIsMarkedIfAllUseMoreThanTheirParts) {
    for (const double share : marked_shares({{job, 0.6}, {others, 0.7}})) EXPECT_GT(share, 0.9);
    for (const double share : marked_shares({{1, 0.4}, {2, 0.4}, {3, 0.4}})) EXPECT_GT(share, 0.8);
}

TEST(SharedQueue, TenantsShareByWeight) {
    // Parts of 0.735 and 0.245.
    const auto first = marked_shares({{1, 0.70, 3}, {2, 0.40, 1}});
    EXPECT_EQ(first[0], 0);
    EXPECT_GT(first[1], 0.5);
    const auto second = marked_shares({{1, 0.90, 3}, {2, 0.20, 1}});
    EXPECT_GT(second[0], 0.5);
    EXPECT_EQ(second[1], 0);
}

TEST(SharedQueue, AllJobsTogetherHaveHalfBesideOthersWhateverTheirWeights) {
    // Parts of 0.3675, 0.1225 and 0.49.
    const auto marked = marked_shares({{1, 0.33, 3}, {2, 0.20, 1}, {others, 0.55}});
    EXPECT_EQ(marked[0], 0);
    EXPECT_GT(marked[1], 0.5);
    EXPECT_GT(marked[2], 0.5);
}

TEST(SharedQueue, WhatASenderLeavesIsDividedAmongTheRest) {
    // 0.1 of 0.98 is taken, so the two others may have 0.44 each.
    const auto marked = marked_shares({{1, 0.1}, {2, 0.42}, {3, 0.6}});
    EXPECT_EQ(marked[0], 0);
    EXPECT_EQ(marked[1], 0);
    EXPECT_GT(marked[2], 0.3);
}

TEST(SharedQueue, SenderThatSlowsDownIsSoonUnmarked) {
    std::uint64_t now_ns = 0;
    atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
    marked_shares(queue, now_ns, {{job, 0.2}, {others, 2}});
    const auto marked = marked_shares(queue, now_ns, {{job, 0.8}, {others, 0.4}});
    EXPECT_GT(marked[0], 0.9);
    EXPECT_LT(marked[1], 0.001);
}

TEST(SharedQueue, SenderThatHasEndedLeavesItsPart) {
    std::uint64_t now_ns = 0;
    atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
    marked_shares(queue, now_ns, {{1, 1, 1000}, {2, 1, 1}});
    EXPECT_LT(marked_shares(queue, now_ns, {{2, 0.97, 1}})[0], 0.01);
}

TEST(SharedQueue, HeaviestWeightsOfAFastLinkKeepTheirParts) {
    // 1,000 : 500 of 400 Gbit/s, so a frame takes less than a tick of a sender of weight 1.
    constexpr std::uint64_t rate = 400'000'000'000;
    std::uint64_t now_ns = 0;
    atp_shared_queue queue = atp_shared_queue_of_link(rate, now_ns);
    std::array<unsigned, 2> marked{};
    for (unsigned frame = 0; frame < 600'000; ++frame) {  // 0.6 and 0.6 of the rate
        now_ns += frame % 2 == 0 ? 50 : 0;
        if (atp_shared_queue_add(&queue, now_ns, frame_bytes, 1 + frame % 2, frame % 2 == 0 ? 1000 : 500) != 0)
            ++marked[frame % 2];
    }
    EXPECT_EQ(marked[0], 0U);
    EXPECT_GT(marked[1], 150'000U);
}

TEST(SharedQueue, ShortFramesOfAHeavySenderCount) {
    // Two of weight 1,000 at 800 Gbit/s: short frames at 0.65 of the rate, and long ones at 0.42.
    std::uint64_t now_ns = 0;
    atp_shared_queue queue = atp_shared_queue_of_link(800'000'000'000, now_ns);
    std::array<unsigned, 2> marked{};
    for (unsigned step = 0; step < 40'000; ++step, now_ns += 214) {  // a long frame takes 90 ns
        if (atp_shared_queue_add(&queue, now_ns, 9000, 1, 1000) != 0) ++marked[0];
        for (unsigned frame = 0; frame < 45; ++frame) {
            if (atp_shared_queue_add(&queue, now_ns, 306, 2, 1000) != 0) ++marked[1];
        }
    }
    EXPECT_EQ(marked[0], 0U);
    EXPECT_GT(marked[1], 45U * 4'000);
}

TEST(SharedQueue, WeightsOfJobsDoNotConcernOthersBelowTheirHalf) {
    for (const std::uint32_t weight : {1U, 10U, 1000U}) {
        const auto marked = marked_shares({{1, 0.15, weight}, {2, 0.55, 1}, {others, 0.35}});
        EXPECT_EQ(marked[0], 0) << weight;
        EXPECT_GT(marked[1], 0.3) << weight;
        EXPECT_EQ(marked[2], 0) << weight;
    }
}

TEST(SharedQueue, PauseOfAnyLengthLeavesEmptyQueues) {
    for (const std::uint64_t idle_ns : {UINT64_C(20'000'000), UINT64_C(60'000'000'000), UINT64_C(1) << 53U}) {
        std::uint64_t now_ns = 5;
        atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
        marked_shares(queue, now_ns, {{1, 1, 3}, {2, 1, 1}, {others, 1}});
        now_ns += idle_ns;
        for (const std::uint32_t sender : {1U, 2U, others}) {
            EXPECT_EQ(atp_shared_queue_add(&queue, now_ns, frame_bytes, sender, 1), 0) << idle_ns;
        }
    }
}

TEST(SharedQueue, ClockOfAProcessorThatIsBehindChangesNothing) {
    std::uint64_t now_ns = 1'000'000;
    atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
    atp_shared_queue_add(&queue, now_ns, frame_bytes, job, 1);
    const atp_shared_queue before = queue;
    atp_shared_queue_add(&queue, now_ns - 2000, 0, job, 1);
    EXPECT_EQ(queue.clock_of_one, before.clock_of_one);
    EXPECT_EQ(queue.counted_to, before.counted_to);
    EXPECT_EQ(queue.of[job].empty_at, before.of[job].empty_at);
}

}  // namespace
}  // namespace atp::protocol
