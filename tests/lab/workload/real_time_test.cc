// SPDX-License-Identifier: Apache-2.0
// Trains in real time with sums that only take time, or fail. No test expects an upper limit of a time.
#include "workload/real_time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace atp::workload {
namespace {

using std::chrono::milliseconds;

// Two buckets of one layer each; an iteration computes for 12 ms.
Workload two_layers() {
    return {.buckets = {{.elements = 4, .ready = milliseconds(4)}, {.elements = 2, .ready = milliseconds(8)}},
            .forward = {{.compute = milliseconds(2), .first = 1, .last = 2},
                        {.compute = milliseconds(2), .first = 0, .last = 1}}};
}

TrainingCalls::Wait sum_of(Duration duration) {
    return [duration]() -> Result<void> {
        std::this_thread::sleep_for(duration);
        return {};
    };
}

TEST(RealTime, EachIterationStartsAllBucketsInOrderAndTakesItsComputation) {
    std::vector<std::pair<unsigned, std::uint32_t>> started;
    std::size_t started_when_warm = 0;
    const auto seconds = train(two_layers(), {.warmup = 2, .measured = 3},
                               {.start = [&](std::uint32_t bucket, unsigned iteration) -> Result<TrainingCalls::Wait> {
                                    started.emplace_back(iteration, bucket);
                                    return sum_of({});
                                },
                                .warm = [&] { started_when_warm = started.size(); }});
    ASSERT_TRUE(seconds);
    ASSERT_EQ(seconds->size(), 3U);
    for (const double each : *seconds) EXPECT_GE(each, 0.012);
    ASSERT_EQ(started.size(), 10U);
    for (std::size_t at = 0; at < started.size(); ++at) {
        EXPECT_EQ(started[at], std::pair(static_cast<unsigned>(at / 2), static_cast<std::uint32_t>(at % 2)));
    }
    EXPECT_EQ(started_when_warm, 4U);
}

TEST(RealTime, SumsThatTakeLongerThanTheComputationBoundAnIteration) {
    const auto seconds =
        train(two_layers(), {.warmup = 0, .measured = 2},
              {.start = [](std::uint32_t, unsigned) -> Result<TrainingCalls::Wait> { return sum_of(milliseconds(20)); },
               .warm = {}});
    ASSERT_TRUE(seconds);
    ASSERT_EQ(seconds->size(), 2U);
    for (const double each : *seconds) EXPECT_GT(each, 0.040);
}

TEST(RealTime, FailedSumEndsTheTrainingAfterAllWaits) {
    std::promise<void> second_started;
    std::future<void> second_starts = second_started.get_future();
    bool second_waited = false;
    const auto start = [&](std::uint32_t bucket, unsigned) -> Result<TrainingCalls::Wait> {
        if (bucket == 1) {
            second_started.set_value();
            return [&]() -> Result<void> {
                second_waited = true;
                return {};
            };
        }
        return [&]() -> Result<void> {
            second_starts.wait_for(std::chrono::seconds(10));
            return fail(Operation::wait, Reason::failed, "rank 1", "gone");
        };
    };
    const auto seconds = train(two_layers(), {}, {.start = start, .warm = {}});
    ASSERT_FALSE(seconds);
    EXPECT_EQ(seconds.error().text, "gone");
    EXPECT_TRUE(second_waited);
}

TEST(RealTime, SumThatCannotStartEndsTheTraining) {
    const auto seconds = train(two_layers(), {},
                               {.start = [](std::uint32_t bucket, unsigned) -> Result<TrainingCalls::Wait> {
                                    if (bucket == 0) return sum_of({});
                                    return fail(Operation::all_reduce, Reason::closed, {}, "closed");
                                },
                                .warm = {}});
    ASSERT_FALSE(seconds);
    EXPECT_EQ(seconds.error().operation, Operation::all_reduce);
}

}  // namespace
}  // namespace atp::workload
