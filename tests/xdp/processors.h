// SPDX-License-Identifier: Apache-2.0
// Threads that run at the same time, even on a busy host.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace atp::test {

// Pins this thread to its own processor if the host has enough processors. If permitted, also gives the thread
// real-time priority.
inline void take_processor(unsigned number) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(number % std::thread::hardware_concurrency(), &one);
    sched_setaffinity(0, sizeof one, &one);
    const sched_param first{.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &first);
}

// A barrier at which threads spin, so that all of them continue at nearly the same time. Threads that sleep would wake
// one after another.
class Meeting {
  public:
    explicit Meeting(std::uint32_t threads) : threads_(threads) {}
    void wait() {
        const std::uint32_t turn = arrived_.fetch_add(1) / threads_;
        while (arrived_.load() < threads_ * (turn + 1)) std::this_thread::yield();
    }

  private:
    std::uint32_t threads_;
    std::atomic<std::uint32_t> arrived_ = 0;
};

}  // namespace atp::test
