// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/siphash.h"
#include "base/time.h"
#include "control/gatekeeper.h"
#include "control/join_client.h"
#include "control/member_session.h"
#include "control/persist_messages.h"
#include "control/switch_codes.h"
#include "endpoint/hosted_server.h"
#include "protocol/archive.h"
#include "protocol/membership.h"
#include "protocol/variant.h"
#include "protocol/worker.h"
#include "wire/address.h"
#include "wire/control.h"
#include "wire/datagram.h"
#include "wire/joining_message.h"
#include "wire/outbox.h"
#include "wire/send_error.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

struct ChannelMachineConfig {
    wire::ChannelTerms terms;
    wire::JoiningUnit unit;  // position of this rank in the tree, as its JOIN reports it
    std::uint8_t level = 0;  // of its switch, from 0
    std::string job_name{};  // what people call the job; empty: it has no name
    protocol::WorkerConfig worker;
    wire::Address switch_address;
    // For errors: the ranks for which each worker stands, the one that speaks for them first. Empty: one each (H46,
    // docs/spec/hazards.md#h46).
    std::vector<std::vector<std::uint16_t>> ranks_of_workers{};
    std::optional<std::uint16_t> switch_rank{};      // whose process runs the switch; nullopt: no rank of this job
    std::optional<std::uint16_t> root_rank{};        // whose process runs the switch above that one
    std::optional<std::uint16_t> server_rank{};      // whose process runs the parameter server
    std::uint64_t nonce = 0;                         // random: of the JOINs of this rank
    Secret secret{};                                 // random: of the cookies for the switch whose server runs here
    std::shared_ptr<const crypto::TenantKey> key{};  // of the job's tenant; nullptr: it has none
    std::shared_ptr<const protocol::Membership> membership;
    bool hosts_server = false;  // this process runs the channel's server
    bool has_group = false;     // a socket receives the multicast group of `terms`
};

// Why an operation failed, and with it the channel.
struct OperationCause {
    protocol::WorkerEvent event;
    Duration server_silent{};                   // since its last packet; valid if event.answered
    Duration switch_silent{};                   // since the last JOINED
    bool switch_is_silent = false;              // for longer than three refreshes of a JOIN
    std::vector<wire::Statement> statements{};  // mismatched: what the members called, as far as it is known
};

// Why a channel ended. endpoint/channel_text.h turns it into an error.
using ChannelCause = std::variant<OperationCause, control::MemberCause>;

struct ChannelEvent {
    enum class Kind : std::uint8_t {
        completed,        // the oldest tensor in flight
        waiting,          // the tree is not ready: `cause` names what is missing
        ready,            // the tree is ready for the first time
        group_forgotten,  // leave the group and join it again
        slow,             // the others wait for the rank of `pace`, or for a part of the network
        differs,          // ranks called different operations: call state() with this rank's. `failed` follows
        failed,           // the channel ended: `cause`
        closed,           // after close(): no other rank needs this channel any more
    };
    Kind kind = Kind::completed;
    std::uint64_t number = 0;  // differs: position of the operation among those in flight, from 0
    ChannelCause cause{};
    wire::Pace pace{};
    bool int32_lanes = false;  // ready: narrow integers are sent as int32, because a switch on the path adds no others
};

// One channel of one rank: the worker, the rank's membership in the tree of switches and, if the configuration requires
// it, the parameter server. It decides to which of them a datagram goes.
//
// Ownership: owns the worker, the server and the JoinClient. Borrows each submitted tensor until its event.
// Calling order: handle_*() for what happened, handle_timeout() at poll_timeout(). After each, poll_event() until it
//   returns nothing, then transmit_control() and transmit(). submit() after the event `ready`. close(), and end() after
//   the event `closed`.
// Threads: none. One thread drives one channel.
// Failure: after the event `failed` or end(), tensors are not accessed any more and submit() returns false. A hosted
//   server still answers: other ranks may miss their last result. A datagram that is not for this channel is dropped
//   and counted.
class ChannelMachine {
  public:
    explicit ChannelMachine(const ChannelMachineConfig& config);

    // A datagram of the channel's socket, and one of the socket of its group.
    void handle_datagram(const wire::Datagram& datagram, Time now);
    void handle_group_datagram(const wire::Datagram& datagram, Time now);
    // A report about a packet that the channel's socket sent earlier.
    void handle_send_error(const wire::SendError& error, Time now) { client_.handle_send_error(error, now); }
    void handle_group_lost() { client_.handle_group_lost(); }
    void handle_timeout(Time now);

    // False: the worker's queue is full until the next event `completed`, or the channel has ended.
    [[nodiscard]] bool submit(protocol::Tensor& tensor, Time now, Time deadline);
    // What this rank called, after the event `differs`: the other ranks read it, and this rank reads theirs.
    void state(std::string called, Time now);
    // This rank submits nothing more. The event `closed` follows when late ranks had time to fetch their last results
    // from the server that runs here, and after the last LEAVE of a channel that failed.
    void close(Time now);
    // Ends the channel and prepares LEAVE.
    void end();

    // Writes JOIN, LEAVE and the answers of the hosted server to JOINs. What finds no room is written by the next call.
    void transmit_control(wire::Outbox& out);
    struct Sent {
        unsigned gradients = 0;  // with PROBEs
        bool no_room = false;    // flush the outbox and call again
    };
    // Writes at most `most_gradients` packets of the worker, and all results of the hosted server.
    Sent transmit(wire::Outbox& out, unsigned most_gradients, Time now);
    [[nodiscard]] std::optional<ChannelEvent> poll_event(Time now);
    [[nodiscard]] Time poll_timeout() const;

