// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/channel_engine.h"
#include "comm/work.h"
#include "control/group_reception.h"
#include "control/hosted_server.h"
#include "net/event_loop.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::comm {

struct ChannelPlan {
    wire::ChannelTerms terms;
    wire::JoiningUnit unit;  // this worker's place, as its JOIN says it
    std::uint8_t level = 0;  // of its switch
    WorkerPlan worker;
    wire::Address switch_address;
    std::shared_ptr<const protocol::Membership> membership;
    bool hosts_server = false;              // the channel's server stands here
    std::optional<net::UdpConfig> group{};  // how to hear the group of the terms
    net::LoopConfig loop;
};

struct ChannelCounters {
    protocol::WorkerCounters worker;
    protocol::ServerCounters server;  // hosts_server
    net::UdpCounters udp;
    net::UdpCounters group_udp;       // of the socket that hears the group
    std::uint64_t group_results = 0;  // results for everybody that came by the group
    bool results_by_group = false;    // the last of them did
    std::uint32_t window_packets = 0;
    std::uint64_t strays = 0;  // datagrams that belong to nobody here
};

// One channel of one rank on its own I/O thread: the socket, the worker, its place in the tree of switches, and the
// server where that stands here.
//
// Calling order: open(); wait_ready(); submit() any number of times; stop(), or the destructor, which leaves the tree.
// Owns: its thread, its socket and everything behind them; shares Work. Threads: open() and stop() from one; all else
// from any.
// Failure: when an operation fails, or the tree refuses the channel, all that is submitted and all that will be ends
// with an error, and the communicator has to be formed anew.
class Channel final : private net::Actor {
  public:
    [[nodiscard]] static Result<std::unique_ptr<Channel>> open(std::unique_ptr<net::UdpSocket> socket,
                                                               const ChannelPlan& plan);
    ~Channel() override;
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    // The tree stands, up to the server: all members have joined.
    [[nodiscard]] Result<void> wait_ready(Time deadline);
    // The part of that number. It is finished whatever happens.
    void submit(const Handle& work, std::size_t part);
    // Some tensor under way has more elements ready than before.
    void wake() { loop_->wake(); }
    // Ends everything under way with this error.
    void abort(const Error& reason);
    void stop();

    [[nodiscard]] ChannelCounters counters() const;
    // What its socket was refused, and why; the moment before.
    [[nodiscard]] std::vector<std::string> without() const;
    // What ended the channel, if something did.
    [[nodiscard]] std::optional<Error> error() const;

  private:
    struct Part {
        Handle work;
        std::size_t number = 0;
    };
    // Where the channel stands with its tree.
    enum class Standing : std::uint8_t { joining, ready, lost };

    Channel(std::unique_ptr<net::EventLoop> loop, std::unique_ptr<net::UdpSocket> socket, const ChannelPlan& plan);

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    void handle_wake(Time now) override;
    void finish_round(Time now) override;
    [[nodiscard]] Time poll_timeout() const override;

    void open_group();
    void report_group();  // to the network: that somebody listens here
    void close_group(const Error& why);
    void receive(Time now);
    void receive_from_group(Time now);
    void handle_datagram(const wire::Datagram& datagram, Time now);
    void handle_group_datagram(const wire::Datagram& datagram, Time now);
    void note_own_result(std::span<const std::byte> bytes);
    template <class Message>
    [[nodiscard]] bool is_mine(const Message& message) const;
    void handle_control(const wire::Datagram& datagram, Time now);
    [[nodiscard]] bool believes(const wire::Address& from) const;
    void handle_joined(const wire::Joined& joined, const wire::Address& from, Time now);
    void note_missing(const wire::Joined& joined);
    void answer_join(const wire::Join& join, const wire::Address& from);
    void join(Time now);
    void take_submissions(Time now);
    void take_events(Time now);
    void transmit(Time now);
    void transmit_server();
    void flush();
    void leave();
    void fail(const Error& error, Time now);
    [[nodiscard]] Error describe(const WorkerEvent& event, Time now) const;
    [[nodiscard]] Error describe_silence(const WorkerEvent& event, Time now) const;
    [[nodiscard]] std::string missing_ranks(std::uint32_t units, std::uint32_t members) const;
    void publish(Time now);

    ChannelPlan plan_;
    std::unique_ptr<net::EventLoop> loop_;
    std::unique_ptr<net::UdpSocket> socket_;
    std::unique_ptr<net::UdpSocket> group_socket_;
    control::Hearing hearing_;
    std::unique_ptr<ChannelWorker> worker_;
    std::unique_ptr<control::HostedServer> server_;
    wire::Address server_down_;  // the switch that this server answers to
    std::vector<wire::Datagram> datagrams_;
    std::deque<Part> under_way_;  // in the order in which the worker has them
    std::deque<Part> waiting_;    // for room in the worker's queue
    wire::Address data_address_;  // where gradients go: who has answered the JOIN
    Standing standing_ = Standing::joining;
    Time lost_since_{};
    Time join_next_{};
    Time switch_heard_{};
    std::uint32_t missing_units_ = 0;
    std::uint32_t missing_members_ = 0;
    std::string waiting_for_;  // these, as ranks
    bool blocked_ = false;
    bool ended_ = false;    // fail() was called
    bool counted_ = false;  // something that is not published yet
    std::uint64_t strays_ = 0;
    std::uint64_t group_results_ = 0;
    bool results_by_group_ = false;
    std::atomic<Duration::rep> served_{0};  // hosts_server: when somebody last needed it

    mutable std::mutex mutex_;  // all below; never held while packets are handled
    std::condition_variable changed_;
    std::deque<Part> submitted_;
    bool ready_ = false;
    std::string joining_text_;  // who is missing, as far as is known
    std::optional<Error> error_;
    std::optional<Error> abort_;
    ChannelCounters published_;
    net::UdpReport published_report_;
    std::string group_failure_;  // why it is not heard
    Time publish_next_{};
    std::thread thread_;
};

}  // namespace atp::comm
