// SPDX-License-Identifier: Apache-2.0
// Liveness check: after faults stop, every operation completes, from any state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "check/model.h"
#include "check/report.h"

namespace atp::check {

// Continues from a state without further faults. Every packet is delivered, first in first out, and timers fire when
// nothing is in flight. If a worker has crashed, the operations of the other workers end with an error at their
// deadline.
class HealedRun {
  public:
    explicit HealedRun(Model& model) : model_(model) {}

    // Returns an empty text if every operation ended correctly and in time, otherwise the violation.
    std::string run(std::span<const std::uint32_t> state);
    // Also appends each step to `trace`.
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
    Words queue_;  // packets in the order of sending
    std::size_t head_ = 0;
    std::vector<TraceStep>* trace_ = nullptr;
};

[[nodiscard]] TraceStep trace_step(Model& model, std::span<const std::uint32_t> state, Action action);

}  // namespace atp::check