    [[nodiscard]] const ChannelMachineConfig& config() const { return config_; }
    [[nodiscard]] const protocol::Worker& worker() const { return worker_; }
    [[nodiscard]] protocol::ServerCounters server_counters() const;  // all 0 without a hosted server
    [[nodiscard]] const control::MemberCounters& member_counters() const { return client_.counters(); }
    [[nodiscard]] std::uint64_t strays() const { return strays_; }  // datagrams that do not belong to this channel
    [[nodiscard]] std::uint64_t group_results() const { return group_results_; }  // received from the group
    // The last result to all workers came from the group, not as a copy.
    [[nodiscard]] bool results_by_group() const { return results_by_group_; }
    // nullptr: this process does not host the server.
    [[nodiscard]] const protocol::Server* server() const { return server_ == nullptr ? nullptr : &server_->server; }

    // The two parts of the saved state (protocol/archive.h): of the worker and the server, and of the rest. Before,
    // poll_event() and both transmit functions have found nothing more to do.
    template <protocol::Archive Archive>
    void persist_data(Archive& archive);
    template <protocol::Archive Archive>
    void persist_joining(Archive& archive);

  private:
    void handle_control(const wire::Datagram& datagram, Time now);
    [[nodiscard]] bool is_believed(const wire::Datagram& datagram, Time now);
    void handle_server_join(const wire::Join& join, const wire::Datagram& datagram, Time now);
    [[nodiscard]] bool has_group_number(std::span<const std::byte> bytes) const;
    [[nodiscard]] bool take_group_result(const wire::Datagram& datagram) const;
    [[nodiscard]] bool trusts(const wire::Address& from) const;
    void note_own_packet(const wire::Datagram& datagram, Time now);
    [[nodiscard]] bool proves_long_path(std::span<const std::byte> result) const;
    [[nodiscard]] bool has_identity(std::span<const std::byte> bytes) const;
    [[nodiscard]] OperationCause cause_of(const protocol::WorkerEvent& event, Time now) const;
    [[nodiscard]] bool works() const { return !ended_ && !difference_; }
    [[nodiscard]] std::optional<ChannelEvent> poll_difference(Time now);
    [[nodiscard]] std::optional<ChannelEvent> poll_hint(Time now);
    [[nodiscard]] ChannelEvent fail(ChannelCause cause);
    [[nodiscard]] bool transmit_server(wire::Outbox& out);
    [[nodiscard]] Time closes_at() const;  // never: close() was not called, or LEAVEs are due first

    ChannelMachineConfig config_;
    protocol::Worker worker_;
    control::JoinClient client_;
    std::optional<control::MemberSession> session_;  // with the switch; nullopt: the job has no key
    std::unique_ptr<HostedServer> server_;
    control::SwitchCodes codes_;  // of the hosted server
    control::Gatekeeper gatekeeper_;
    wire::Address server_down_;  // switch that receives the hosted server's results
    struct PendingAnswer {
        wire::JoiningMessage message;
        wire::Address to;
        std::size_t padded_bytes = 0;  // of a JOINED
        Time asked_at{};
    };
    std::optional<PendingAnswer> answer_;       // to a JOIN of that switch
    std::uint32_t server_joined_ = 0;           // JOINEDs to it
    std::optional<bool> server_int32_lanes_;    // of this incarnation, as its first JOIN decided
    bool begun_ = false;                        // the tree was ready: the worker knows its lanes
    bool ended_ = false;                        // failed, or end() was called
    std::optional<OperationCause> difference_;  // ranks called different operations
    Time differs_until_ = never;                // for which this rank waits for the statements of the others
    // With a key: a packet shows that ranks called different operations. It may be forged, so this rank asks the
    // others.
    struct Hint {
        std::uint64_t completed = 0;  // tensors, when it arrived
        std::uint64_t tensor = 0;     // position among those in flight
        std::string place{};          // in the stream, with which statements about it end
        Time until{};
    };
    std::optional<Hint> hint_;
    std::uint64_t completed_ = 0;  // tensors
    std::uint64_t in_flight_ = 0;  // tensors that the worker has
    Time served_at_{};             // last packet to the hosted server
    Time close_asked_ = never;     // close() was called; never again after `closed`
    std::uint64_t strays_ = 0;
    std::uint64_t group_results_ = 0;
    bool results_by_group_ = false;
};

template <protocol::Archive Archive>
void ChannelMachine::persist_data(Archive& archive) {
    worker_.persist(archive);
    if (server_ != nullptr) server_->server.persist(archive), archive.time(served_at_);
}

template <protocol::Archive Archive>
void ChannelMachine::persist_joining(Archive& archive) {
    client_.persist(archive);
    archive.value(server_down_), archive.value(server_joined_);
    bool server_decided = server_int32_lanes_.has_value();
    bool int32_lanes = server_int32_lanes_.value_or(false);
    archive.value(server_decided), archive.value(int32_lanes);
    server_int32_lanes_ = server_decided ? std::optional(int32_lanes) : std::nullopt;
    archive.value(begun_), archive.value(ended_), archive.value(in_flight_), archive.time(close_asked_);
    archive.unread(results_by_group_);
    bool differs = difference_.has_value();
    archive.value(differs), archive.time(differs_until_);
    if (!differs) return difference_.reset();
    if (!difference_) difference_.emplace();
    protocol::WorkerEvent& event = difference_->event;
    archive.value(event.kind), archive.value(event.tensor), archive.value(event.mismatched_tensor);
    archive.value(event.answered), archive.time(event.answered_at), archive.value(event.elapsed);
    archive.value(event.missing_units), archive.value(event.missing_members);
    archive.value(difference_->server_silent), archive.value(difference_->switch_silent);
    archive.value(difference_->switch_is_silent);
    control::persist_statements(difference_->statements, archive);
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
