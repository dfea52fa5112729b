// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/switch_report.h"
#include "control/question_pace.h"
#include "control/switch_room.h"
#include "endpoint/shard_machine.h"
#include "net/event_loop.h"
#include "net/transport.h"
#include "switchd/config.h"
#include "switchd/control_turns.h"
#include "switchd/mailbox.h"
#include "switchd/shard_outbox.h"

namespace atp::switchd {

// One thread of a software switch: a socket, and a ShardMachine that decides what becomes of each datagram.
//
// Ownership: owns both. open() allocates everything except the servers, which are created and removed with their jobs
//   within a bound. Borrows the loop; shares its tables with the other shards.
// Calling order: open(), then the loop runs it.
// Threads: the loop's; deliver(), set_tenants(), set_hosts() and snapshot() from any. Shards share nothing on the
// packet path. Failure: open() returns the reason. If the socket fails for good, the shard stops using it, and
// failure() returns the error.
class ShardDriver final : public net::Actor {
  public:
    // Called by the first shard with control messages for the node or for another shard. Answers go to `out`.
    using Dispatch = std::function<void(endpoint::ControlMessage message, wire::Outbox& out, Time now)>;
    // Of all shards together.
    struct SharedTables {
        std::shared_ptr<control::SwitchRoom> room;
        std::shared_ptr<control::QuestionPace> pace;
    };

    [[nodiscard]] static Result<std::unique_ptr<ShardDriver>> open(const SwitchNodeConfig& config, std::uint32_t number,
                                                                   net::EventLoop& loop, Dispatch dispatch,
                                                                   SharedTables shared);
    ~ShardDriver() override;

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    void handle_wake(Time now) override;
    void finish_round(Time now) override;
    [[nodiscard]] Time poll_timeout() const override;

    // A JOIN, LEAVE or answer for a channel of this shard, handled on its thread soon. The second one is for that
    // thread.
    void deliver(endpoint::ControlMessage message);
    void enqueue(endpoint::ControlMessage message, Time now);
    // The thread serves them soon.
    void set_tenants(std::shared_ptr<const control::Tenants> tenants);
    void set_hosts(control::HostLists hosts);
    [[nodiscard]] client::ShardReport snapshot() const;
    // Updates the snapshot; on the loop's thread.
    void publish();

    // For answers of the node, on the loop's thread; sent at the end of the round.
    [[nodiscard]] wire::Outbox& outbox() { return outbox_; }

    [[nodiscard]] const wire::Address& local() const { return socket_->local(); }
    [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  private:
    ShardDriver(const SwitchNodeConfig& config, net::EventLoop& loop, Dispatch dispatch, SharedTables shared,
                std::unique_ptr<net::Transport> socket, wire::TraceSink* trace);

    static constexpr int batches_per_round = 8;
    static constexpr Duration control_per_round = std::chrono::microseconds(500);

    void resume(Time now);
    void receive(Time now);
    void receive_errors(Time now);
    void take_events(Time now);
    void handle_control();
    void flush();

    net::EventLoop& loop_;
    Dispatch dispatch_;
    std::shared_ptr<observe::Log> log_;  // nullptr: none
    std::unique_ptr<net::Transport> socket_;
    ShardOutbox outbox_;
    endpoint::ShardMachine machine_;
    std::vector<wire::Datagram> datagrams_;
    bool errors_due_ = false;  // the socket has reports about packets sent earlier
    bool waits_ = false;       // the loop watches for room to send instead of datagrams
    std::optional<Error> failure_;
    Mailbox mailbox_;
    ControlTurns control_;

    mutable std::mutex mutex_;  // guards the three that follow; never locked on the packet path
    std::optional<std::shared_ptr<const control::Tenants>> new_tenants_;
    std::optional<control::HostLists> new_hosts_;
    client::ShardReport published_;
    bool changed_ = false;
    Time publish_at_{};
};

}  // namespace atp::switchd
