// SPDX-License-Identifier: Apache-2.0
// A SwitchML job: its workers, and a part of the slots of the switch to which all of them connect.
//
// Not modelled: several switches; workers with several threads and slots for each thread; a second transmission, as
// floats, of numbers that fit no integer. A tensor with such numbers ends with an overflow event, and its sums are not
// checked.
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

// Each worker submits the buckets of an iteration as they become ready. The switch adds the packets and returns results
// to the workers. No other host takes part.
//
// Ownership: owns state machines and tensors of its workers. Borrows the objects in Shared, including the switch.
// Failure: if an operation exceeds its deadline, its worker sends no more and the job remains unfinished.
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
        std::vector<Time> sent_at;            // by slot: first transmission
        Duration round_trips{};               // sum of the round trips of all results
        std::uint64_t overflowed = 0;         // number of tensors that ended with an overflow event
        Time woken_at = never;                // earliest scheduled event
    };

    // Events: one for each endpoint, and the start of the job.
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
    std::uint64_t fragments_ = 0;      // per worker and iteration
};

}  // namespace atp::sim
