// SPDX-License-Identifier: Apache-2.0
// One rank of `atp bench`: forms a communicator, runs the collective on tensors of each size, and verifies every bit of
// the results.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/atp/bench_collective.h"
#include "apps/common/interruption.h"
#include "base/counters.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "comm/options.h"
#include "numeric/element_type.h"
#include "store/rendezvous.h"
#include "store/store.h"

namespace atp::apps {

struct BenchRank;
struct BenchSize;
using BenchMeasured = std::function<void(const BenchSize&)>;

struct BenchRank {
    std::uint32_t rank = 0;
    std::uint32_t world = 0;
    std::string rendezvous;            // host:port
    bool serves_store = true;          // rank 0 serves the store there; false: another process does
    std::vector<std::uint64_t> sizes;  // bytes per tensor
    std::uint32_t rounds = 20;         // measured operations per size
    std::uint32_t warmup = 3;          // operations before them, not measured
    numeric::ElementType type = numeric::ElementType::float32;
    Collective collective = Collective::all_reduce;
    double magnitude = 0;  // of the largest value; 0: the usual one
    comm::Options options;
    std::string system = "atp";  // for the output
    // Measures other work of the communicator than one collective of each size; empty: it does not. What to measure
    // then follows from the flags of another program.
    std::function<Result<BenchSize>(const BenchRank&, comm::Communicator&, store::Rendezvous&)> measure{};
    // Takes part in another way than as a rank of a communicator; empty: it does not.
    std::function<Result<void>(const BenchRank&, store::Store&, Interruption&, const BenchMeasured&)> take_part{};
};

// tools/write_events writes the counters of a benchmark from src/events.toml.
// Of rank 0, over all channels.
struct BenchCounters {
    std::uint64_t packets = 0;            // packets of fragments sent, resends included
    std::uint64_t resent = 0;             // packets sent again
    std::uint64_t resent_newer = 0;       // packets sent again because newer ACKs arrived
    std::uint64_t probes = 0;             // PROBEs sent
    std::uint64_t stale_acks = 0;         // ACKs of fragments that are not in flight
    std::uint64_t halvings = 0;           // halvings of the congestion window
    std::uint64_t float_fragments = 0;    // fragments sent as floats
    std::uint64_t dropped_by_kernel = 0;  // packets dropped because the receive buffer was full
    std::uint64_t group_results = 0;      // results received by multicast
};

inline constexpr std::array bench_fields{
    counter<&BenchCounters::packets>("packets"),
    counter<&BenchCounters::resent>("resent"),
    counter<&BenchCounters::resent_newer>("resent_newer"),
    counter<&BenchCounters::probes>("probes"),
    counter<&BenchCounters::stale_acks>("stale_acks"),
    counter<&BenchCounters::halvings>("halvings"),
    counter<&BenchCounters::float_fragments>("float_fragments"),
    counter<&BenchCounters::dropped_by_kernel>("dropped_by_kernel"),
    counter<&BenchCounters::group_results>("multicast_results"),
};
// End of the written part.

struct BenchSize {
    std::uint64_t bytes = 0;
    std::vector<double> seconds;   // per round, of the slowest rank
    double cpu_seconds = 0;        // of all ranks in these rounds; to clear and verify tensors does not count
    BenchCounters counters;        // while this size was measured, warm-up included
    double formation_seconds = 0;  // until rank 0 had formed the job, with the wait for the others
    std::uint32_t host_ranks = 1;  // that shared memory with rank 0, itself included
    std::string layout{};          // of the job
    std::uint32_t lanes = 0;
    std::uint32_t window = 0;
    bool results_by_group = false;     // the last result of every channel
    std::vector<std::string> without;  // features that the kernel refused to rank 0's sockets, and why
};

// Calls `measured` on rank 0 after each size. A wrong sum is an error. If a signal came, the rank leaves the job, which
// notifies the other ranks, and the call fails.
[[nodiscard]] Result<void> run_bench_rank(const BenchRank& bench, Interruption& interruption,
                                          const BenchMeasured& measured);

// Runs an operation in each round, after all ranks are ready for it, and verifies its result.
struct BenchOperation {
    std::function<Result<void>()> barrier;
    std::function<void()> clear;
    std::function<Result<void>()> run;
    std::function<std::optional<std::size_t>()> wrong;  // element of the result
};
// Times and processor time of all ranks, from those of each. `number`: of this call, from 0; all ranks call it with
// equal numbers.
[[nodiscard]] Result<BenchSize> gather_rounds(store::Rendezvous& rendezvous, std::size_t number, std::uint64_t bytes,
                                              const std::vector<double>& own_seconds, double own_cpu_seconds);
[[nodiscard]] Failure wrong_result(const BenchRank& bench, std::uint64_t bytes, std::size_t element);
// As gather_rounds(), after it has measured the operation.
[[nodiscard]] Result<BenchSize> measure_rounds(const BenchRank& bench, store::Rendezvous& rendezvous,
                                               std::size_t number, std::uint64_t bytes,
                                               const BenchOperation& operation);

}  // namespace atp::apps
