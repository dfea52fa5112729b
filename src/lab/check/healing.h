// SPDX-License-Identifier: Apache-2.0
// Liveness: from every state, once faults stop, everything completes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "check/model.h"
#include "check/report.h"

namespace atp::check {

// Runs the system on from a state as a kind network would: every packet is delivered, first in first out, and timers
// fire when nothing is in flight. Where a worker has crashed, the others end with an error at their deadline.
class HealedRun {
  public:
    explicit HealedRun(Model& model) : model_(model) {}

    // Empty when everything ended well and in time; otherwise what went wrong.
    std::string run(std::span<const std::uint32_t> state);
    // The same, noting each step.
    std::string run(std::span<const std::uint32_t> state, std::vector<TraceStep>& trace);

  private:
    std::string go(std::span<const std::uint32_t> state);
    bool act(Action action);
    bool deliver_oldest();
    bool fire(Action::Kind kind);

    Model& model_;
    Words state_;
    Words next_;
    Words stayed_;
    Words queue_;  // packets in the order in which they were sent
    std::size_t head_ = 0;
    std::vector<TraceStep>* trace_ = nullptr;
};

[[nodiscard]] TraceStep trace_step(Model& model, std::span<const std::uint32_t> state, Action action);

}  // namespace atp::check
