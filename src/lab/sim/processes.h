// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "endpoint/channel_machine.h"
#include "host/rank_host.h"
#include "policy/aggregators.h"
#include "policy/forwarded_share.h"
#include "sim/path_switches.h"
#include "sim/program.h"
#include "sim/switch_process.h"
#include "wire/address.h"

namespace atp::sim {

// Of the process of a switch that is a node of the fabric.
[[nodiscard]] wire::Address address_of_switch(NodeId node);

// Learns what happens to processes of ranks.
class RankUser {
  public:
    // `tag`: as given to start_rank().
    virtual void on_rank_event(std::uint32_t tag, const endpoint::ChannelEvent& event, Time now) = 0;
    // The process has sent what it had to send.
    virtual void on_driven(std::uint32_t tag, Time now) = 0;

  protected:
    ~RankUser() = default;
};

// A process with this bit is a group, whose number the others are.
inline constexpr ProcessId group_bit = 1U << 31U;
static_assert(no_process >= group_bit);

// The processes of ATP: ranks and switches with the machines of the product, at addresses of the nodes. They exchange
// datagrams over the links, and learn of each other by JOINs only.
//
// A process has a port of its node. A process that starts again gets another port, as a socket does; a switch keeps
// its own. If a packet arrives for a closed port, the node reports that to the sender.
//
// Ownership: owns all processes. Borrows the users of ranks.
// Calling order: reserve() an address, start_rank(); then drive() after each use of rank().
// Threads: none. Failure: none.
class Processes final : public Program {
  public:
    Processes(const Shared& shared, ProgramId id);

    void receive(const Arrival& arrival, Time now) override;
    void forward(const Arrival& arrival, Time now) override;
    void wake(std::uint32_t process, Time now) override;
    [[nodiscard]] NodeId node_of(std::uint32_t process) const override { return process_at(process).node; }
    [[nodiscard]] std::string describe(std::span<std::byte> packet) const override;

    [[nodiscard]] ProcessId reserve(NodeId at);
    [[nodiscard]] const wire::Address& address_of(ProcessId process) const { return process_at(process).address; }
    void start_rank(ProcessId process, const endpoint::ChannelMachineConfig& config, RankUser& user, std::uint32_t tag,
                    Time now);
    // The process ends at once.
    void stop(ProcessId process) { process_at(process).rank.reset(); }
    // Running ranks whose terms name this group receive what is sent to it.
    [[nodiscard]] const wire::Address& group_address(std::uint32_t number);
    // nullptr: the process does not run.
    [[nodiscard]] host::RankHost* rank(ProcessId process) const { return process_at(process).rank.get(); }
    // Reports the events of a rank and sends what it has to send.
    void drive(ProcessId process, Time now);

    // The switch at this place, which starts with the first call.
    [[nodiscard]] const wire::Address& switch_address(const SwitchPlace& place);
    // It ends, and starts again, empty, after `lasts`. No effect if there is none.
    void crash_switch(const SwitchPlace& place, Duration lasts, Time now);
    [[nodiscard]] const SwitchProcess* switch_at(const SwitchPlace& place) const;
    // Of the switch with aggregators at this node. nullptr: there is none, or it does not run.
    [[nodiscard]] const protocol::Switch* table_at(NodeId node) const;
    // Of all switches at this node, also before restarts; nullopt: there was none.
    [[nodiscard]] std::optional<SwitchCounters> counters_at(NodeId node) const;
    // What all switches did for a job.
    [[nodiscard]] SwitchTotals totals_of(std::uint32_t job) const;

    // Of all channels.
    [[nodiscard]] const protocol::IndexRule* indices() const { return &indices_; }

    // For PoolOutbox.
    [[nodiscard]] PacketPool& pool() { return shared_.network.pool(); }
    [[nodiscard]] ProgramId id() const { return id_; }
    // Takes over a reference to the packet.
    void send(ProcessId from, PacketId packet, const wire::Address& to, bool congested, Time now);
    void note_sent(ProcessId from, std::span<std::byte> packet) {
        if (notes_sent_) note(from, packet);
    }

  private:
    struct Process {
        NodeId node = no_node;
        wire::Address address;
        std::unique_ptr<host::RankHost> rank{};
        RankUser* user = nullptr;
        std::uint32_t tag = 0;
        std::unique_ptr<SwitchProcess> at_switch{};
        Time restarts_at = never;
        Time wake_at = never;  // earliest scheduled event
    };

    [[nodiscard]] ProcessId find(const wire::Address& address) const;
    void check_flush(const Arrival& arrival);
    void note(ProcessId from, std::span<std::byte> packet);
    [[nodiscard]] ProcessId start_switch(const SwitchPlace& place);
    void deliver(Arrival arrival, Time now);
    void copy_in_path(const Arrival& arrival, const wire::Address& to, Time now);
    void deliver_to_rank(const Arrival& arrival, bool by_group, Time now);
    void deliver_to_group(const Arrival& arrival, Time now);
    void deliver_to_switch(const Arrival& arrival, Time now);
    [[nodiscard]] wire::Datagram datagram_of(PacketId packet, ProcessId from, bool congested);
    void run_batch(ProcessId process, Time now);
    void handle_batch(ProcessId process, std::span<const wire::Datagram> batch, std::span<const PacketId> packets,
                      Time now);
    void run_switch(ProcessId process, Time now);
    void report_closed(const Arrival& arrival, Time now);
    // Most timeouts move later with each ACK. An event that comes too early schedules the next one, so most moves cost
    // nothing.
    void set_timer(ProcessId process, Time requested) {
        Process& each = process_at(process);
        if (requested >= each.wake_at) return;
        each.wake_at = requested;
        wake_at(requested, process);
    }
    void send_on(NodeId from, PacketId packet, const Network::Onward& onward, Time now);

    [[nodiscard]] Process& process_at(ProcessId process) const { return *processes_[process]; }

    std::vector<std::unique_ptr<Process>> processes_;  // at a fixed address: datagrams refer to their senders
    std::vector<std::vector<ProcessId>> ports_;        // by node
    std::map<std::pair<NodeId, bool>, ProcessId> switches_;
    PathSwitches paths_;
    struct Group {
        wire::Address address;
        std::vector<ProcessId> members{};  // that were started; some may have ended
    };
    std::vector<Group> groups_;
    policy::Aggregators indices_;
    policy::ForwardedShare forwarded_;
    Duration batch_time_{};
    bool notes_sent_;                  // packets may be changed, or are counted, as they leave
    std::map<NodeId, Time> reported_;  // by node: its last report of a closed port
    std::uint64_t boots_ = 0;
};

}  // namespace atp::sim
