// SPDX-License-Identifier: Apache-2.0
// A participant of the simulated network that sends and receives packets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/event_queue.h"
#include "sim/fabric.h"
#include "sim/network.h"
#include "sim/scenario.h"
#include "sim/trace.h"
#include "switchml/switch.h"

namespace atp::sim {

class Processes;
class Truth;

// State that all programs of one world share.
struct Shared {
    const Scenario& scenario;
    const Fabric& fabric;
    EventQueue& events;
    Network& network;
    const Truth& truth;
    Processes* processes = nullptr;  // of ATP jobs; valid after their construction
    switchml::Switch& switchml;      // the switch of all SwitchML jobs
    Trace* trace = nullptr;
    std::vector<std::string>& failures;
    unsigned& unfinished_jobs;
};

// Base class of jobs and background flows.
//
// Ownership: owns its own state. Borrows the objects in Shared.
// Calling order: the constructor schedules the first event. The world calls wake() for each event, and receive() and
//   forward() as packets move. A packet carries the id of the program that allocated it, so a program sees its own
//   packets only. A system with its own kind of switch keeps the state of the switch, and processes packets in
//   forward().
// Threads: one.
class Program {
  public:
    Program(const Shared& shared, ProgramId id, const HostCost& cost) : shared_(shared), id_(id) {
        shared.network.charge(id, cost);
    }
    virtual ~Program() = default;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // A packet has arrived at a host. The caller keeps its reference.
    virtual void receive(const Arrival& arrival, Time now) = 0;
    // A packet has arrived at a switch. Takes over the reference. By default it sends the packet on to its destination.
    virtual void forward(const Arrival& arrival, Time now);
    // An event that this program scheduled. The program chooses the number.
    virtual void wake(std::uint32_t event, Time now) = 0;
    // The node on which the event occurs; a pause of the node delays the event. no_node: none.
    [[nodiscard]] virtual NodeId node_of(std::uint32_t event) const = 0;
    // One line for the trace.
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
