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
#include "sim/event_queue.h"
#include "sim/fabric.h"
#include "sim/gradients.h"
#include "sim/network.h"
#include "sim/report.h"
#include "sim/scenario.h"

namespace atp::sim {

// What the jobs of one world share.
struct Shared {
    const Scenario& scenario;
    EventQueue& events;
    Network& network;
    std::vector<protocol::Switch>& switches;
    Trace* trace = nullptr;
    std::vector<std::string>& failures;
};

// Each worker submits the tensors of an iteration on all of its channels, computes for a while when all are summed, and
// goes on to the next. When an operation times out the incarnation is over: once every living worker knows, the job
// forms anew with another token, and repeats the iterations that some worker lacks. Old packets may still be on their
// way.
//
// Calling order: form() when its event comes, then the handlers as packets, timers and outages say.
// Owns: machines and tensors of the current incarnation. Borrows what is shared, and its site.
class Job {
  public:
    Job(const Shared& shared, unsigned index, const Site& site);

    [[nodiscard]] Time start() const { return Time(index_ * shared_.scenario.stagger); }
    void form(Time now);

    // The packet stays the caller's.
    void deliver_to_worker(unsigned channel, unsigned rank, std::span<std::byte> packet, bool congested, Time now);
    void deliver_to_server(unsigned channel, std::span<std::byte> packet, bool congested, Time now);
    void wake(std::uint32_t endpoint, Time now);  // a timer of one of its endpoints
    void resume(unsigned rank, Time now);         // its computation is done

    void crash_worker(unsigned rank, Duration lasts, Time now);
    void crash_server(Duration lasts, Time now);

    [[nodiscard]] std::uint32_t number() const { return shared_.scenario.first_job + index_; }
    [[nodiscard]] unsigned index() const { return index_; }
    [[nodiscard]] const Site& site() const { return site_; }
    [[nodiscard]] bool finished() const { return report_.finished.has_value(); }
    [[nodiscard]] std::uint32_t endpoints() const { return shared_.scenario.channels * site_.membership.workers(); }
    [[nodiscard]] NodeId host_of_endpoint(std::uint32_t endpoint) const {
        return site_.worker_hosts[rank_of(endpoint)];
    }
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

    [[nodiscard]] unsigned rank_of(std::uint32_t endpoint) const { return endpoint % site_.membership.workers(); }
    [[nodiscard]] unsigned channel_of(std::uint32_t endpoint) const { return endpoint / site_.membership.workers(); }
    [[nodiscard]] std::uint32_t endpoint_of(unsigned channel, unsigned rank) const {
        return channel * site_.membership.workers() + rank;
    }
    [[nodiscard]] protocol::ChannelConfig channel_config(unsigned channel) const;

    void admit_everywhere();
    void form_channel(unsigned channel);
    void form_worker(unsigned channel, unsigned rank);
    void retire(Endpoint& endpoint);
    void retire(Channel& channel);
    void begin_iteration(unsigned rank, Time now);
    void drive(std::uint32_t endpoint, Time now);
    void drive_server(Channel& channel, Time now);
    void set_timer(std::uint32_t endpoint);
    void on_event(std::uint32_t endpoint, const protocol::WorkerEvent& event, Time now);
    void on_completed(std::uint32_t endpoint, std::uint64_t number, Time now);
    void on_timed_out(std::uint32_t endpoint, const protocol::WorkerEvent& event);
    void form_again_if_over(Time now);
    [[nodiscard]] bool gave_up_or_done(unsigned rank) const;
    [[nodiscard]] bool all_done() const;
    void fail(std::string text);

    Shared shared_;
    unsigned index_;
    const Site& site_;
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
