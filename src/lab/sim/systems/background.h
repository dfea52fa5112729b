// SPDX-License-Identifier: Apache-2.0
// Traffic of another application on a worker's link. It sends as fast as its transport allows, for a set time.
#pragma once

#include <string>

#include "sim/flow.h"
#include "sim/report.h"

namespace atp::sim {

// A flow without a set time stops when every job is done.
class Background final : public Program {
  public:
    Background(const Shared& shared, ProgramId id, unsigned index);

    void receive(const Arrival& arrival, Time now) override;
    void wake(std::uint32_t event, Time now) override;
    [[nodiscard]] NodeId node_of(std::uint32_t event) const override;
    [[nodiscard]] std::string describe(std::span<std::byte> packet) const override { return Flow::describe(packet); }

    [[nodiscard]] BackgroundReport report() const;

  private:
    [[nodiscard]] const BackgroundSpec& spec() const { return shared_.scenario.background[index_]; }
    void keep_busy(Time now);

    unsigned index_;
    Flow flow_;
    Time ended_{};
};

}  // namespace atp::sim
