// SPDX-License-Identifier: Apache-2.0
// A job of SwitchML: its workers, and a part of the slots of the switch on which they all hang.
//
// Left out: more than one switch; numbers that fit no integer, which no worker can send again as a float (a tensor that
// has some ends as the machines say, and its sums are not looked at); workers of several threads, with slots of their
// own each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/gradients.h"
#include "sim/host_queue.h"
#include "sim/job.h"
#include "switchml/switch.h"
#include "switchml/worker.h"

namespace atp::sim {

// Each worker submits the buckets of an iteration as they appear. Packets go up to the switch, which is asked what
// becomes of them, and results down from there: no host but the workers' has a part in it.
// Owns: machines and tensors of its workers. Borrows what is shared, the switch among it.
// Failure: with a deadline, a worker whose operation passes it sends no more, and the job stays unfinished.
class SwitchmlJob final : public Job {
  public:
    SwitchmlJob(const Shared& shared, ProgramId id, unsigned index);

    void receive(const Arrival& arrival, Time now) override;
    void forward(const Arrival& arrival, Time now) override;
    [[nodiscard]] std::string describe(std::span<std::byte> packet) const override;

    [[nodiscard]] JobReport report() const override;
    [[nodiscard]] double share_done() const override;
    [[nodiscard]] std::uint64_t delivered_bytes() const override;
    [[nodiscard]] std::uint64_t added_in_network() const override;
    [[nodiscard]] std::string whereabouts() const override;
    void check(const JobReport& report) override;

  private:
    struct Endpoint {
        explicit Endpoint(const switchml::WorkerConfig& config);

        switchml::Worker worker;
        std::vector<GradientTensor> tensors;  // of the current iteration, by bucket
        HostQueue at_host;                    // in packets
        std::vector<Time> sent_at;            // by slot: the first time
        Duration round_trips{};               // all together
        std::uint64_t overflowed = 0;         // tensors
        Time woken_at = never;                // the earliest event on the way
    };

    // Events: one of each endpoint, and the start.
    [[nodiscard]] std::uint32_t start_event() const { return ranks(); }
    void on_system_event(std::uint32_t event, Time now) override;
    [[nodiscard]] NodeId node_of_system_event(std::uint32_t event) const override;
    void submit(unsigned rank, workload::Training::Buckets buckets, Time now) override;

    void drive(unsigned rank, Time now);
    void transmit(unsigned rank, Time now);
    void on_event(unsigned rank, const switchml::WorkerEvent& event, Time now);
    void on_timed_out(unsigned rank, const switchml::WorkerEvent& event);
    void wake_by(unsigned rank, Time time);

    [[nodiscard]] const switchml::SwitchCounters& at_switch() const {
        return *shared_.switchml.job_counters(config_.job);
    }
    [[nodiscard]] SwitchmlCounters worker_counters() const;

    switchml::JobConfig config_;
    GradientSource source_;
    std::vector<Endpoint> endpoints_;  // by rank
    std::vector<unsigned> rank_at_;    // by node
    std::uint64_t fragments_ = 0;      // of a worker in an iteration
};

}  // namespace atp::sim
