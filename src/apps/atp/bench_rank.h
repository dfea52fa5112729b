// SPDX-License-Identifier: Apache-2.0
// One rank of `atp bench`: forms a communicator, reduces tensors of each size, verifies every result to the last bit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/options.h"
#include "numeric/element_type.h"

namespace atp::apps {

struct BenchRank {
    std::uint32_t rank = 0;
    std::uint32_t world = 0;
    std::string rendezvous;            // host:port
    bool serves_store = true;          // rank 0 serves the store there; otherwise somebody else does
    std::vector<std::uint64_t> sizes;  // bytes of a tensor
    std::uint32_t rounds = 20;         // measured operations of each size
    std::uint32_t warmup = 3;          // before them
    numeric::ElementType type = numeric::ElementType::float32;
    comm::Options options;
};

// Of rank 0, all channels together.
struct BenchCounters {
    std::uint64_t packets = 0;       // it sent
    std::uint64_t resent = 0;        // of them, again
    std::uint64_t resent_newer = 0;  // of those, what newer ACKs called for
    std::uint64_t probes = 0;
    std::uint64_t stale_acks = 0;
    std::uint64_t halvings = 0;
    std::uint64_t float_fragments = 0;  // what did not fit integers
    std::uint64_t dropped_by_kernel = 0;
    std::uint64_t group_results = 0;  // that came by multicast

    friend BenchCounters operator-(const BenchCounters& now, const BenchCounters& before);
};

struct BenchSize {
    std::uint64_t bytes = 0;
    std::vector<double> seconds;  // of each round, by the rank that took longest
    BenchCounters counters;       // while this size was measured, its warm-up included
    std::uint32_t lanes = 0;
    std::uint32_t window = 0;
    bool results_by_group = false;     // the last of them, on all channels
    std::vector<std::string> without;  // what rank 0's sockets were refused, and why
};

// Calls `measured` on rank 0 after each size. A wrong sum is an error. SIGINT and SIGTERM leave the job, so that the
// others hear of it: Operation::wait, Reason::closed.
[[nodiscard]] Result<void> run_bench_rank(const BenchRank& bench,
                                          const std::function<void(const BenchSize&)>& measured);

}  // namespace atp::apps
