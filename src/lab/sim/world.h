// SPDX-License-Identifier: Apache-2.0
// One run: nodes, jobs and links put together, and the loop that lets time pass.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/fabric.h"
#include "sim/job.h"
#include "sim/network.h"
#include "sim/report.h"
#include "sim/sampler.h"
#include "sim/scenario.h"
#include "sim/systems/background.h"

namespace atp::sim {

// Calling order: step() until it is false, then finish() once.
// Borrows the scenario and the trace, which outlive it. One thread.
class World {
  public:
    World(const Scenario& scenario, Trace* trace);
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // Lets the next event happen. False when nothing is left to happen, or the scenario's time is over.
    bool step();
    // Checks what must hold at the end, and tells what was seen.
    [[nodiscard]] Report finish();

    [[nodiscard]] Time now() const { return now_; }
    [[nodiscard]] std::uint64_t packet_hops() const { return network_.hops(); }
    [[nodiscard]] bool all_finished() const;
    [[nodiscard]] double share_done() const;  // of the jobs' fragments, roughly: for progress

  private:
    struct Node {
        bool down = false;
        Time paused_until{};
    };

    void arrive(const Event& event);
    void wake(const Event& event);
    void sample();
    void take_sample();
    void begin_outage(std::uint32_t index);
    void end_outage(std::uint32_t index);
    [[nodiscard]] NodeId node_of(const Outage& outage) const;

    void check_end();
    void check_reclaimable();

    const Scenario& scenario_;
    Trace* trace_;
    Fabric fabric_;
    EventQueue events_;
    Network::Programs programs_;
    Network network_;
    std::vector<protocol::Switch> switches_;
    switchml::Switch switchml_;
    std::vector<Node> nodes_;
    std::vector<std::string> failures_;
    unsigned unfinished_jobs_;
    std::vector<Job*> jobs_;               // among the programs
    std::vector<Background*> background_;  // likewise
    std::optional<Sampler> sampler_;
    Time now_{};
    std::uint64_t steps_ = 0;
};

}  // namespace atp::sim
