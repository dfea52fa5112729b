// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/switch_host.h"
#include "sim/counters.h"
#include "sim/pool_outbox.h"
#include "sim/scenario.h"
#include "sim/trace.h"

namespace atp::sim {

// Each incarnation of a job may have left the one before behind.
inline constexpr std::uint32_t incarnations_kept = 8;
[[nodiscard]] protocol::SwitchConfig table_of(const Scenario& scenario);
// Of the switch with this name.
[[nodiscard]] control::JoinTreeConfig tree_of(const Scenario& scenario, const std::string& name);

[[nodiscard]] std::uint64_t added_of(const SwitchCounters& counters);
void add_to(const SwitchCounters& from, SwitchCounters& to);

// What switches did for one job, in all of its incarnations.
struct SwitchTotals {
    ServerCounters server{};
    std::uint64_t added = 0;  // packets that the table added
    ListCounts lists{};
};

// A switch that may restart, and what it counted for each job before a channel closed or it restarted.
//
// Ownership: owns the machines. Borrows the trace.
// Threads: none. Failure: none.
class SwitchProcess final : public wire::TraceSink {
  public:
    SwitchProcess(host::SwitchHostConfig config, std::string name, Trace* trace);
    SwitchProcess(const SwitchProcess&) = delete;
    SwitchProcess& operator=(const SwitchProcess&) = delete;

    void start(std::uint64_t boot);
    void stop();
    // nullptr: it does not run.
    [[nodiscard]] host::SwitchHost* host() { return host_.get(); }
    [[nodiscard]] const host::SwitchHost* host() const { return host_.get(); }

    // Calls `act`, which may close channels, and keeps what these counted.
    template <class Act>
    void keep_counts(Act&& act) {
        const Counts before = counts();
        act();
        keep_closed(before);
    }

    // Adds what this switch did for the job.
    void add_totals(std::uint32_t job, SwitchTotals& totals) const;
    [[nodiscard]] SwitchCounters counters() const;  // of its table, also before restarts
    void note_list(std::span<const std::byte> packet);

    void packet(Time now, std::string_view what, std::span<const std::byte> bytes, const wire::Address* peer,
                bool arrived) override;

    struct Held {
        ProcessId from = no_process;
        bool congested = false;
    };
    // Packets that arrived and wait for the end of their batch.
    std::vector<PacketId> batch;
    std::vector<Held> batch_from;
    Time batch_ends = never;

  private:
    struct Counts {
        std::map<control::ChannelKey, ServerCounters> servers;
        std::map<std::uint32_t, std::uint64_t> added;  // by job
    };
    [[nodiscard]] Counts counts() const;
    void keep_closed(const Counts& before);

    host::SwitchHostConfig config_;
    std::string name_;
    Trace* trace_;
    std::unique_ptr<host::SwitchHost> host_;
    std::map<std::uint32_t, SwitchTotals> kept_;  // by job
    SwitchCounters past_{};                       // before the last restart
};

}  // namespace atp::sim
