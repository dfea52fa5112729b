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

#include "net/event_loop.h"
#include "net/held_packets.h"
#include "net/hosted_server.h"
#include "net/join_tree.h"
#include "net/stream_pool.h"
#include "net/switch_config.h"
#include "net/switch_snapshot.h"
#include "net/udp_socket.h"
#include "protocol/switch.h"

namespace atp::net {

// A message that another shard is to handle.
struct ControlLetter {
    Address from;
    std::vector<std::byte> bytes;
    Ecn ecn = Ecn::not_capable;
};

// One thread's share of a software switch: a socket, a table of aggregators, a pool of SwitchML's slots, the channels
// that hash to it with their branches of the tree, and the servers that stand here.
//
// Calling order: open(), then a loop runs it. deliver() and snapshot() from any thread.
// Owns: everything it uses, claimed when it is opened, but the servers, which come and go with jobs within a bound.
// Threads: its loop's, but for the two above. Nothing on the packet path is shared with another shard.
// Failure: open() says why. A socket that fails for good ends the loop's use of it: failure() tells.
class SwitchShard final : public Actor {
  public:
    // What the first shard passes on: control messages that belong to the node or to another shard. `from` and the
    // bytes hold for the call.
    using Dispatch = std::function<void(std::span<const std::byte> bytes, const Address& from, Ecn ecn)>;

    [[nodiscard]] static Result<std::unique_ptr<SwitchShard>> open(const SwitchNodeConfig& config, std::uint32_t number,
                                                                   EventLoop& loop, Dispatch dispatch);
    ~SwitchShard() override;

    void handle_ready(int descriptor, Ready ready, protocol::Time now) override;
    void handle_timeout(protocol::Time now) override;
    void handle_wake(protocol::Time now) override;
    void finish_round(protocol::Time now) override;
    [[nodiscard]] protocol::Time poll_timeout() const override;

    // A JOIN, LEAVE or answer for a channel of this shard; handled on its thread soon. What finds no room is
    // counted and lost: it is said again.
    void deliver(ControlLetter letter);
    // A datagram of the node's own, sent by the shard's thread.
    void post(ControlLetter letter);  // `from` is the receiver
    [[nodiscard]] ShardSnapshot snapshot() const;
    // Renews the snapshot; on its loop's thread.
    void publish();

    [[nodiscard]] const Address& local() const { return socket_->local(); }
    [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  private:
    SwitchShard(const SwitchNodeConfig& config, std::uint32_t number, EventLoop& loop, Dispatch dispatch,
                std::unique_ptr<UdpSocket> socket);

    static constexpr std::size_t batch_packets = 64;
    static constexpr int batches_per_round = 8;

    [[nodiscard]] bool resume(protocol::Time now);
    void receive(protocol::Time now);
    void admit_arrival(const Datagram& datagram, protocol::Time now);
    void take_packet(std::span<std::byte> bytes, std::size_t capacity, const Address& from, bool congested,
                     protocol::Time now);
    void add_packet(std::span<std::byte> bytes, std::size_t capacity, bool congested, protocol::Time now);
    void pass_to_racks(std::span<const std::byte> flush, protocol::Time now);
    void process_batch(protocol::Time now);
    void process_update(std::span<std::byte> bytes, const Address& from, protocol::Time now);
    void forward(const protocol::Parcel& parcel, protocol::Time now);
    void forward_up(const protocol::Parcel& parcel, Branch& branch, protocol::Time now);
    void forward_down(std::span<const std::byte> bytes, bool congested, const Branch& branch,
                      const protocol::Verdict& verdict, protocol::Time now);
    [[nodiscard]] bool goes_to_group(std::span<const std::byte> bytes, const Branch& branch,
                                     const protocol::Verdict& verdict) const;
    template <class Visit>
    static void for_each_receiver(std::span<const std::byte> bytes, const Branch& branch,
                                  const protocol::Verdict& verdict, Visit&& visit);
    void flush_racks(std::span<const std::byte> flush, const Branch& branch, std::uint32_t units, protocol::Time now);
    void feed_server(HostedServer& host, std::span<std::byte> bytes, bool congested, protocol::Time now);
    void drain_servers(protocol::Time now);
    bool drain(HostedServer& host, protocol::Time now);
    void pass_flush(std::span<const std::byte> bytes, const Branch& branch, protocol::Time now);
    [[nodiscard]] std::span<std::byte> room_for_copies(const Branch& branch);
    void answer(const protocol::Parcel& parcel, const Branch& branch, protocol::Time now);
    bool send(std::span<const std::byte> bytes, const Address& to, Ecn ecn, bool again, protocol::Time now);
    void send_through_port(std::span<const std::byte> bytes, const Address& to, Ecn ecn, protocol::Time now);
    void send_copy(std::span<const std::byte> bytes, const Address& to, Ecn ecn);
    void release_held(protocol::Time now);

    void handle_control(std::span<const std::byte> bytes, const Address& from, protocol::Time now);
    void drain_tree(protocol::Time now);
    void find_group(const Address& group, const Address& near);
    void handle_event(const TreeEvent& event);
    void open_server(const Branch& branch);
    void open_stream(const Branch& branch);
    void close_channel(const TreeEvent& event);
    void read_letters(protocol::Time now);
    void flush();

    SwitchNodeConfig config_;
    EventLoop& loop_;
    Dispatch dispatch_;
    std::unique_ptr<UdpSocket> socket_;
    protocol::Switch switch_;
    StreamPool pool_;
    JoinTree tree_;
    bool emulates_;
    PortTable ports_;
    HeldPackets held_;
    std::unordered_map<const Branch*, std::unique_ptr<HostedServer>> servers_;
    std::vector<HostedServer*> busy_servers_;
    std::vector<const Branch*> busy_branches_;  // beside them
    std::vector<Datagram> datagrams_;
    std::vector<protocol::Parcel> parcels_;
    AlignedBytes scratch_;  // for packets that must grow, and for a server's own
    std::size_t scratch_used_ = 0;
    std::size_t packet_bytes_;
    bool blocked_ = false;  // the socket takes no more: nothing is received until it does
    std::optional<Error> failure_;
    ShardCounters counters_;

    mutable std::mutex mutex_;  // the mailboxes and the published copy; never on the packet path
    std::vector<ControlLetter> letters_;
    std::vector<ControlLetter> posts_;
    std::uint64_t letters_lost_ = 0;
    ShardSnapshot published_;
    bool changed_ = false;
    protocol::Time publish_at_{};
};

}  // namespace atp::net
