// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "client/switch_report.h"
#include "control/join_tree.h"
#include "endpoint/hosted_server.h"
#include "endpoint/shard_protocol.h"
#include "net/event_loop.h"
#include "net/transport.h"
#include "protocol/switch.h"
#include "switchd/config.h"

namespace atp::switchd {

// A control message for another shard, or a datagram that another shard sends.
struct QueuedMessage {
    wire::Address from;
    std::vector<std::byte> bytes;
    wire::Ecn ecn = wire::Ecn::not_capable;
};

// One thread of a software switch: a socket, a table of aggregators, the channels that hash to it with
// their branches of the tree, and the servers that it hosts.
//
// Ownership: owns all of these. open() allocates everything except the servers, which are created and removed with
//   their jobs within a bound. Borrows the loop; shares `room` with the other shards.
// Calling order: open(), then the loop runs it.
// Threads: the loop's; deliver(), post() and snapshot() from any. Shards share nothing on the packet path.
// Failure: open() returns the reason. If the socket fails for good, the shard stops using it, and failure() returns the
// error.
class ShardDriver final : public net::Actor {
  public:
    // Called by the first shard with control messages for the node or for another shard. `bytes` and `from` are valid
    // during the call.
    using Dispatch = std::function<void(std::span<const std::byte> bytes, const wire::Address& from, wire::Ecn ecn)>;

    [[nodiscard]] static Result<std::unique_ptr<ShardDriver>> open(const SwitchNodeConfig& config, std::uint32_t number,
                                                                   net::EventLoop& loop, Dispatch dispatch,
                                                                   std::shared_ptr<control::SwitchRoom> room);
    ~ShardDriver() override;

    void handle_ready(int descriptor, net::Ready ready, Time now) override;
    void handle_timeout(Time now) override;
    void handle_wake(Time now) override;
    void finish_round(Time now) override;
    [[nodiscard]] Time poll_timeout() const override;

    // A JOIN, LEAVE or answer for a channel of this shard, handled on its thread soon. If the mailbox is full, the
    // message is counted and dropped; its sender repeats it.
    void deliver(QueuedMessage queued_message);
    // A datagram of the node, which the shard's thread sends.
    void post(QueuedMessage queued_message);  // `from`: the receiver
    [[nodiscard]] client::ShardReport snapshot() const;
    // Renews the snapshot; on the loop's thread.
    void publish();

    [[nodiscard]] const wire::Address& local() const { return socket_->local(); }
    [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  private:
    ShardDriver(const SwitchNodeConfig& config, std::uint32_t number, net::EventLoop& loop, Dispatch dispatch,
                std::shared_ptr<control::SwitchRoom> room, std::unique_ptr<net::Transport> socket);

    static constexpr std::size_t batch_packets = 64;
    static constexpr int batches_per_round = 8;

    [[nodiscard]] bool resume(Time now);
    void receive(Time now);
    void take_datagram(const wire::Datagram& datagram, Time now);
    void add_packet(std::span<std::byte> bytes, std::size_t capacity, bool congested);
    void pass_to_racks(std::span<const std::byte> flush);
    void process_batch(Time now);
    void answer_by_protocol(std::span<std::byte> bytes, const wire::Address& from);
    void forward(const protocol::PacketBuffer& packet_buffer, Time now);
    void forward_up(const protocol::PacketBuffer& packet_buffer, control::Branch& branch, Time now);
    void forward_down(std::span<const std::byte> bytes, bool congested, const control::Branch& branch,
                      const protocol::Verdict& verdict);
    [[nodiscard]] bool goes_to_group(std::span<const std::byte> bytes, const control::Branch& branch,
                                     const protocol::Verdict& verdict) const;
    template <class Visit>
    static void for_each_receiver(std::span<const std::byte> bytes, const control::Branch& branch,
                                  const protocol::Verdict& verdict, Visit&& visit);
    void flush_racks(std::span<const std::byte> flush, const control::Branch& branch, std::uint32_t units);
    void feed_server(endpoint::HostedServer& host, std::span<std::byte> bytes, bool congested, Time now);
    void drain_servers(Time now);
    bool drain(endpoint::HostedServer& host, Time now);
    void pass_flush(std::span<const std::byte> bytes, const control::Branch& branch);
    [[nodiscard]] std::span<std::byte> room_for_copies(const control::Branch& branch);
    void answer(const protocol::PacketBuffer& packet_buffer, const control::Branch& branch);
    bool send(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn, bool again);
    void send_copy(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn);

    void handle_control(std::span<const std::byte> bytes, const wire::Address& from, Time now);
    void drain_tree(Time now);
    void find_group(const wire::Address& group, const wire::Address& near);
    void handle_event(const control::TreeEvent& event);
    void open_server(const control::Branch& branch);
    void open_other(const control::Branch& branch);
    void close_channel(const control::TreeEvent& event);
    void read_queued_messages(Time now);
    void flush();

    SwitchNodeConfig config_;
    net::EventLoop& loop_;
    Dispatch dispatch_;
    std::unique_ptr<net::Transport> socket_;
    protocol::Switch switch_;
    std::unique_ptr<endpoint::ShardProtocol> other_;  // nullptr: this shard serves ATP alone
    control::JoinTree tree_;
    std::unordered_map<const control::Branch*, std::unique_ptr<endpoint::HostedServer>> servers_;
    std::vector<endpoint::HostedServer*> busy_servers_;
    std::vector<const control::Branch*> busy_branches_;  // in the order of busy_servers_
    std::vector<wire::Datagram> datagrams_;
    std::vector<protocol::PacketBuffer> packet_buffers_;
    net::AlignedBytes scratch_;  // for packets that grow, and for packets of servers
    std::size_t scratch_used_ = 0;
    std::size_t packet_bytes_;
    bool blocked_ = false;  // the socket takes no more packets; until it does, the shard receives nothing
    std::optional<Error> failure_;
    client::ShardCounters counters_;

    mutable std::mutex mutex_;  // guards the mailboxes and the published copy; never locked on the packet path
    std::vector<QueuedMessage> queued_messages_;
    std::vector<QueuedMessage> posts_;
    std::uint64_t queued_messages_lost_ = 0;
    client::ShardReport published_;
    bool changed_ = false;
    Time publish_at_{};
};

}  // namespace atp::switchd
