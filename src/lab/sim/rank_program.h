// SPDX-License-Identifier: Apache-2.0
// One ATP job: its incarnations and iterations, and the state machines of its workers and servers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/aggregators.h"
#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/worker.h"
#include "sim/ack_lists.h"
#include "sim/gradients.h"
#include "sim/job.h"

namespace atp::sim {

// Each worker submits the buckets of an iteration as they become ready, striped over all channels. If an operation
// times out, the incarnation ends. When every live worker has learned this, the job starts the next incarnation with
// another token. The job then repeats the iterations that some worker has not finished. Packets of the previous
// incarnation may still be in flight.
//
// Switches that serve a level of the job process its packets with the shipped protocol::Switch, and gather its ACKs
// without lanes with the shipped endpoint::AckGatherer. The job's tree determines the route.
//
// Ownership: owns state machines and tensors of the current incarnation. Borrows the objects in Shared.
class AtpJob final : public Job {
  public:
    AtpJob(const Shared& shared, ProgramId id, unsigned index);

    void receive(const Arrival& arrival, Time now) override;
    void forward(const Arrival& arrival, Time now) override;
    [[nodiscard]] std::string describe(std::span<std::byte> packet) const override;

    void crash_worker(unsigned rank, Duration lasts, Time now) override;
    void crash_server(Duration lasts, Time now) override;
    void crash_switch(NodeId at) override;

    [[nodiscard]] JobReport report() const override;
    [[nodiscard]] double share_done() const override;
    [[nodiscard]] std::uint64_t delivered_bytes() const override;
    [[nodiscard]] std::uint64_t added_in_network() const override;
    [[nodiscard]] std::uint64_t added_at_server() const override;
    [[nodiscard]] std::string whereabouts() const override;
    void check(const JobReport& report) override;

  private:
    // The state of one worker in one channel.
    struct Endpoint {
        std::optional<protocol::Worker> worker;  // empty while crashed
        std::vector<GradientTensor> tensors;     // of the current iteration, by bucket
        std::uint64_t first_tensor = 0;          // number that the worker gave to tensors[0]
        unsigned open = 0;                       // tensors not yet summed
        bool failed = false;
        Time wake_at = never;  // earliest scheduled timer event
    };

    struct Rank {
        std::vector<unsigned> open_channels;  // by bucket of the iteration: number of channels that have no sum yet
        Time up_at{};                         // end of the crash
    };

    struct Channel {
        std::unique_ptr<GradientSource> source;
        std::optional<protocol::Server> server;  // empty while crashed
    };

    // Events: a timer for each endpoint, the start of an incarnation, and for each switch the lists of ACKs.
    [[nodiscard]] std::uint32_t form_event() const { return static_cast<std::uint32_t>(endpoints_.size()); }
    [[nodiscard]] std::uint32_t lists_event(NodeId at) const { return form_event() + 1 + at; }
    void on_system_event(std::uint32_t event, Time now) override;
    [[nodiscard]] NodeId node_of_system_event(std::uint32_t event) const override;
    void submit(unsigned rank, workload::Training::Buckets buckets, Time now) override;

    [[nodiscard]] NodeId host_of_endpoint(std::uint32_t endpoint) const {
        return site().worker_hosts[rank_of(endpoint)];
    }
    [[nodiscard]] unsigned rank_of(std::uint32_t endpoint) const { return endpoint % ranks(); }
    [[nodiscard]] unsigned channel_of(std::uint32_t endpoint) const { return endpoint / ranks(); }
    [[nodiscard]] std::uint32_t endpoint_of(unsigned channel, unsigned rank) const { return channel * ranks() + rank; }
    [[nodiscard]] protocol::ChannelConfig channel_config(unsigned channel) const;

    void form(Time now);
    void admit_everywhere();
    void make_lists();
    void open_lists();
    void add_list_counters(JobReport& report) const;
    void form_channel(unsigned channel);
    void form_worker(unsigned channel, unsigned rank);
    void retire(Endpoint& endpoint);
    void retire(Channel& channel);
    void submit_bucket(unsigned channel, unsigned rank, std::uint32_t bucket, Time now);
    void deliver_to_worker(unsigned channel, unsigned rank, const Arrival& arrival, Time now);
    void deliver_to_server(unsigned channel, const Arrival& arrival, Time now);
    void bypass_forced(std::byte* packet) const;
    [[nodiscard]] bool gather(PacketId packet, const protocol::PacketBuffer& handled, NodeId at, Time now);
    void on_lists_due(NodeId at, Time now);
    void send_lists(NodeId at, Time now);
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
    void fail(const std::string& text);

    std::optional<policy::Aggregators> indices_;  // empty: the hash of the protocol. The machines below borrow it
    std::vector<std::int32_t> rank_at_;           // by node; -1: not a worker of this job
    std::uint64_t token_ = 0;
    std::uint64_t admitted_token_ = 0;  // at the switches; 0: none
    std::vector<Channel> channels_;
    std::vector<Endpoint> endpoints_;
    std::vector<std::unique_ptr<AckLists>> lists_;  // by switch; nullptr: it makes none
    std::vector<Rank> ranks_;
    unsigned first_iteration_ = 0;  // of the current incarnation
    bool broken_ = false;           // a worker or the server crashed, or an operation timed out
    bool forming_ = false;          // the start of the next incarnation is scheduled
    Time server_up_at_{};
};

}  // namespace atp::sim
