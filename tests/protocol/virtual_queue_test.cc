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

// Shares of the frames of jobs and of others that are marked, if they send at these shares of the rate.
std::pair<double, double> marked_shares(atp_shared_queue& queue, std::uint64_t& now_ns, double jobs, double others) {
    constexpr std::uint64_t step_ns = 1000;
    const double bytes_per_step = half_gigabit / 8e9 * step_ns;
    std::array<double, ATP_CLASSES> due{};
    std::array<double, ATP_CLASSES> sent{};
    std::array<double, ATP_CLASSES> marked{};
    for (unsigned step = 0; step < 1'000'000; ++step, now_ns += step_ns) {
        for (const auto& [sender, share] : {std::pair{ATP_CLASS_JOBS, jobs}, {ATP_CLASS_OTHERS, others}}) {
            due[sender] += share * bytes_per_step;
            if (due[sender] < frame_bytes) continue;
            due[sender] -= frame_bytes;
            sent[sender] += 1;
            if (atp_shared_queue_add(&queue, now_ns, frame_bytes, sender) != 0) marked[sender] += 1;
        }
    }
    return {marked[0] / std::max(sent[0], 1.0), marked[1] / std::max(sent[1], 1.0)};
}

TEST(SharedQueue, ClassThatIsAloneMayUseTheWholeRate) {
    for (const bool jobs : {true, false}) {
        std::uint64_t now_ns = 0;
        atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
        const auto marked_at = [&](double share) {
            const auto [of_jobs, of_others] = marked_shares(queue, now_ns, jobs ? share : 0, jobs ? 0 : share);
            return of_jobs + of_others;
        };
        EXPECT_EQ(marked_at(0.97), 0);
        EXPECT_GT(marked_at(1.1), 0.9);
    }
}

TEST(SharedQueue, OnlyAClassThatUsesMoreThanHalfIsMarked) {
    for (const auto& [jobs, others] : {std::pair{0.2, 0.9}, {0.45, 0.6}, {0.9, 0.2}, {0.6, 0.45}}) {
        std::uint64_t now_ns = 0;
        atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
        const auto [of_jobs, of_others] = marked_shares(queue, now_ns, jobs, others);
        EXPECT_EQ(jobs < others ? of_jobs : of_others, 0) << jobs;
        EXPECT_GT(jobs < others ? of_others : of_jobs, 0.5) << jobs;
    }
}

TEST(SharedQueue, BothClassesAreMarkedIfBothUseMoreThanHalf) {
    std::uint64_t now_ns = 0;
    atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
    const auto [of_jobs, of_others] = marked_shares(queue, now_ns, 0.6, 0.7);
    EXPECT_GT(of_jobs, 0.9);
    EXPECT_GT(of_others, 0.9);
}

TEST(SharedQueue, ClassThatSlowsDownIsSoonUnmarked) {
    std::uint64_t now_ns = 0;
    atp_shared_queue queue = atp_shared_queue_of_link(half_gigabit, now_ns);
    marked_shares(queue, now_ns, 0.2, 2);
    const auto [of_jobs, of_others] = marked_shares(queue, now_ns, 0.8, 0.4);
    EXPECT_GT(of_jobs, 0.9);
    EXPECT_LT(of_others, 0.001);
}

}  // namespace
}  // namespace atp::protocol
