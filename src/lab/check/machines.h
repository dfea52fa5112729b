// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "check/ack_lists.h"
#include "check/configuration.h"
#include "check/layout.h"
#include "check/node_base.h"
#include "check/pipeline_switch.h"
#include "check/system.h"
#include "check/truth.h"
#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/variant.h"
#include "protocol/worker.h"

namespace atp::check {

namespace ATP_VARIANT {

// Identifies a fragment in the ghost state (check/system.h) of a switch.
struct FragmentId {
    std::uint64_t token = 0;  // 0: none
    std::uint32_t job = 0;
    std::uint32_t seq = 0;
    bool operator==(const FragmentId&) const = default;
};

// The nodes of an ATP configuration: workers, servers and switches.
class Machines final : public NodeBase {
  public:
    explicit Machines(const Configuration& configuration);
    ~Machines() override;

    [[nodiscard]] unsigned nodes() const override { return layout_.size(); }
    [[nodiscard]] NodeKind kind(unsigned node) const override { return layout_.node(node).kind; }
    [[nodiscard]] std::string name(unsigned node) const override { return layout_.name(node); }

    void start(unsigned node, Step& step) override;
    void earlier_packets(std::vector<Sent>& sent) override;
    [[nodiscard]] SystemAssessment assess(unsigned node, const Claims& claims, Summaries after) const override;
    [[nodiscard]] bool is_command(std::span<const std::byte> packet) const override {
        return is_command_to_send_lists(packet);
    }
    [[nodiscard]] std::string describe(std::span<const std::byte> packet) const override;

  private:
    struct WorkerNode : WorkerBase<protocol::Worker> {
        std::array<std::uint8_t, max_window> sent_index{};  // ghost
    };
    struct ServerNode {
        std::unique_ptr<protocol::Server> machine;
        // Ghost state.
        std::array<std::uint8_t, 2 * max_window> accepted{};  // by seq mod 2W: ranks whose values are included
        std::uint32_t completed = 0;
    };
    struct SwitchNode {
        // One of the two.
        std::unique_ptr<protocol::Switch> machine;
        std::unique_ptr<PipelineSwitch> pipeline;
        std::unique_ptr<AckLists> lists;  // nullptr: it makes none
        // Ghost state, by aggregator: the fragment that it released last. Empty after another fragment claimed it.
        std::vector<FragmentId> released;
    };

    [[nodiscard]] WorkerNode make_worker(unsigned job, unsigned rank, bool earlier, std::uint32_t first_seq) const;
    [[nodiscard]] std::unique_ptr<protocol::Server> make_server(unsigned job, bool earlier,
                                                                std::uint32_t first_seq) const;
    void add_switch(unsigned at);
    void leave_behind(unsigned job, bool earlier, std::uint32_t first_seq, std::vector<Sent>& sent);

    template <class Archive>
    static void persist(WorkerNode& worker, Archive& archive);
    template <class Archive>
    static void persist(ServerNode& server, Archive& archive);
    template <class Archive>
    static void persist(SwitchNode& node, Archive& archive);
    void load(unsigned node, std::span<const std::byte> state) override;
    void step_node(unsigned node, Input input, Step& step) override;
    void save(unsigned node, Time now, Step& step) override;

    void step_worker(unsigned node, Input input, Step& step);
    void step_worker_with_list(unsigned node, Input input, Step& step);
    void drain_worker(unsigned node, Time now, Step& step);
    void step_server(unsigned node, Input input, Step& step);
    void step_switch(unsigned node, Input input, Step& step);
    void pass_flush(unsigned node, const atp_header& flush, Step& step);
    void route(unsigned node, const protocol::Verdict& verdict, Step& step);

    // Defined in pipeline_machines.cc.
    void step_pipeline(unsigned node, Input input, Step& step);
    void assess_pass(const PipelineSwitch& at, const PipelinePass& pass, Step& step);
    void summarise_pipeline(const PipelineSwitch& at, Step& step) const;

    // Defined in assessment.cc.
    void assess_sending(WorkerNode& worker, const Sent& sent, Step& step);
    void assess_event(const WorkerNode& worker, const protocol::WorkerEvent& event, Step& step);
    void assess_merge(ServerNode& server, const protocol::ServerCounters& before, Step& step);
    void note_completed_by_ready(ServerNode& server) const;
    void assess_answer(const Sent& sent, Step& step);
    void assess_switch(SwitchNode& node, const atp_header& header, const atp_aggregator& before, Input input,
                       std::uint8_t event, Step& step);
    [[nodiscard]] FragmentPlace place_of(std::uint32_t job, std::uint32_t seq) const;
    [[nodiscard]] bool complete(Summaries after, FragmentPlace fragment) const;
    [[nodiscard]] bool indices_agree(unsigned node, Summaries after) const;
    void summarise(unsigned node, Step& step);
    [[nodiscard]] bool reclaimable(protocol::Switch& machine, std::uint32_t index);

    Configuration configuration_;
    Layout layout_;
    Truth truth_;
    // Each of these vectors has an entry for each node, which is empty unless the node is of this kind.
    std::vector<WorkerNode> workers_;
    std::vector<ServerNode> servers_;
    std::vector<SwitchNode> switches_;
    std::vector<unsigned> next_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
