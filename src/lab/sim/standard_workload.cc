// SPDX-License-Identifier: Apache-2.0
#include "sim/standard_workload.h"

#include <chrono>

#include "sim/simulation.h"

namespace atp::sim {

WorkloadResult run_standard_workload(std::uint64_t bytes) {
    Scenario scenario;
    scenario.topology = {.shape = TopologySpec::Shape::racks, .first = 2, .second = 8};
    scenario.bytes = bytes;
    const auto begin = std::chrono::steady_clock::now();
    const Report report = run(scenario);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    return {.packet_hops = report.packet_hops, .seconds = elapsed.count(), .verified = report.passed()};
}

}  // namespace atp::sim
