// SPDX-License-Identifier: Apache-2.0
// One run: nodes, jobs and links, and the loop that advances virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/fabric.h"
#include "sim/job.h"
#include "sim/network.h"
#include "sim/processes.h"
#include "sim/report.h"
#include "sim/sampler.h"
#include "sim/scenario.h"
#include "sim/systems/background.h"
#include "sim/truth.h"

namespace atp::sim {

// Ownership: owns fabric, network and programs. Borrows the scenario and the trace, which must outlive it.
// Calling order: step() until it returns false, then finish() once.
// Threads: one.
class World {
  public:
    World(const Scenario& scenario, Trace* trace);
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // Processes the next event. False if no event is left or the time limit of the scenario is reached.
    bool step();
    // Checks the invariants of a finished run and returns the report.
    [[nodiscard]] Report finish();

    [[nodiscard]] Time now() const { return now_; }
    [[nodiscard]] std::uint64_t packet_hops() const { return network_.hops(); }
    [[nodiscard]] bool all_finished() const;
    [[nodiscard]] double share_done() const;  // estimated share of the jobs' fragments, 0 to 1, for progress reports

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
    void crash(const Outage& outage);
    void silence(NodeId node, Duration lasts);
    void cut(const Outage& outage, bool is_cut);
    void check_failures();
    [[nodiscard]] NodeId node_of(const Outage& outage) const;

    void check_end();
    void check_reclaimable();

    const Scenario& scenario_;
    Trace* trace_;
    Fabric fabric_;
    EventQueue events_;
    Truth truth_;
    Network::Programs programs_;
    Processes* processes_ = nullptr;  // the first of programs_
    Network network_;
    switchml::Switch switchml_;
    std::vector<Node> nodes_;
    std::vector<std::string> failures_;
    unsigned unfinished_jobs_;
    std::vector<Job*> jobs_;               // also in programs_
    std::vector<Background*> background_;  // also in programs_
    std::optional<Sampler> sampler_;
    Time now_{};
    std::uint64_t steps_ = 0;
};

}  // namespace atp::sim
