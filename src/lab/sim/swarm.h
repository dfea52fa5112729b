// SPDX-License-Identifier: Apache-2.0
// Many small runs. The seed of a run determines topology, sizes, windows, memory and faults. Every run has a phase of
// faults and then a phase without faults, in which all jobs must finish within healed_phase.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "sim/report.h"
#include "sim/scenario.h"

namespace atp::sim {

// Time to finish without faults: a deadline of up to 1 s, a new incarnation, timers backed off to 200 ms.
inline constexpr Duration healed_phase = std::chrono::seconds(4);

[[nodiscard]] Scenario draw_scenario(std::uint64_t seed);

struct SwarmOptions {
    std::uint64_t first_seed = 1;
    std::uint64_t runs = 1;
    unsigned threads = 1;
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
    std::uint64_t resends = 0;
    std::uint64_t lost = 0;  // packets, by random loss and full queues
    std::uint64_t slowest_seed = 0;
    Duration slowest{};  // virtual time until the last job is done
};

[[nodiscard]] SwarmSummary run_swarm(const SwarmOptions& options);

}  // namespace atp::sim
