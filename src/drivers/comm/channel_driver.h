// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/channel_exchange.h"
#include "comm/channel_thread.h"
#include "comm/work.h"
#include "endpoint/channel_machine.h"
#include "net/event_loop.h"
#include "net/transport.h"
#include "net/udp_socket.h"

namespace atp::comm {

// What a channel tells its owner, each on its thread. Empty: nobody listens.
struct ChannelHooks {
    std::function<void(const Error&)> ended{};       // once; maybe in stop()
    std::function<void(const std::string&)> slow{};  // for whom the others wait
    // Once: more than 1 % of its fragments were sent as floats.
    std::function<void(const protocol::WorkerCounters&)> floats{};
    // Once: a switch in the path adds only int32 lanes.
    std::function<void()> int32_lanes{};
};

struct ChannelPlan {
    endpoint::ChannelMachineConfig machine;
    std::optional<net::UdpConfig> group{};  // socket for the multicast group of the terms; nullopt: none
    net::LoopConfig loop;
    std::size_t thread = 0;  // number of its I/O thread; channels of one thread have equal loops
    ChannelHooks hooks{};
};

// Drives one channel of one rank on an I/O thread: moves datagrams, time and operations between sockets, callers
// and the ChannelMachine, which decides.
//
// Ownership: owns its transport, group socket and machine. Shares each Work with the caller, and its thread with other
// channels.
// Calling order: open(), then the thread starts; wait_ready(); submit() and wake() any number of times; then stop() or
// the destructor. Parts that are submitted before the tree is ready wait for it. The end of the channel sends LEAVE.
// Threads: one thread calls open() and stop(). Any thread calls the other functions. Failure: if an operation fails or
// a switch refuses the channel, the channel ends. All parts, also those submitted later, end with an error, and the
// caller must form another communicator.
class ChannelDriver final : private ThreadedChannel {
  public:
    [[nodiscard]] static Result<std::unique_ptr<ChannelDriver>> open(std::unique_ptr<net::Transport> transport,
                                                                     const ChannelPlan& plan,
                                                                     std::shared_ptr<ChannelThread> thread);
    ~ChannelDriver() override;
    ChannelDriver(const ChannelDriver&) = delete;
    ChannelDriver& operator=(const ChannelDriver&) = delete;

    // Waits until the tree is ready: all members have joined, and the server is reached.
    [[nodiscard]] Result<void> wait_ready(Time deadline);
    // Submits one part of `work`, which begins at the next wake(). The channel calls Work::finish_part() for it in
    // every case.
    void submit(const Handle& work, std::size_t part);
    // Tells the thread that it has more parts than before, or a tensor in flight more elements ready.
    void wake() { thread_->loop().wake(); }
    // Ends the channel and all its parts with this error.
    void abort(const Error& reason);
    void stop();

    [[nodiscard]] ChannelCounters counters() const { return exchange_.counters(); }
    // What the kernel refused to the sockets, and why, as of the last publish().
    [[nodiscard]] std::vector<std::string> missing_features() const { return exchange_.missing_features(); }
    // The error that ended the channel; nullopt while it runs.
    [[nodiscard]] std::optional<Error> error() const { return exchange_.error(); }

  private:
    ChannelDriver(std::shared_ptr<ChannelThread> thread, std::unique_ptr<net::Transport> transport,
                  const ChannelPlan& plan);

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    void handle_wake(Time now) override;
    void finish_round(Time now) override;
    [[nodiscard]] Time poll_timeout() const override;
    void handle_loop_failure(const Error& error) override;
    void leave();

    void open_group(const net::UdpConfig& config);
    void close_group(const Error& why);
    template <class Visit>
    [[nodiscard]] Result<void> receive(net::Transport& from, Visit&& visit, Time now);
    void receive_errors(Time now);
    void take_submissions(Time now);
    [[nodiscard]] Time earliest_waiting() const;
    void end_late(Time now);
    void take_events(Time now);
    void transmit(Time now);
    void flush();
    void fail(const Error& error, Time now);
    void publish(Time now);
    void report_floats();

    std::shared_ptr<ChannelThread> thread_;
    std::unique_ptr<net::Transport> transport_;
    std::unique_ptr<net::UdpSocket> group_socket_;
    endpoint::ChannelMachine machine_;
    std::vector<wire::Datagram> datagrams_;
    ChannelHooks hooks_;              // `floats` is empty after its call
    std::deque<WorkPart> in_flight_;  // accepted by the machine, in its order
    std::deque<WorkPart> waiting_;    // not accepted yet: the worker's queue is full
    bool ready_ = false;              // the tree was ready
    bool blocked_ = false;            // the transport's buffer is full
    bool due_ = true;                 // packets may be due that transmit() has not sent
    bool errors_due_ = false;         // the transport may have reports about packets sent earlier
    bool group_forgotten_ = false;    // the group's socket has to join it again
    bool ended_ = false;              // fail() ran
    bool counted_ = false;            // counters changed since the last publish()
    Time publish_next_{};
    std::atomic<bool> stopping_{false};  // stop() waits for the machine to close
    bool stopped_ = false;
    bool closed_ = false;  // it has; the channel leaves its thread at the end of the round
    // The thread does not use the channel any more. Shared, since stop() may destroy the channel at once.
    std::shared_ptr<std::atomic<bool>> left_ = std::make_shared<std::atomic<bool>>(false);
    ChannelExchange exchange_;
};

}  // namespace atp::comm
