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

#include "comm/work.h"
#include "control/group_reception.h"
#include "endpoint/hosted_server.h"
#include "endpoint/rank_protocol.h"
#include "net/event_loop.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::comm {

struct ChannelPlan {
    wire::ChannelTerms terms;
    wire::JoiningUnit unit;  // position of this worker in the tree, as its JOIN reports it
    std::uint8_t level = 0;  // of its switch, from 0
    protocol::WorkerConfig worker;
    std::shared_ptr<const endpoint::RankProtocol> other{};  // replaces `worker`; nullptr: ATP
    wire::Address switch_address;
    std::shared_ptr<const protocol::Membership> membership;
    bool hosts_server = false;              // this process runs the channel's server
    std::optional<net::UdpConfig> group{};  // socket for the multicast group of `terms`; nullopt: none
    net::LoopConfig loop;
};

struct ChannelCounters {
    protocol::WorkerCounters worker;
    protocol::ServerCounters server;  // all 0 unless hosts_server
    net::UdpCounters udp;
    net::UdpCounters group_udp;       // of the socket that receives the group
    std::uint64_t group_results = 0;  // results received from the group
    bool results_by_group = false;    // the last result to all workers came from the group, not as a copy
    std::uint32_t window_packets = 0;
    std::uint64_t strays = 0;  // received datagrams that do not belong to this channel
};

// Drives one channel of one rank on its own I/O thread: the worker, its membership in the tree of switches and, if
// ChannelPlan::hosts_server is set, the parameter server.
//
// Ownership: owns its thread, event loop, sockets, worker and server. Shares each Work with the caller.
// Calling order: open(); wait_ready(); submit() any number of times; then stop() or the destructor. The end of the
// channel sends LEAVE.
// Threads: one thread calls open() and stop(). Any thread calls the other functions.
// Failure: if an operation fails or a switch refuses the channel, the channel ends. All parts, also those submitted
// later, end with an error, and the caller must form another communicator.
class ChannelDriver final : private net::Actor {
  public:
    [[nodiscard]] static Result<std::unique_ptr<ChannelDriver>> open(std::unique_ptr<net::UdpSocket> socket,
                                                                     const ChannelPlan& plan);
    ~ChannelDriver() override;
    ChannelDriver(const ChannelDriver&) = delete;
    ChannelDriver& operator=(const ChannelDriver&) = delete;

    // Waits until the tree is ready: all members have joined, and the server is reached.
    [[nodiscard]] Result<void> wait_ready(Time deadline);
    // Submits one part of `work`. The channel calls Work::finish_part() for it in every case.
    void submit(const Handle& work, std::size_t part);
    // Tells the thread that a tensor in flight has more elements ready than before.
    void wake() { loop_->wake(); }
    // Ends the channel and all its parts with this error.
    void abort(const Error& reason);
    void stop();

    [[nodiscard]] ChannelCounters counters() const;
    // Features that the kernel refused to the sockets, and why, as of the last publish().
    [[nodiscard]] std::vector<std::string> without() const;
    // The error that ended the channel; nullopt while it runs.
    [[nodiscard]] std::optional<Error> error() const;

  private:
    struct Part {
        Handle work;
        std::size_t number = 0;
    };
    // State of the tree, as this channel's switch reports it.
    enum class Standing : std::uint8_t { joining, ready, lost };

    ChannelDriver(std::unique_ptr<net::EventLoop> loop, std::unique_ptr<net::UdpSocket> socket,
                  const ChannelPlan& plan);

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    void handle_wake(Time now) override;
    void finish_round(Time now) override;
    [[nodiscard]] Time poll_timeout() const override;

    void open_group();
    void report_group();  // rejoins the group, for bridges that forgot this member
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
    [[nodiscard]] Error describe(const endpoint::EngineEvent& event, Time now) const;
    [[nodiscard]] Error describe_silence(const endpoint::EngineEvent& event, Time now) const;
    [[nodiscard]] std::string missing_ranks(std::uint32_t units, std::uint32_t members) const;
    void publish(Time now);

    ChannelPlan plan_;
    std::unique_ptr<net::EventLoop> loop_;
    std::unique_ptr<net::UdpSocket> socket_;
    std::unique_ptr<net::UdpSocket> group_socket_;
    control::GroupReception reception_;
    std::unique_ptr<endpoint::ChannelEngine> worker_;
    bool has_tokens_;  // of worker_
    std::unique_ptr<endpoint::HostedServer> server_;
    wire::Address server_down_;  // switch that receives the hosted server's results
    std::vector<wire::Datagram> datagrams_;
    std::deque<Part> in_flight_;  // accepted by the worker, in its order
    std::deque<Part> waiting_;    // not accepted yet: the worker's queue is full
    wire::Address data_address_;  // destination of gradients: sender of the last JOINED
    Standing standing_ = Standing::joining;
    Time lost_since_{};
    Time join_next_{};
    Time switch_answered_{};
    std::uint32_t missing_units_ = 0;
    std::uint32_t missing_members_ = 0;
    std::string waiting_for_;  // the two masks above as a list of ranks
    bool blocked_ = false;
    bool ended_ = false;    // fail() ran
    bool counted_ = false;  // counters changed since the last publish()
    std::uint64_t strays_ = 0;
    std::uint64_t group_results_ = 0;
    bool results_by_group_ = false;
    std::atomic<Duration::rep> served_{0};  // hosts_server: time of the last packet to the server

    mutable std::mutex mutex_;  // guards the fields up to group_failure_; never held while packets are handled
    std::condition_variable changed_;
    std::deque<Part> submitted_;
    bool ready_ = false;
    std::string joining_text_;  // ranks or server that are missing, for wait_ready()'s error
    std::optional<Error> error_;
    std::optional<Error> abort_;
    ChannelCounters published_;
    net::UdpReport published_report_;
    std::string group_failure_;  // why the group's socket was closed; empty: it was not
    Time publish_next_{};
    std::thread thread_;
};

}  // namespace atp::comm
