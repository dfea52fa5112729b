// SPDX-License-Identifier: Apache-2.0
#include "figure/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace atp::figure {

void for_each_on_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::exception_ptr first_thrown;
    const auto take_turns = [&] {
        for (std::size_t mine = next++; mine < count; mine = next++) {
            try {
                work(mine);
            } catch (...) {
                next = count;
                const std::scoped_lock lock(mutex);
                if (!first_thrown) first_thrown = std::current_exception();
            }
        }
    };
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) helpers.emplace_back(take_turns);
    take_turns();
    helpers.clear();  // joins the threads
    if (first_thrown) std::rethrow_exception(first_thrown);
}

}  // namespace atp::figure
