// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/path_host.h"
#include "sim/program.h"
#include "sim/switch_process.h"

namespace atp::sim {

// The switches in the path, which may restart. The first packet starts a switch.
//
// Ownership: owns the switches. Borrows the objects in Shared.
// Threads: none. Failure: while a switch does not run, packets pass unchanged.
class PathSwitches {
  public:
    explicit PathSwitches(const Shared& shared);

    [[nodiscard]] bool contains(NodeId at) const { return switches_.contains(at); }
    // Hands a packet that passes a node to the switch there. False: the switch has taken it.
    [[nodiscard]] bool pass(Arrival& arrival, const wire::Address& from, const wire::Address& to, Time now);
    // After that: to whom it sends a copy of the packet.
    [[nodiscard]] std::vector<wire::Address> copies_of(const Arrival& arrival, const wire::Address& to, Time now);
    // In front of the node that the scenario names, a switch that adds only int32 says so in each JOIN.
    void mark(Arrival& arrival) const {
        if (shared_.scenario.int32_switch == arrival.to) mark_join(arrival);
    }
    // Why it must not make these copies; nullopt: it may (H108, docs/spec/hazards.md#h108). Call once for each packet.
    [[nodiscard]] std::optional<std::string> objection_to(const std::vector<wire::Address>& copies,
                                                          const Arrival& arrival, const wire::Address& to);
    // It ends, and starts again, empty, at this time. No effect if there is none.
    void crash(NodeId at, Time starts_again);

    // nullptr: no switch runs there.
    [[nodiscard]] const protocol::Switch* table_at(NodeId at) const;
    [[nodiscard]] SwitchCounters counters_at(NodeId at) const;  // also before restarts
    [[nodiscard]] std::uint64_t added_for(std::uint32_t job) const;

  private:
    // What came to a switch from members of one job, and what it sent as copies.
    struct Ledger {
        std::uint64_t arrived_bytes = 0;
        std::uint64_t copied_bytes = 0;
    };

    void mark_join(Arrival& arrival) const;
    void note_arrived(const Arrival& arrival);

    struct PathSwitch {
        host::PathHostConfig config;
        std::optional<host::PathHost> host{};
        SwitchCounters past{};  // before the last restart
        Time starts_at{};       // !host
        Time polls_at{};
    };
    Shared shared_;
    std::map<NodeId, PathSwitch> switches_;
    std::map<std::pair<NodeId, std::uint32_t>, Ledger> ledgers_;  // by switch and job
};

}  // namespace atp::sim
