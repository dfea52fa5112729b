// SPDX-License-Identifier: Apache-2.0
// Many small runs. The seed of a run determines topology, sizes, windows, memory and faults. Jobs join, sum, fail and
// form again. Every run has a phase of faults and then a phase without faults, in which all jobs must finish within
// healed_phase.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "sim/report.h"
#include "sim/scenario.h"

namespace atp::sim {

// Time to finish without faults: the hold time of a switch, a new incarnation, timers backed off to 200 ms.
inline constexpr Duration healed_phase = std::chrono::seconds(14);

// Which scenarios seeds draw.
enum class SwarmProfile : std::uint8_t {
    mixed,    // bursts of sums under many faults, and jobs of seconds with one outage
    outages,  // only the latter
    calm,     // the same without the outage, so that no rank may fail
};

[[nodiscard]] Scenario draw_scenario(std::uint64_t seed, SwarmProfile profile = SwarmProfile::mixed);

struct SwarmOptions {
    std::uint64_t first_seed = 1;
    std::uint64_t runs = 1;
    unsigned threads = 1;
    SwarmProfile profile = SwarmProfile::mixed;
    const std::atomic<bool>* stop = nullptr;
    // `failed` receives each failed run, `progress` the number of finished runs. Never called by two threads at once.
    std::function<void(const Report&)> failed;
    std::function<void(std::uint64_t)> progress;
};

struct SwarmSummary {
    std::uint64_t runs = 0;
    std::uint64_t failures = 0;
    std::uint64_t packet_hops = 0;
    std::uint64_t fragments = 0;  // completed
    std::uint64_t incarnations = 0;
    std::uint64_t formed_again = 0;  // runs in which a job formed again after a failure
    std::uint64_t errors = 0;        // that ranks read
    std::uint64_t resends = 0;
    std::uint64_t lost = 0;  // packets, by random loss and full queues
    std::uint64_t slowest_seed = 0;
    Duration slowest{};  // virtual time until the last job is done
};

[[nodiscard]] SwarmSummary run_swarm(const SwarmOptions& options);

}  // namespace atp::sim
