// SPDX-License-Identifier: Apache-2.0
// A standard workload to measure the speed of the simulator.
#pragma once

#include <cstdint>

namespace atp::sim {

struct WorkloadResult {
    std::uint64_t packet_hops = 0;
    double seconds = 0;  // wall-clock time
    bool verified = false;
};

// Two racks of eight workers, 62 lanes, two levels of aggregation, no faults. A state machine processes every packet at
// every hop, and every sum is verified. `bytes` per worker determine the duration.
[[nodiscard]] WorkloadResult run_standard_workload(std::uint64_t bytes = 2'000'000);

}  // namespace atp::sim
