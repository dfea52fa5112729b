// SPDX-License-Identifier: Apache-2.0
// A job that sums over flows between hosts. Switches only forward.
#pragma once

#include <deque>
#include <span>
#include <string>

#include "sim/flow.h"
#include "sim/job.h"

namespace atp::sim {

// Ownership: owns its flows. The derived class interprets the messages.
class FlowJob : public Job {
  public:
    FlowJob(const Shared& shared, ProgramId id, unsigned index);

    void receive(const Arrival& arrival, Time now) final;
    [[nodiscard]] std::string describe(std::span<std::byte> packet) const final { return Flow::describe(packet); }
    [[nodiscard]] JobReport report() const final;
    [[nodiscard]] std::string whereabouts() const final;

  protected:
    // Returns the number of the flow, counted from 0.
    std::uint32_t add_flow(NodeId from, NodeId to);
    void send(std::uint32_t flow, const Message& message, Time now);
    virtual void on_message(std::uint32_t flow, const Message& message, Time now) = 0;

    void on_system_event(std::uint32_t event, Time now) final;
    [[nodiscard]] NodeId node_of_system_event(std::uint32_t event) const final;

  private:
    std::deque<Flow> flows_;  // event 0 starts the job; event 1 + n belongs to flow n
};

}  // namespace atp::sim
