// SPDX-License-Identifier: Apache-2.0
#include "comm/operation_times.h"

#include <gtest/gtest.h>

namespace atp::comm {
namespace {

constexpr Time at(int ms) { return Time(std::chrono::milliseconds(ms)); }

TEST(OperationTimes, OverlappingOperationsCountTheirTimeOnce) {
    OperationTimes times;
    times.begin(at(10));
    times.begin(at(20));
    times.end(at(30));
    times.end(at(50));
    times.begin(at(100));
    times.end(at(101));
    const OperationTimes::Sums sums = times.sums(at(200));
    EXPECT_EQ(sums.operations, 3U);
    EXPECT_EQ(sums.in_flight, std::chrono::milliseconds(41));
}

TEST(OperationTimes, OperationInFlightCountsUntilNow) {
    OperationTimes times;
    times.begin(at(10));
    EXPECT_EQ(times.sums(at(17)).in_flight, std::chrono::milliseconds(7));
    EXPECT_EQ(times.sums(at(19)).in_flight, std::chrono::milliseconds(9));
}

TEST(OperationTimes, WaitsOfSeveralThreadsAddUp) {
    OperationTimes times;
    times.wait(std::chrono::milliseconds(3));
    times.wait(std::chrono::milliseconds(4));
    EXPECT_EQ(times.sums(at(0)).waiting, std::chrono::milliseconds(7));
}

}  // namespace
}  // namespace atp::comm
