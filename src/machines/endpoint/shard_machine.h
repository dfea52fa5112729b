// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "control/address_buckets.h"
#include "control/gatekeeper.h"
#include "control/join_tree.h"
#include "control/switch_codes.h"
#include "control/table_slices.h"
#include "endpoint/ack_gatherer.h"
#include "endpoint/control_queue.h"
#include "endpoint/hosted_server.h"
#include "protocol/archive.h"
#include "protocol/switch.h"
#include "protocol/variant.h"
#include "wire/address.h"
#include "wire/datagram.h"
#include "wire/outbox.h"
#include "wire/send_error.h"
#include "wire/trace.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

struct ShardMachineConfig {
    protocol::SwitchConfig table{};
    control::JoinTreeConfig tree{};                // its secret makes the cookies too
    std::vector<control::AddressRange> clients{};  // hosts that may join and ask; empty: all
    // Control messages become events, which the driver passes to the node or, in their turn, to handle_message().
    bool passes_messages = false;
    bool reaches_groups = true;  // false: packets to a multicast group would not arrive
    // Time that an ACK without lanes waits for further ones, at most. Zero: only for those of its batch.
    Duration ack_hold = usual_ack_hold;
    // Of the channels whose servers this shard hosts, borrowed; nullptr: the hash of the protocol.
    const protocol::IndexRule* indices = nullptr;
    wire::TraceSink* trace = nullptr;  // gets what the table does with each packet; nullptr: none
};

struct ShardEvent {
    enum class Kind : std::uint8_t {
        message,       // a control message
        group_used,    // packets go to the group `address`, on the interface that reaches `near`
        group_unused,  // no packet goes to the group `address` any more
    };
    Kind kind = Kind::message;
    ControlMessage message{};
    wire::Address address{};
    wire::Address near{};
};

struct ShardMachineCounters {
    std::uint64_t unrouted = 0;  // packets of unknown channels, without a receiver, or that the outbox refused
    std::uint64_t grouped = 0;   // results sent to a group instead of one copy per child
    std::uint64_t control_refused = 0;
    std::uint64_t events_lost = 0;  // too many waited
};

// What one shard of a switch does with a datagram: a table of aggregators, the channels that hash to the shard with
// their branches of the tree, and the servers that it hosts.
//
// Ownership: owns all of these. The constructor allocates everything except branches and servers, which are created and
//   removed with their jobs within a bound. Borrows the trace, and datagrams and the outbox for the duration of a call,
//   but the outbox may refer to datagrams until it is flushed.
// Calling order: handle_batch() for received datagrams, handle_message() for control messages from the node,
//   handle_timeout() at poll_timeout(). After each, poll_event() until it returns nothing, then flush the outbox; only
//   then handle_batch() again. handle_room() when an outbox without room has been flushed.
// Threads: none. Shards of one switch share only JoinTreeConfig::room.
// Failure: the constructor throws std::bad_alloc. A packet without a receiver or room is dropped and counted. Hosted
//   servers keep their answers until there is room.
class ShardMachine final : public control::SlicedTable {
  public:
    static constexpr std::size_t most_batch = 64;  // datagrams of one handle_batch()

    explicit ShardMachine(const ShardMachineConfig& config);

    void handle_batch(std::span<const wire::Datagram> batch, wire::Outbox& out, Time now);
    // A JOIN, LEAVE or answer for a channel of this shard.
    void handle_message(const ControlMessage& message, wire::Outbox& out, Time now);
    // How a message for handle_message() should wait for its turn.
    [[nodiscard]] ControlClass class_of(const ControlMessage& message);
    // A report about a packet that the shard's socket sent earlier.
    void handle_send_error(const wire::SendError& error, wire::Outbox& out, Time now);
    void handle_room(wire::Outbox& out, Time now);
    void handle_timeout(wire::Outbox& out, Time now);
    void set_tenants(std::shared_ptr<const control::Tenants> tenants, wire::Outbox& out, Time now);
    void set_hosts(control::HostLists hosts);
    // For the machine itself, which shares the table out among tenants, and for tests.
    void set_slice(const control::JobKey& job, const atp_range& slice, std::uint32_t weight) override;
    void end_changes() override { switch_.end_changes(); }
    std::optional<ShardEvent> poll_event();
    std::optional<control::TreeNotice> poll_notice() { return tree_.poll_notice(); }  // for the log
    [[nodiscard]] Time poll_timeout() const {
        return std::min({tree_.poll_timeout(), acks_.poll_timeout(), slices_.poll_timeout()});
    }

