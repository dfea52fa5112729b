// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace atp {

// Calls `work(i)` once for each i below `count`, on at most `threads` threads. The calling thread is one of them. After
// `*stop` is true, no further call begins; nullptr: nothing stops it.
template <class Work>
void for_each_in_parallel(std::uint64_t count, unsigned threads, const std::atomic<bool>* stop, const Work& work) {
    std::atomic<std::uint64_t> next = 0;
    const auto run = [&] {
        while (stop == nullptr || !stop->load(std::memory_order_relaxed)) {
            const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
            if (mine >= count) return;
            work(mine);
        }
    };
    std::vector<std::jthread> others;
    for (std::uint64_t i = 1; i < std::min<std::uint64_t>(threads, count); ++i) others.emplace_back(run);
    run();
    others.clear();  // joins the threads
}

}  // namespace atp
