// SPDX-License-Identifier: Apache-2.0
#include "apps/common/cpu_time.h"

#include <gtest/gtest.h>

#include <thread>

namespace atp::apps {
namespace {

double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void work(double seconds) {
    const double end = thread_seconds() + seconds;
    while (thread_seconds() < end) {
    }
}

TEST(CpuTimeTest, CountsAllThreadsAndNothingBeforeStart) {
    CpuTime cpu;
    cpu.aside([] { work(0.05); });
    work(0.05);
    cpu.start();
    std::thread([] { work(0.02); }).join();
    cpu.stop();
    EXPECT_GE(cpu.seconds(), 0.02);
    EXPECT_LT(cpu.seconds(), 0.05);
}

TEST(CpuTimeTest, LeavesOutWhatRunsAside) {
    CpuTime cpu;
    cpu.start();
    work(0.01);
    EXPECT_EQ(cpu.aside([] {
        work(0.05);
        return 7;
    }),
              7);
    cpu.stop();
    EXPECT_GE(cpu.seconds(), 0.01);
    EXPECT_LT(cpu.seconds(), 0.04);
}

}  // namespace
}  // namespace atp::apps
