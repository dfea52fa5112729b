// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "control/coverage.h"
#include "control/data_plane.h"
#include "control/in_path_agent.h"

namespace atp::control {

// Serves the jobs of a data plane in the path: admits them from passing control messages (InPathAgent), removes those
// whose JOINs have stopped, and forwards those unaggregated of which only a part passes (Coverage).
//
// Ownership: uses the data plane, which must live longer.
// Calling order: take_over() once, if the data plane has jobs of an earlier process; then handle_message() for each
//   control message, and poll() at least every second.
// Threads: none.
// Failure: as DataPlane.
class DataPlaneAgent {
  public:
    DataPlaneAgent(DataPlane& plane, std::uint32_t jobs, Duration hold, std::uint8_t level)
        : plane_(plane), level_(level), admission_(jobs, hold, level) {}

    void take_over(Time now);
    void handle_message(const PassingMessage& message, Time now);
    void poll(Time now);

    [[nodiscard]] std::uint64_t not_admitted() const { return admission_.not_admitted(); }
    // Jobs that are forwarded unaggregated, in ascending order.
    [[nodiscard]] std::vector<std::uint32_t> passing() const { return coverage_.passing(); }

  private:
    void assess(Time now);

    DataPlane& plane_;
    std::uint8_t level_;
    InPathAgent admission_;
    Coverage coverage_;
    Time checks_next_{};
};

}  // namespace atp::control
