// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "sim/fabric.h"
#include "sim/scenario.h"

namespace atp::sim {

// What the ranks of a scenario with one outage may read, and must read in time. It knows the outage, and nothing of the
// machines.
//
// Ownership: borrows the scenario and the fabric. Threads: none. Failure: none.
class Truth {
  public:
    Truth(const Scenario& scenario, const Fabric& fabric) : scenario_(scenario), fabric_(fabric) {}

    // Links are so good that no process can take loss for a failure, and there is at most one outage. Otherwise ranks
    // may read any error.
    [[nodiscard]] bool is_known() const;
    // Why this rank of this job must not read this error now; nullopt: it may.
    [[nodiscard]] std::optional<std::string> objection_to(unsigned job, unsigned rank, const Error& error,
                                                          Time now) const;
    // Why this packet, which arrives at a switch, is a FLUSH of level 0 for other racks than the one below the switch
    // (H17, docs/spec/hazards.md#h17). It would fetch nothing, and PROBEs would hide that.
    [[nodiscard]] std::optional<std::string> objection_to_flush(NodeId at, std::span<const std::byte> packet) const;
    // If the outage lasts until then, each rank of the jobs that it stops has failed.
    [[nodiscard]] Time fails_by() const;
    // Operations of the job cannot complete while the outage lasts.
    [[nodiscard]] bool stops(unsigned job) const;

  private:
    [[nodiscard]] const Outage& outage() const { return scenario_.faults.outages.front(); }
    [[nodiscard]] bool is_of_job(unsigned job) const;
    [[nodiscard]] bool is_culprit(unsigned job, const Error& error) const;
    // The others had given this rank up and left before its link came back, so that whom it waits for has really gone.
    [[nodiscard]] bool was_left(unsigned job, unsigned rank, Time now) const;
    // Shorter than any process can notice.
    [[nodiscard]] bool is_harmless() const;

    const Scenario& scenario_;
    const Fabric& fabric_;
};

}  // namespace atp::sim
