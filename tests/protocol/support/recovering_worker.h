// SPDX-License-Identifier: Apache-2.0
// A worker that sends fragments, loses packets and recovers.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "support/worker_bench.h"

namespace atp::testing {

class RecoveringWorker : public ::testing::Test {
  protected:
    // Sends `fragments` fragments, at most the window of 16.
    void send(std::size_t fragments) {
        ASSERT_TRUE(bench.submit_fragments(fragments).has_value());
        (void)bench.packets();
    }
    void ack(std::uint32_t seq, unsigned flags = 0) { bench.handle(bench.ack(seq, 3, flags)); }
    // The timer expires. The result of fragment 0 arrives 50 ms after its gradient was sent, twice.
    static void learn_minimum_timeout(WorkerBench& bench) {
        const Time sent_at = bench.now;
        bench.expire();
        (void)bench.packets();
        bench.now = sent_at + std::chrono::milliseconds(50);
        bench.handle(bench.ack(0));
        bench.handle(bench.ack(0));
    }

    WorkerBench bench;
};

}  // namespace atp::testing