    [[nodiscard]] bool has_answers() const { return !busy_.empty() || acks_.blocked(); }  // which wait for room
    [[nodiscard]] bool reaches_groups() const { return config_.reaches_groups; }
    [[nodiscard]] const protocol::Switch& table() const { return switch_; }
    [[nodiscard]] const control::JoinTree& tree() const { return tree_; }
    [[nodiscard]] const control::TableSlices& slices() const { return slices_; }
    [[nodiscard]] const control::Gatekeeper& gatekeeper() const { return gatekeeper_; }
    [[nodiscard]] const control::AnswerLimit& limit() const { return limit_; }
    // nullptr: the branch hosts no server.
    [[nodiscard]] const protocol::Server* server_of(const control::Branch& branch) const;
    [[nodiscard]] const ShardMachineCounters& counters() const { return counters_; }
    [[nodiscard]] const AckGathererCounters& ack_counters() const { return acks_.counters(); }

    // The two parts of the saved state (protocol/archive.h): of the table, the servers and the ACKs that wait, and of
    // the tree. Before, poll_event() has returned nothing, and every packet had room.
    template <protocol::Archive Archive>
    void persist_data(Archive& archive);
    // Defined in persist_shard_machine.h.
    template <protocol::Archive Archive>
    void persist_joining(Archive& archive);

  private:
    static constexpr std::size_t most_events = 1024;  // before another message is lost

    // A server with packets to send.
    struct BusyServer {
        control::ChannelKey key;
        HostedServer* host = nullptr;
        control::Branch* branch = nullptr;
    };

    void take_datagram(const wire::Datagram& datagram, wire::Outbox& out, Time now);
    void take_message(const wire::Datagram& datagram, wire::Outbox& out, Time now);
    void add_packet(const wire::Datagram& datagram, wire::Outbox& out);
    [[nodiscard]] bool is_stranger(std::span<const std::byte> packet, const wire::Address& from);
    void pass_to_racks(std::span<const std::byte> flush, wire::Outbox& out);
    void flush_racks(std::span<const std::byte> flush, const control::Branch& branch, std::uint32_t units,
                     wire::Outbox& out);
    void process_batch(wire::Outbox& out, Time now);
    void trace(const protocol::PacketBuffer& packet, Time now);
    void forward(const protocol::PacketBuffer& packet, wire::Outbox& out, Time now);
    void note_result(const protocol::PacketBuffer& packet, control::Branch& branch, Time now);
    void forward_up(const protocol::PacketBuffer& packet, control::Branch& branch, wire::Outbox& out, Time now);
    void forward_down(const protocol::PacketBuffer& packet, const control::Branch& branch, wire::Outbox& out, Time now);
    [[nodiscard]] bool goes_to_group(const protocol::PacketBuffer& packet, const control::Branch& branch) const;
    bool send(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn, bool again, wire::Outbox& out);
    void send_message(const wire::JoiningMessage& message, const wire::Address& to, wire::Outbox& out, Time now,
                      std::uint32_t padded_bytes = 0);
    void send_copy(std::span<const std::byte> bytes, const wire::Address& to, wire::Outbox& out);

    void drain_servers(wire::Outbox& out, Time now);
    [[nodiscard]] bool drain(const BusyServer& busy, wire::Outbox& out, Time now);
    void answer(const protocol::PacketBuffer& packet, const control::Branch& branch, wire::Outbox& out);
    [[nodiscard]] bool gather(const protocol::PacketBuffer& packet, const control::Branch& branch, wire::Outbox& out,
                              Time now);
    void transmit_acks(wire::Outbox& out, Time now);

    void drain_tree(wire::Outbox& out, Time now);
    void handle_event(const control::TreeEvent& event, Time now);
    void open_server(const control::Branch& branch);
    void match_servers();
    void close_channel(const control::TreeEvent& event, Time now);
    void add_event(ShardEvent event);

    ShardMachineConfig config_;
    protocol::Switch switch_;
    control::SwitchCodes codes_;
    control::Gatekeeper gatekeeper_;
    control::AnswerLimit limit_;
    control::JoinTree tree_;
    control::TableSlices slices_;
    std::map<control::ChannelKey, std::unique_ptr<HostedServer>> servers_;
    std::vector<BusyServer> busy_;
    AckGatherer acks_;
    std::vector<protocol::PacketBuffer> packets_;  // of the current batch
    std::unique_ptr<std::byte[]> scratch_;         // for FLUSHes of the batch, which may grow into gradients
    std::size_t scratch_used_ = 0;                 // packets
    std::deque<ShardEvent> events_;
    ShardMachineCounters counters_;
};

template <protocol::Archive Archive>
void ShardMachine::persist_data(Archive& archive) {
    switch_.persist(archive);
    acks_.persist(archive);
    if constexpr (Archive::reads) match_servers();
    for (auto& [key, host] : servers_) host->server.persist(archive);
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
