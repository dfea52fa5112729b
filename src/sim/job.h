// SPDX-License-Identifier: Apache-2.0
// The life of one job: its incarnations, its iterations, and the machines of its workers and servers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/worker.h"
#include "sim/gradients.h"
#include "sim/program.h"
#include "sim/report.h"

namespace atp::sim {

// Each worker submits the tensors of an iteration on all of its channels, computes for a while when all are summed, and
// goes on to the next. When an operation times out the incarnation is over: once every living worker knows, the job
// forms anew with another token, and repeats the iterations that some worker lacks. Old packets may still be on their
// way.
//
// Its packets pass the shipped switch wherever a switch serves a level for it, and find their way by the job's tree.
// Owns: machines and tensors of the current incarnation. Borrows what is shared, and its site.
class Job final : public Program {
  public:
    Job(const Shared& shared, ProgramId id, unsigned index, const Site& site);

    void receive(const Arrival& arrival, Time now) override;
    void forward(const Arrival& arrival, Time now) override;
    void wake(std::uint32_t event, Time now) override;
    [[nodiscard]] NodeId node_of(std::uint32_t event) const override;
    [[nodiscard]] std::string describe(std::span<std::byte> packet) const override;

    void crash_worker(unsigned rank, Duration lasts, Time now);
    void crash_server(Duration lasts, Time now);

    [[nodiscard]] std::uint32_t number() const { return shared_.scenario.first_job + index_; }
    [[nodiscard]] bool finished() const { return report_.finished.has_value(); }
    [[nodiscard]] JobReport report() const;
    [[nodiscard]] double share_done() const;        // of its fragments, roughly: for progress
    [[nodiscard]] std::string whereabouts() const;  // of a job that is stuck: who lacks what

  private:
    // One worker's end of one channel.
    struct Endpoint {
        std::optional<protocol::Worker> worker;  // nothing while crashed
        std::vector<GradientTensor> tensors;     // of the current iteration
        std::uint64_t first_tensor = 0;          // the machine's number of the first of them
        unsigned open = 0;                       // of them, not yet summed
        bool failed = false;
        Time wake_at = never;  // the earliest event of its timer on the way
    };

    struct Rank {
        unsigned iterations_done = 0;
        unsigned open_channels = 0;  // of the current iteration
        Time up_at{};                // crashed until then
    };

    struct Channel {
        std::unique_ptr<GradientSource> source;
        std::optional<protocol::Server> server;  // nothing while crashed
    };

    // Events: a timer of each endpoint, the end of each rank's computation, and a new incarnation.
    [[nodiscard]] std::uint32_t resume_event(unsigned rank) const {
        return endpoint_of(shared_.scenario.channels, rank);
    }
    [[nodiscard]] std::uint32_t form_event() const { return resume_event(report_.workers); }

    [[nodiscard]] NodeId host_of_endpoint(std::uint32_t endpoint) const {
        return site_.worker_hosts[rank_of(endpoint)];
    }
    [[nodiscard]] unsigned rank_of(std::uint32_t endpoint) const { return endpoint % site_.membership.workers(); }
    [[nodiscard]] unsigned channel_of(std::uint32_t endpoint) const { return endpoint / site_.membership.workers(); }
    [[nodiscard]] std::uint32_t endpoint_of(unsigned channel, unsigned rank) const {
        return channel * site_.membership.workers() + rank;
    }
    [[nodiscard]] protocol::ChannelConfig channel_config(unsigned channel) const;

    void form(Time now);
    void admit_everywhere();
    void form_channel(unsigned channel);
    void form_worker(unsigned channel, unsigned rank);
    void retire(Endpoint& endpoint);
    void retire(Channel& channel);
    void resume(unsigned rank, Time now);
    void begin_iteration(unsigned rank, Time now);
    void deliver_to_worker(unsigned channel, unsigned rank, const Arrival& arrival, Time now);
    void deliver_to_server(unsigned channel, const Arrival& arrival, Time now);
    void route(PacketId packet, bool congested, NodeId at, bool up, Time now);
    void route_down(PacketId packet, bool congested, NodeId at, Time now);
    void drive(std::uint32_t endpoint, Time now);
    void drive_server(Channel& channel, Time now);
    void set_timer(std::uint32_t endpoint);
    void on_timer(std::uint32_t endpoint, Time now);
    void on_event(std::uint32_t endpoint, const protocol::WorkerEvent& event, Time now);
    void on_completed(std::uint32_t endpoint, std::uint64_t number, Time now);
    void on_timed_out(std::uint32_t endpoint, const protocol::WorkerEvent& event);
    void form_again_if_over(Time now);
    [[nodiscard]] bool gave_up_or_done(unsigned rank) const;
    [[nodiscard]] bool all_done() const;
    void fail(std::string text);

    unsigned index_;
    const Site& site_;
    std::vector<std::int32_t> rank_at_;  // by node, or -1
    Random random_;
    std::uint32_t token_ = 0;
    std::vector<Channel> channels_;
    std::vector<Endpoint> endpoints_;
    std::vector<Rank> ranks_;
    unsigned first_iteration_ = 0;  // of this incarnation
    bool broken_ = false;           // a worker or the server died, or an operation timed out
    bool forming_ = false;          // the next incarnation is on its way
    Time server_up_at_{};
    JobReport report_;  // counters of machines that are gone
};

}  // namespace atp::sim
