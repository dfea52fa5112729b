// SPDX-License-Identifier: Apache-2.0
// How the operations of a worker end at their deadlines.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "support/recovering_worker.h"

namespace atp::protocol {
namespace {

using std::chrono::milliseconds;
using testing::WorkerBench;
using WorkerDeadline = testing::RecoveringWorker;

TEST_F(WorkerDeadline, DeadlineFailsAllPendingOperationsWithTheMissingMembers) {
    const Time start = bench.now;
    ASSERT_TRUE(bench.submit({1, 2}, start + milliseconds(50)).has_value());
    ASSERT_TRUE(bench.submit({3, 4}).has_value());
    (void)bench.packets();
    bench.now += milliseconds(2);
    bench.handle(bench.wait(0, 0x1, 0x4));
    while (!bench.worker.failed()) bench.expire();
    EXPECT_EQ(bench.now, start + milliseconds(50)) << "the worker fails exactly at the deadline";
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 2U);
    for (const WorkerEvent& event : events) {
        EXPECT_EQ(event.kind, WorkerEvent::Kind::timed_out);
        EXPECT_EQ(event.elapsed, milliseconds(50));
        EXPECT_TRUE(event.answered);
        EXPECT_EQ(event.answered_at, start + milliseconds(2));
        EXPECT_EQ(event.missing_units, 0x1U);
        EXPECT_EQ(event.missing_members, 0x4U);
    }
    EXPECT_FALSE(bench.submit({5, 6}).has_value());
    EXPECT_TRUE(bench.packets().empty());
    EXPECT_EQ(bench.worker.poll_timeout(), never);
}

TEST_F(WorkerDeadline, DeadlineWithoutAServerAnswerReportsThat) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    (void)bench.packets();
    while (!bench.worker.failed()) bench.expire();
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_FALSE(events[0].answered);
    EXPECT_EQ(events[0].missing_units, 0U);
}

TEST_F(WorkerDeadline, CompleteOperationIsReportedAsCompletedIfAnEarlierOneTimesOut) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    ASSERT_TRUE(bench.submit({3, 4}).has_value());
    (void)bench.packets();
    ack(1);
    while (!bench.worker.failed()) bench.expire();
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].kind, WorkerEvent::Kind::timed_out);
    EXPECT_EQ(events[1].kind, WorkerEvent::Kind::completed);
}

TEST_F(WorkerDeadline, DeadlineHoldsBehindAnOperationWithALaterDeadline) {
    for (const Time of_the_first : {never, bench.now + milliseconds(80)}) {
        WorkerBench other;
        const Time start = other.now;
        ASSERT_TRUE(other.submit({1, 2}, of_the_first).has_value());
        ASSERT_TRUE(other.submit({3, 4}, start + milliseconds(20)).has_value());
        (void)other.packets();
        while (!other.worker.failed() && other.now < start + milliseconds(500)) other.expire();
        EXPECT_EQ(other.now, start + milliseconds(20));
        ASSERT_EQ(other.events().size(), 2U);
    }
}

TEST_F(WorkerDeadline, DeadlineOfACompleteOperationIsIgnored) {
    const Time start = bench.now;
    ASSERT_TRUE(bench.submit({1, 2}, start + milliseconds(80)).has_value());
    ASSERT_TRUE(bench.submit({3, 4}, start + milliseconds(20)).has_value());
    (void)bench.packets();
    ack(1);
    while (!bench.worker.failed()) bench.expire();
    EXPECT_EQ(bench.now, start + milliseconds(80));
}

TEST_F(WorkerDeadline, FailedWorkerDeliversNothing) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    (void)bench.packets();
    while (!bench.worker.failed()) bench.expire();
    ack(0);
    EXPECT_EQ(bench.outputs[0], (std::vector<float>{0, 0})) << "the caller may have freed the memory";
}

TEST_F(WorkerDeadline, OperationBeforeItsDeadlineCompletes) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    (void)bench.packets();
    ack(0);
    bench.now += milliseconds(50);
    bench.worker.handle_timeout(bench.now);
    EXPECT_FALSE(bench.worker.failed());
    EXPECT_EQ(bench.events().at(0).kind, WorkerEvent::Kind::completed);
}

}  // namespace
}  // namespace atp::protocol
