// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "check/ack_lists.h"
#include "check/configuration.h"
#include "check/model_tensor.h"
#include "check/pipeline_switch.h"
#include "check/processes.h"
#include "check/state_archive.h"
#include "check/system.h"
#include "check/tables.h"
#include "host/path_host.h"
#include "host/rank_host.h"
#include "host/switch_host.h"
#include "protocol/server.h"
#include "protocol/variant.h"

namespace atp::check {

namespace ATP_VARIANT {

// Identifies a fragment in the ghost state (check/system.h) of a switch.
struct FragmentId {
    std::uint64_t token = 0;  // 0: none
    std::uint32_t job = 0;
    std::uint32_t seq = 0;
    bool operator==(const FragmentId&) const = default;
};

// The nodes of an ATP configuration: ranks, hosts of servers, switches, and switches in the path. All have joined
// before the first state. A switch that restarts has joined again at once.
//
// The saved state of a process is the number of the state of its membership, of which there are few, and its data.
class Machines final : public Processes {
  public:
    explicit Machines(const Configuration& configuration)
        : Machines(configuration, {.first_seq = configuration.first_seq}) {}
    ~Machines() override;

    void start(unsigned node, Step& step) override;
    void earlier_packets(std::vector<Sent>& sent) override;
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step) override;
    [[nodiscard]] SystemAssessment assess(unsigned node, const Claims& claims, Summaries after) const override;

  private:
    class Watch;
    // Ghost state of a server.
    struct Completion {
        std::array<std::uint8_t, 2 * max_window> accepted{};  // by seq mod 2W: ranks whose values are included
        std::uint32_t completed = 0;
    };
    // The members of its kind are in use.
    struct NodeState : WorkerTensors {
        std::unique_ptr<host::RankHost> rank;
        std::unique_ptr<host::SwitchHost> process;
        std::unique_ptr<host::PathHost> in_path;
        std::unique_ptr<PipelineSwitch> pipeline;
        std::unique_ptr<Watch> watch;  // of `process`
        Bytes initial;                 // the state after joining
        // Ghost state of workers.
        std::array<std::uint8_t, max_window> sent_index{};
        bool ended = false;  // with an error
        // With congestion marks: Summary::taken and marked, and the offset of the first fragment that is sent after the
        // window was halved; 0: all before are acknowledged.
        std::uint8_t taken = 0;
        std::uint8_t marked = 0;
        std::uint8_t halved_until = 0;
        // Ghost state of switches, by aggregator: the fragment that it released last. Empty after another fragment
        // claimed it.
        std::vector<FragmentId> released;
        std::vector<Completion> servers;  // of the servers that the process hosts
        // Ghost state of switches that make lists: the first datagram of a batch.
        OwedAcks owed;
        Bytes batch;
        bool batch_ends = false;  // this order is in flight

        BytePool memberships;
        std::uint32_t membership = no_number;  // that the process has
    };
    // A packet that a server is about to get, and its counters before.
    struct Merge {
        atp_header header{};
        protocol::ServerCounters before;
    };

    // Of a worker, before it gets a packet.
    struct Window {
        std::uint64_t acks = 0;
        std::uint64_t halvings = 0;
        std::uint32_t packets = 0;
    };

    Machines(const Configuration& configuration, const Incarnation& incarnation);
    void make_node(unsigned node);

    // Defined in machines_joining.cc: the exchange before the first state.
    void join();
    unsigned drive(unsigned node, Time now, Step& step);
    unsigned deliver(const Sent& packet, Time now, Step& step);
    void leave_behind(const Incarnation& incarnation, std::vector<Sent>& sent) const;
    [[nodiscard]] Sent of_stranger() const;
    [[nodiscard]] std::vector<Sent> first_and_last();

    template <class Archive>
    void persist_membership(NodeState& at, Archive& archive);
    template <class Archive>
    void persist(NodeState& at, Archive& archive);
    void load(unsigned node, std::span<const std::byte> state);
    // Returns the number of the membership.
    std::uint32_t write(unsigned node, Time now, Bytes& state);
    void save(unsigned node, Input input, Step& step);

    void hand_over(host::RankHost& rank, Input input, const Flight& flight);
    void step_worker(unsigned node, Input input, const Flight& flight, Step& step);
    void step_worker_with_list(unsigned node, Input input, const Flight& flight, Step& step);
    void drain_worker(unsigned node, Time now, Step& step);
    void step_server(unsigned node, Input input, const Flight& flight, Step& step);
    void step_switch(unsigned node, Input input, const Flight& flight, Step& step);
    void step_batch(unsigned node, const Flight& flight, Step& step);
    void hand_over_batch(unsigned node, std::span<const Flight> flights, Step& step);
    void step_in_path(unsigned node, Input input, const Flight& flight, Step& step);
    void step_pipeline(unsigned node, Input input, const Flight& flight, Step& step);
    // Defined in machines_slices.cc.
    void cut_table(NodeState& at, bool changed);
    void step_change(NodeState& at, Step& step);
    void summarise_slices(const NodeState& at, Step& step) const;
    void take_sent(unsigned node, Step& step);
    void pass_on(unsigned node, const Flight& flight, std::span<const std::byte> bytes, Step& step);

    // The watch on a process calls this for each packet that its table has handled.
    void note_passage(unsigned node, Input input, std::string_view what, std::span<const std::byte> bytes, Step& step);
    void finish_merge(unsigned node, Step& step);
    [[nodiscard]] const protocol::Server* server_of(unsigned node, unsigned job) const;
    [[nodiscard]] const protocol::Switch& table_of(const NodeState& at) const {
        return at.in_path ? at.in_path->table() : at.process->shard().table();
    }

    // Defined in assessment.cc.
    void assess_pass(const PipelineSwitch& at, const PipelinePass& pass, Step& step);
    void assess_sending(NodeState& worker, std::span<const std::byte> packet, Step& step);
    void assess_window(NodeState& worker, const Window& before, std::span<const std::byte> packet, Step& step) const;
    void assess_completed(const NodeState& worker, Step& step);
    static void assess_server(const protocol::ServerCounters& before, const protocol::ServerCounters& after,
                              Step& step);
    void assess_merge(Completion& completion, const protocol::Server& server, const Merge& merge, Step& step);
    void note_completed(Completion& completion, const protocol::Server& server) const;
    void assess_answer(std::span<const std::byte> packet, Step& step);
    void assess_gradient(std::span<const std::byte> packet, Step& step);
    void assess_flush(unsigned node, std::span<const std::byte> packet, Step& step) const;
    // `place`: of the aggregator that the packet met.
    void assess_switch(NodeState& at, const atp_header& header, std::uint32_t place, Input input, std::uint8_t event,
                       Step& step);
    [[nodiscard]] FragmentPlace place_of(std::uint64_t token, std::uint32_t seq) const;
    [[nodiscard]] bool complete(Summaries after, FragmentPlace fragment) const;
    [[nodiscard]] bool indices_agree(unsigned node, Summaries after) const;
    [[nodiscard]] bool marks_agree(unsigned node, Summaries after) const;
    void summarise(unsigned node, Time now, Step& step);
    void summarise_table(NodeState& at, Step& step) const;
    void summarise_pipeline(const PipelineSwitch& at, Step& step) const;
    [[nodiscard]] bool reclaimable(const atp_aggregator& held, std::uint32_t index) const;

    std::vector<NodeState> states_;  // by node
    std::optional<Merge> merge_;
    std::vector<atp_aggregator> seen_;  // the table of the switch that takes a step, after the last packet
    Bytes scratch_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
