// SPDX-License-Identifier: Apache-2.0
#include "figure/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace atp::figure {
namespace {

TEST(Parallel, EveryIndexRunsOnce) {
    for (const unsigned threads : {1U, 2U, 7U}) {
        std::vector<std::atomic<int>> done(100);
        for_each_on_threads(done.size(), threads, [&](std::size_t i) { ++done[i]; });
        for (const auto& count : done) EXPECT_EQ(count, 1);
    }
    for_each_on_threads(0, 4, [](std::size_t) { FAIL(); });
}

TEST(Parallel, ExceptionIsRethrownAndStopsFurtherWork) {
    for (const unsigned threads : {1U, 4U}) {
        std::atomic<unsigned> begun = 0;
        const auto work = [&](std::size_t i) {
            ++begun;
            if (i == 3) throw std::runtime_error("three");
        };
        EXPECT_THROW(for_each_on_threads(1'000'000, threads, work), std::runtime_error);
        EXPECT_LT(begun, 1'000'000U);
    }
}

}  // namespace
}  // namespace atp::figure
