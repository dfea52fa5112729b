// SPDX-License-Identifier: Apache-2.0
// The nodes of a SwitchML configuration: the workers of each job around one switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "check/configuration.h"
#include "check/model_tensor.h"
#include "check/system.h"
#include "check/truth.h"
#include "protocol/membership.h"
#include "switchml/switch.h"
#include "switchml/worker.h"

namespace atp::check {

// The window of the configuration is the number of slots of each job.
class SwitchMlMachines final : public System {
  public:
    SwitchMlMachines(const Configuration& configuration, switchml::Mode mode);

    [[nodiscard]] unsigned nodes() const override { return static_cast<unsigned>(workers_.size()) + 1; }
    [[nodiscard]] NodeKind kind(unsigned node) const override {
        return node == switch_node() ? NodeKind::aggregating_switch : NodeKind::worker;
    }
    [[nodiscard]] std::string name(unsigned node) const override;

    void start(unsigned node, Step& step) override;
    void earlier_packets(std::vector<Sent>& sent) override;
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step) override;
    [[nodiscard]] SystemAssessment assess(unsigned node, const Claims& claims, Summaries after) const override;
    [[nodiscard]] std::string describe(std::span<const std::byte> packet) const override;

  private:
    struct WorkerNode : WorkerTensors {
        std::unique_ptr<switchml::Worker> machine;
    };

    [[nodiscard]] switchml::JobConfig job_config(unsigned job, switchml::Mode mode) const;
    [[nodiscard]] WorkerNode make_worker(const switchml::JobConfig& job, unsigned rank) const;
    [[nodiscard]] unsigned switch_node() const { return static_cast<unsigned>(workers_.size()); }
    [[nodiscard]] unsigned first_node_of(unsigned job) const { return job * membership_.workers(); }

    void load(unsigned node, std::span<const std::byte> state);
    void save(unsigned node, Time now, Step& step);
    template <class Archive>
    static void persist(WorkerNode& worker, Archive& archive) {
        worker.machine->persist(archive), archive.value(worker.stored);
    }
    [[nodiscard]] std::span<std::byte> used_packet() { return std::span(packet_.bytes).first(packet_.size); }

    void step_worker(WorkerNode& worker, Input input, Step& step);
    void drain(WorkerNode& worker, Time now, Step& step);
    void step_switch(Input input, Step& step);
    void assess_result(std::span<std::byte> result, Step& step) const;
    void summarise(const WorkerNode& worker, Step& step) const;

    Configuration configuration_;
    protocol::Membership membership_;
    Truth truth_;
    switchml::Switch switch_;
    std::vector<WorkerNode> workers_;
    Sent packet_;  // of the current step; a copy, because machines may write to it
};

}  // namespace atp::check
