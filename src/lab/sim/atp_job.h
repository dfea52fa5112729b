// SPDX-License-Identifier: Apache-2.0
// One ATP job: its incarnations and iterations, and the tensors of its ranks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/job.h"
#include "sim/job_tensors.h"
#include "sim/processes.h"

namespace atp::sim {

// A rank has a process for each channel. The processes join their switches. When all of them are ready, each rank
// submits the buckets of an iteration as they become ready, striped over all channels. When all sums have arrived, all
// ranks leave.
//
// If a rank reads an error, or its process ends, the incarnation is over: when no rank goes on, the job starts all
// processes again with another token, as a launcher does. It then repeats the iterations that some rank has not
// finished. Packets of the previous incarnation may still be in flight.
//
// Ownership: owns tensors and policies, which its processes borrow. Borrows the objects in Shared.
class AtpJob final : public Job, private RankUser {
  public:
    AtpJob(const Shared& shared, ProgramId id, unsigned index);

    void receive(const Arrival& /*arrival*/, Time /*now*/) override {}  // packets belong to Processes
    [[nodiscard]] std::string describe(std::span<std::byte> /*packet*/) const override { return {}; }

    void crash_worker(unsigned rank, Duration lasts, Time now) override;
    void crash_server(Duration lasts, Time now) override;
    void leave_worker(unsigned rank, Time now) override;
    void check_failed(const Outage& outage) override;

    [[nodiscard]] JobReport report() const override;
    [[nodiscard]] double share_done() const override;
    [[nodiscard]] std::uint64_t delivered_bytes() const override;
    [[nodiscard]] std::uint64_t added_in_network() const override;
    [[nodiscard]] std::uint64_t added_at_server() const override;
    [[nodiscard]] std::string whereabouts() const override;
    void check(const JobReport& report) override;

  private:
    // One rank in one channel.
    struct Endpoint {
        ProcessId process = no_process;
        std::deque<std::uint64_t> open{};  // parts that are not yet summed, in order
        bool started = false;
    };

    struct Rank {
        bool failed = false;  // it has read an error, or its process has ended
        bool leaves = false;  // when its operations are complete
        bool left = false;
        bool has_new_parts = false;  // that its channels have not sent
        Time up_at{};                // end of the crash
    };

    // Events: the start of an incarnation, and of each process.
    [[nodiscard]] static constexpr std::uint32_t start_event(std::uint32_t endpoint) { return 1 + endpoint; }
    void on_system_event(std::uint32_t event, Time now) override;
    [[nodiscard]] NodeId node_of_system_event(std::uint32_t /*event*/) const override { return no_node; }
    void submit(unsigned rank, workload::Training::Buckets buckets, Time now) override;
    void on_rank_event(std::uint32_t endpoint, const endpoint::ChannelEvent& event, Time now) override;
    void on_driven(std::uint32_t endpoint, Time now) override;

    [[nodiscard]] unsigned channels() const { return shared_.scenario.channels; }
    [[nodiscard]] unsigned rank_of(std::uint32_t endpoint) const { return endpoint % ranks(); }
    [[nodiscard]] unsigned channel_of(std::uint32_t endpoint) const { return endpoint / ranks(); }
    [[nodiscard]] std::uint32_t endpoint_of(unsigned channel, unsigned rank) const { return channel * ranks() + rank; }
    [[nodiscard]] Processes& processes() const { return *shared_.processes; }
    // nullptr: its process does not run.
    [[nodiscard]] host::RankHost* host_of(const Endpoint& endpoint) const;

    void form(Time now);
    void start(std::uint32_t endpoint, Time now);
    [[nodiscard]] endpoint::ChannelMachineConfig config_of(unsigned channel, unsigned rank);
    [[nodiscard]] wire::ChannelTerms terms_of(unsigned channel) const;
    void retire(Endpoint& endpoint);
    void submit_parts(unsigned rank, Time now);
    void drive_channels(unsigned rank, Time now);
    void on_ready(std::uint32_t endpoint, Time now);
    void on_completed(std::uint32_t endpoint, Time now);
    void on_failed(std::uint32_t endpoint, const endpoint::ChannelCause& cause, Time now);
    void check_deadline(unsigned rank, const protocol::WorkerEvent& event);
    [[nodiscard]] bool is_busy(unsigned rank) const;
    void leave(unsigned rank, Time now);
    void leave_if_idle(unsigned rank, Time now);
    void form_again_if_over(Time now);
    [[nodiscard]] bool goes_on(unsigned rank) const;
    void fail(const std::string& text);

    std::uint64_t token_ = 0;
    std::unique_ptr<JobTensors> tensors_;  // of this incarnation
    std::vector<Endpoint> endpoints_;
    std::vector<Rank> ranks_;
    unsigned first_iteration_ = 0;  // of the current incarnation
    unsigned joining_ = 0;          // endpoints that are not ready yet
    bool broken_ = false;           // a rank has failed
    bool forming_ = false;          // the start of the next incarnation is scheduled
    bool over_ = false;             // a rank leaves before the end: no further incarnation
    Time formed_at_ = never;        // all ranks of this incarnation were ready
};

}  // namespace atp::sim
