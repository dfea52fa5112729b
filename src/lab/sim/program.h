// SPDX-License-Identifier: Apache-2.0
// Whatever sends and receives packets in the simulated network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "protocol/switch.h"
#include "sim/event_queue.h"
#include "sim/fabric.h"
#include "sim/network.h"
#include "sim/scenario.h"
#include "sim/trace.h"
#include "switchml/switch.h"

namespace atp::sim {

// What the programs of one world share.
struct Shared {
    const Scenario& scenario;
    const Fabric& fabric;
    EventQueue& events;
    Network& network;
    std::vector<protocol::Switch>& switches;
    switchml::Switch& switchml;  // the one on which all workers of its jobs hang
    Trace* trace = nullptr;
    std::vector<std::string>& failures;
    unsigned& unfinished_jobs;
};

// Calling order: a program schedules its first event when it is made; the world calls wake() when an event comes, and
// receive() and forward() as packets move. Every packet that a program allocates bears its id, so it meets nobody
// else's. A system with switches of its own kind keeps their state, and passes its packets through them in forward().
// Owns: its own state. Borrows what is shared. One thread.
class Program {
  public:
    Program(const Shared& shared, ProgramId id, const HostCost& cost) : shared_(shared), id_(id) {
        shared.network.charge(id, cost);
    }
    virtual ~Program() = default;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // A packet is at a host. It stays the caller's.
    virtual void receive(const Arrival& arrival, Time now) = 0;
    // A packet is at a switch: takes it over. Unless a program knows better, it goes on to its destination.
    virtual void forward(const Arrival& arrival, Time now);
    // An event that the program has scheduled, and numbered as it likes.
    virtual void wake(std::uint32_t event, Time now) = 0;
    // The node on which it happens, which delays it while paused; no_node where there is none.
    [[nodiscard]] virtual NodeId node_of(std::uint32_t event) const = 0;
    // For traces.
    [[nodiscard]] virtual std::string describe(std::span<std::byte> packet) const = 0;

  protected:
    void wake_at(Time time, std::uint32_t event) {
        shared_.events.push({.time = time,
                             .order = shared_.events.next_order(),
                             .kind = Event::Kind::wake,
                             .program = id_,
                             .target = event});
    }
    void fail(std::string text) { shared_.failures.push_back(std::move(text)); }

    Shared shared_;
    ProgramId id_;
};

}  // namespace atp::sim
