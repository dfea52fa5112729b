// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "control/coverage.h"
#include "control/data_plane.h"
#include "control/in_path_agent.h"
#include "control/link_senders.h"
#include "control/table_slices.h"
#include "control/tenants.h"

namespace atp::control {

// Serves the jobs of a data plane in the path: admits them from passing control messages (InPathAgent), removes those
// whose JOINs have stopped, and forwards those unaggregated of which only a part passes (Coverage). With tenants, each
// job has the slice of its tenant (TableSlices).
//
// Ownership: uses the data plane, which must live longer.
// Calling order: set_tenants(), unless the switch is open; take_over() once, if the data plane has jobs of an earlier
// process; then handle_message() for each
//   control message, and poll() at least every second.
// Threads: none.
// Failure: as DataPlane.
class DataPlaneAgent {
  public:
    DataPlaneAgent(DataPlane& plane, std::uint32_t jobs, Duration hold, std::uint8_t level,
                   const TableSlicesConfig& table = {})
        : plane_(plane), level_(level), admission_(jobs, hold, level), slices_(table) {}

    // nullptr: the switch is open. A job stays with the tenant that it has.
    void set_tenants(std::shared_ptr<const Tenants> tenants);
    void take_over(Time now);
    void handle_message(const PassingMessage& message, Time now);
    void poll(Time now);

    [[nodiscard]] std::uint64_t not_admitted() const { return admission_.not_admitted(); }
    [[nodiscard]] const TableSlices& slices() const { return slices_; }
    // Jobs that are forwarded unaggregated, in ascending order.
    [[nodiscard]] std::vector<std::uint32_t> passing() const { return coverage_.passing(); }

  private:
    [[nodiscard]] bool admit(const AdmittedJob& job, Time now);
    void charge(const AdmittedJob& job, Time now);
    void name_sender(const AdmittedJob& job);
    [[nodiscard]] std::string_view tenant_of(const AdmittedJob& job) const;
    void assess(Time now);

    DataPlane& plane_;
    std::uint8_t level_;
    InPathAgent admission_;
    Coverage coverage_;
    std::shared_ptr<const Tenants> tenants_;
    TableSlices slices_;
    LinkSenders senders_;
    Time checks_next_{};
};

}  // namespace atp::control
