// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "control/failure_detector.h"
#include "control/group_reception.h"
#include "control/joined_order.h"
#include "control/long_path.h"
#include "control/pace_meter.h"
#include "control/persist_messages.h"
#include "control/timing.h"
#include "protocol/archive.h"
#include "protocol/variant.h"
#include "wire/address.h"
#include "wire/control.h"
#include "wire/joining_message.h"
#include "wire/send_error.h"

namespace atp::control {
inline namespace ATP_VARIANT {

struct JoinClientConfig {
    wire::ChannelTerms terms;
    wire::JoiningUnit unit;          // position of this member in the tree, as its JOIN reports it
    std::uint8_t level = 0;          // of its switch, from 0
    wire::Address switch_address;    // to which the member sends JOIN and LEAVE
    bool has_group = false;          // a socket receives the multicast group of `terms`
    std::uint64_t nonce = 0;         // random: only who receives the JOINs of this member knows it
    std::uint32_t packet_bytes = 0;  // of the longest packet of the channel: JOINs try its path; 0: they do not
    std::string job_name{};          // what people call the job; empty: it has no name
    bool has_key = false;            // only messages that a code proves come here, and RETRYs
};

// Why a member lost its position for good.
struct MemberCause {
    enum class Kind : std::uint8_t {
        refused,           // the switch refused the JOIN: `refusal`, `text`
        foreign_version,   // the switch at `from` has another version: `version`, `text`
        members_missing,   // the switch reports members as missing: `missing_units`, `missing_members`
        switch_restarted,  // the same, after the switch restarted: the members may have failed because of that
        server_missing,    // the switches do not reach the parameter server
        switch_silent,     // the switch answers no JOIN
        switch_ended,      // the switch answers no JOIN, and its host reports that no process has the switch's port
        path_too_narrow,   // packets of `packet_bytes` exceed the MTU of the path to the switch: `mtu`
        edge_failed,       // the switch names the edge of the tree that failed first: `edge`
        unproven,          // the switch at `from` proves no key: `text`
    };
    Kind kind = Kind::refused;
    Duration elapsed{};  // time for which the cause lasted when the member gave up; zero: it was final at once
    std::uint32_t missing_units = 0;
    std::uint32_t missing_members = 0;  // of the one missing unit; 0: all of its members
    std::uint32_t packet_bytes = 0;     // UDP payload; 0: not known
    std::uint32_t mtu = 0;              // with IP headers; 0: not known
    wire::Address from{};               // sender of the REFUSED
    wire::Refusal refusal = wire::Refusal::malformed;
    std::uint8_t version = 0;  // of the control messages of the sender
    std::string text{};        // of the REFUSED; may be empty
    wire::Edge edge{};
};

struct MemberEvent {
    enum class Kind : std::uint8_t {
        waiting,          // before `ready`: `cause` names what is missing
        ready,            // the tree is ready for the first time
        group_forgotten,  // leave the group and join it again: a bridge may have forgotten this member
        slow,   // the others wait for the member of `pace`; `timing.slow_named` passes between two for one member
        ended,  // the position is lost for good: `cause`
    };
    Kind kind = Kind::waiting;
    MemberCause cause{};
    wire::Pace pace{};
};

struct MemberCounters {
    std::uint64_t joins = 0;           // sent
    std::uint64_t stray_refusals = 0;  // REFUSED that does not answer a JOIN of this member: dropped
    std::uint64_t send_errors = 0;     // reports about packets to the switch
    std::uint64_t stale = 0;           // JOINED that is not newer than the last: dropped
    std::uint64_t stray_errors = 0;    // reports that do not quote a packet of this channel to the switch: dropped
};

struct ControlTransmit {
    wire::JoiningMessage message;
    wire::Address to;
    std::uint32_t padded_bytes = 0;  // least length of a JOIN
};

// Position of one member, a rank, in the tree of switches of one channel: it sends JOIN and repeats it, follows what
// the switch answers, decides whether the member receives the multicast group, and finds out that the position is lost.
//
// Ownership: owns its state; a copy of the configuration.
// Calling order: handle_*() for what happened, handle_timeout() at poll_timeout(). After each, poll_transmit() and
//   poll_event() until they return nothing. set_busy() when the first operation begins and the last one ends.
//   leave() last.
// Threads: none.
// Failure: after the event `ended` only poll_transmit() has an effect. A message that is not for this member changes
//   nothing; the caller counts it.
class JoinClient {
  public:
    explicit JoinClient(const JoinClientConfig& config);

    // True: a message for this member. False: another type, or another job, token or channel.
    bool handle_message(std::span<const std::byte> bytes, const wire::Address& from, bool by_group, Time now);
    // A REFUSED or RETRY that no code proves. It may be forged, so it ends this member only if the switch proves
    // nothing for the hold time after it. `why`: for its error.
    void handle_unproven(std::span<const std::byte> bytes, const wire::Address& from, const std::string& why, Time now);
    // A packet of this channel. `proven`: the packet has the channel's token, or its protocol has none.
    void handle_data(const wire::Address& from, Receipt receipt, bool proven, Time now);
    // A result of this channel. After a member left in order, the operations that it took part in still complete.
    // `is_long`: it is as long as the channel's longest packet, and so is what the member sent for it.
    void handle_result(bool is_long, Time now);
    // A report about a packet that the member's socket sent.
    void handle_send_error(const wire::SendError& error, Time now);
    // The socket of the group is closed: results come as copies from now on.
    void handle_group_lost() { group_open_ = false; }
    void handle_timeout(Time now);
    // Operations are in flight. A lost position ends the member only if one is.
    void set_busy(bool busy);
    // Tells all members what this one called, after their operations differed: see statements().
    void state(std::string text, Time now);
    // From now on it states nothing, and what was stated before counts no longer.
    void forget_statements() { own_statement_.clear(), statements_.clear(); }
    // Gives the position up, with one LEAVE, or three that carry the cause of a failure.
    void leave();

    [[nodiscard]] bool has_transmit() const { return join_due_ || leave_due_; }
    [[nodiscard]] std::optional<ControlTransmit> poll_transmit();
    [[nodiscard]] std::optional<MemberEvent> poll_event();
    [[nodiscard]] Time poll_timeout() const;

    // Destination of gradients: the sender of the last JOINED, before that the switch.
    [[nodiscard]] const wire::Address& data_address() const { return data_address_; }
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] bool was_ready() const { return state_ != State::joining; }
    // In the results by group, instead of the token; 0: the switch has sent none.
    [[nodiscard]] std::uint64_t group_number() const { return group_number_; }
    // Of the first JOINED with `ready`.
    [[nodiscard]] bool int32_lanes() const { return int32_lanes_; }
    [[nodiscard]] Time answered_at() const { return answered_at_; }  // last JOINED; Time{}: none
    [[nodiscard]] Duration hold() const { return hold_; }            // of the switch; until it states one, the default
    // Of all members, as far as the switch knows them.
    [[nodiscard]] const std::vector<wire::Statement>& statements() const { return statements_; }
    [[nodiscard]] const MemberCounters& counters() const { return counters_; }

    template <protocol::Archive Archive>
    void persist(Archive& archive);

  private:
    // State of the tree, as this member's switch reports it. `lost`: it was ready before.
    enum class State : std::uint8_t { joining, ready, lost };

    template <class Message>
    [[nodiscard]] bool is_mine(const Message& message) const;
    bool handle_group_message(const wire::Joined& joined, Time now);
    void handle_retry(const wire::Retry& retry, Time now);
    bool handle_refused(std::span<const std::byte> bytes, const wire::Address& from, Time now);
    // Of a REFUSED; nullopt: it is none for this member.
    [[nodiscard]] std::optional<MemberCause> cause_in(std::span<const std::byte> bytes,
                                                      const wire::Address& from) const;
    [[nodiscard]] bool answers_this_member(std::span<const std::byte> bytes,
                                           const std::optional<wire::Refused>& refused, bool foreign,
                                           const wire::Address& from) const;
    void handle_joined(const wire::Joined& joined, const wire::Address& from, Time now);
    [[nodiscard]] bool is_of_switch(const wire::Address& from) const;
    [[nodiscard]] bool note_answer(const wire::Address& from);
    void note_missing(const wire::Joined& joined);
    void note_pace(const wire::Pace& pace, Time now);
    void note_too_long(const wire::SendError& error, Time now);
    [[nodiscard]] bool concerns_this_member(const wire::SendError& error) const;
    [[nodiscard]] Duration grace() const;
    [[nodiscard]] std::vector<wire::Edge> edges_of_leave() const;
    void excuse_pause(Time now);
    [[nodiscard]] bool tries_long_path() const;
    void prepare_join(Time now);
    void repeat_leave(Time now);
    void check(Time now);
    void end(MemberCause cause);
    [[nodiscard]] MemberCause missing_cause(Duration elapsed) const;
    [[nodiscard]] wire::Statement own_statement() const;
    [[nodiscard]] wire::Join join();
    template <protocol::Archive Archive>
    static void persist_cause(MemberCause& cause, Archive& archive);

    JoinClientConfig config_;
    MemberCounters counters_;
    GroupReception reception_;
    bool group_open_;
    State state_ = State::joining;
    bool busy_ = false;
    bool ended_ = false;
    bool switch_restarted_ = false;  // since the tree was ready
    wire::Address answers_from_;     // host of the first answer; no family: none
    wire::Address data_address_;
    std::uint64_t cookie_ = 0;        // of the last RETRY
    std::uint32_t epoch_ = 0;         // of the last JOIN or LEAVE
    JoinedOrder order_;               // of the last JOINED
    std::uint64_t group_number_ = 0;  // of the last JOINED
    Time join_next_{};
    Time answered_at_{};
    Time lost_since_{};  // valid in State::lost
    FailureDetector switch_{FailureDetector::Peer::answers};
    LongPath long_path_;  // while busy
    Duration hold_ = timing.hold;
    std::optional<wire::Edge> edge_;  // State::lost: as the last JOINED reports
    std::string own_statement_;       // empty: none
    std::vector<wire::Statement> statements_;
    std::optional<MemberCause> refusal_;   // of a tree that was ready: final if it lasts (H69)
    Time refused_since_{};                 // valid with refusal_
    std::optional<MemberCause> unproven_;  // State::joining: of a message that no code proves. Not saved
    Time unproven_since_{};                // valid with unproven_
    Time retry_next_{};                    // earliest time of the next JOIN that a RETRY causes
    Time too_long_since_ = never;          // first of the reports "too long" that follow each other within `hold`
    Time too_long_at_{};                   // the last one
    std::uint32_t packet_bytes_ = 0;       // of the longest of these packets; 0: not known
    std::uint32_t mtu_ = 0;                // of the last of these reports that names one
    Time looked_at_{};                     // last handle_timeout(); Time{}: none
    Duration interval_{};                  // between the last JOIN and the next
    std::uint32_t missing_units_ = 0;      // of the last JOINED without `ready`
    std::uint32_t missing_members_ = 0;    // of that JOINED
    bool int32_lanes_ = false;
    std::array<std::byte, 16> ticket_{};  // of the newest JOINED that had one
    bool receives_group_ = false;         // report of the JOIN that is due
    bool join_due_ = false;
    bool leave_due_ = false;
    bool left_ = false;         // the first LEAVE was sent
    wire::Pace pace_;           // the last one that was slow
    Time slow_since_ = never;   // first JOINED that named its member; never: the last one named none
    Time pace_next_{};          // for the same member: earliest time of the next event `slow`
    int repeats_of_leave_ = 0;  // still to send, the next one at leave_next_
    Time leave_next_ = never;
    bool ready_due_ = false;    // the next events, in this order
    bool waiting_due_ = false;  //
    bool group_due_ = false;    //
    bool slow_due_ = false;     //
    bool end_due_ = false;      //
    MemberCause cause_;         // valid if ended_
};

template <protocol::Archive Archive>
void JoinClient::persist(Archive& archive) {
    reception_.persist(archive), switch_.persist(archive), long_path_.persist(archive);
    persist_edge(edge_, archive);
    persist_text(own_statement_, archive), persist_statements(statements_, archive);
    archive.value(cookie_), archive.value(epoch_), archive.value(order_.epoch), archive.value(order_.number);
    archive.value(group_number_);
    archive.value(group_open_), archive.value(state_), archive.value(busy_), archive.value(ended_);
    archive.value(switch_restarted_);
    archive.value(answers_from_), archive.value(data_address_), archive.time(join_next_), archive.time(answered_at_),
        archive.time(lost_since_);
    archive.value(hold_), archive.time(looked_at_), archive.time(too_long_since_), archive.time(too_long_at_),
        archive.value(packet_bytes_), archive.value(mtu_), archive.value(interval_);
    archive.value(missing_units_), archive.value(missing_members_);
    archive.value(int32_lanes_), archive.value(ticket_), archive.unread(retry_next_);
    archive.value(receives_group_), archive.value(join_due_), archive.value(leave_due_), archive.value(left_),
        archive.value(repeats_of_leave_);
    archive.time(leave_next_), archive.value(ready_due_);
    archive.value(waiting_due_), archive.value(group_due_), archive.value(slow_due_), archive.value(end_due_);
    persist_pace(pace_, archive), archive.time(slow_since_), archive.time(pace_next_);
    bool refused = refusal_.has_value();
    archive.value(refused), archive.time(refused_since_);
    if (refused && !refusal_) refusal_.emplace();
    if (!refused) refusal_.reset();
    if (refusal_) persist_cause(*refusal_, archive);
    persist_cause(cause_, archive);
}

template <protocol::Archive Archive>
void JoinClient::persist_cause(MemberCause& cause, Archive& archive) {
    archive.value(cause.kind), archive.value(cause.elapsed), archive.value(cause.missing_units);
    archive.value(cause.missing_members), archive.value(cause.packet_bytes), archive.value(cause.mtu),
        archive.value(cause.from), archive.value(cause.refusal);
    archive.value(cause.version), persist_text(cause.text, archive), persist_edge(cause.edge, archive);
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
