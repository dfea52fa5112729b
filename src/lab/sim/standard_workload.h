// SPDX-License-Identifier: Apache-2.0
// A standard piece of work, for whoever measures the simulator's speed.
#pragma once

#include <cstdint>

namespace atp::sim {

struct WorkloadResult {
    std::uint64_t packet_hops = 0;
    double seconds = 0;  // of this machine's time
    bool verified = false;
};

// Two racks of eight workers, 62 lanes, two levels of aggregation, no faults: every packet meets a state machine at
// every hop, and every sum is verified. `bytes` of each worker scale its length.
[[nodiscard]] WorkloadResult run_standard_workload(std::uint64_t bytes = 2'000'000);

}  // namespace atp::sim
