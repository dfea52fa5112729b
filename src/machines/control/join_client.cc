// SPDX-License-Identifier: Apache-2.0
#include "control/join_client.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "control/branch.h"
#include "control/breaks.h"
#include "control/quoted_channel.h"

namespace atp::control {
inline namespace ATP_VARIANT {

JoinClient::JoinClient(const JoinClientConfig& config)
    : config_(config),
      group_open_(config.has_group || config.terms.group.family == 0),
      data_address_(config.switch_address) {}

namespace {

// A switch that restarted may have given the place of this member to others, until they expire.
bool passes(const MemberCause& refused) {
    return refused.kind == MemberCause::Kind::refused &&
           (refused.refusal == wire::Refusal::full || refused.refusal == wire::Refusal::place);
}

}  // namespace

template <class Message>
bool JoinClient::is_mine(const Message& message) const {
    const bool answers = message.nonce == config_.nonce || ATP_CONTROL_BREAK(accept_any_joined);
    return answers && key_of(message) == key_of(config_.terms);
}

bool JoinClient::handle_message(std::span<const std::byte> bytes, const wire::Address& from, bool by_group, Time now) {
    if (const auto joined = wire::decode<wire::Joined>(bytes)) {
        if (by_group) return handle_group_message(*joined, now);
        if (!is_mine(*joined) || joined->epoch > epoch_ || !note_answer(from)) return false;
        if (was_ready() && order_.shows_restart(*joined)) switch_restarted_ = true;
        order_.advance(*joined) ? handle_joined(*joined, from, now) : void(++counters_.stale);
        return true;
    }
    if (by_group) return false;
    if (const auto retry = wire::decode<wire::Retry>(bytes)) {
        // Who only reads the nonce may be the first: the switch is where a code comes from.
        if (!is_mine(*retry) || (!config_.has_key && !note_answer(from))) return false;
        handle_retry(*retry, now);
        return true;
    }
    return handle_refused(bytes, from, now);
}

bool JoinClient::handle_group_message(const wire::Joined& joined, Time now) {
    const bool mine = group_number_ != 0 && joined.token == group_number_ && joined.job == config_.terms.job &&
                      joined.channel == config_.terms.channel;
    if (mine && reception_.handle_message(now)) join_next_ = now;
    return mine;
}

// The switch has not seen this address before, or its cookie is too old.
void JoinClient::handle_retry(const wire::Retry& retry, Time now) {
    switch_.handle_received(now);
    if (ATP_CONTROL_BREAK(no_cookie)) return;
    if (std::exchange(cookie_, retry.cookie) == retry.cookie) return;
    join_next_ = std::min(join_next_, std::max(retry_next_, now));
    retry_next_ = join_next_ + timing.hurry;
}

std::optional<MemberCause> JoinClient::cause_in(std::span<const std::byte> bytes, const wire::Address& from) const {
    const auto version = wire::refusal_version(bytes);
    if (!version) return std::nullopt;
    const auto refused = wire::decode<wire::Refused>(bytes);
    const bool foreign = *version != wire::control_version || (refused && refused->reason == wire::Refusal::version);
    if (!answers_this_member(bytes, refused, foreign, from)) return std::nullopt;
    MemberCause cause{.kind = foreign ? MemberCause::Kind::foreign_version : MemberCause::Kind::refused};
    cause.from = from;
    cause.version = *version;
    if (refused) {
        cause.refusal = refused->reason;
        cause.text = refused->text;
    }
    return cause;
}

bool JoinClient::handle_refused(std::span<const std::byte> bytes, const wire::Address& from, Time now) {
    auto cause = cause_in(bytes, from);
    if (!cause) {
        if (wire::refusal_version(bytes)) ++counters_.stray_refusals;
        return false;
    }
    if (was_ready() && passes(*cause)) {
        switch_.handle_received(now);
        if (!refusal_) refused_since_ = join_next_ = now;
        refusal_ = std::move(cause);
    } else {
        end(*std::move(cause));
    }
    return true;
}

void JoinClient::handle_unproven(std::span<const std::byte> bytes, const wire::Address& from, const std::string& why,
                                 Time now) {
    if (state_ != State::joining || ended_) return;
    auto cause = cause_in(bytes, from);
    if (wire::control_type(bytes) == wire::ControlType::retry && is_of_switch(from)) {
        cause = MemberCause{.kind = MemberCause::Kind::unproven, .from = from, .text = why};
    }
    if (!cause) return;
    if (!unproven_) unproven_since_ = now;
    unproven_ = std::move(cause);
    waiting_due_ = true;
}

// A switch of another version cannot name the job, but repeats the nonce. A switch that reported `ready` has this
// version, so such a message cannot end a ready channel (H73).
bool JoinClient::answers_this_member(std::span<const std::byte> bytes, const std::optional<wire::Refused>& refused,
                                     bool foreign, const wire::Address& from) const {
    if (foreign) {
        return !was_ready() && from == config_.switch_address && wire::nonce_of(bytes) == config_.nonce;
    }
    return refused && is_mine(*refused) && is_of_switch(from);
}

// A switch with several threads answers from a port of its own for each.
bool JoinClient::is_of_switch(const wire::Address& from) const {
    const wire::Address host = from.with_port(0);
    return host == config_.switch_address.with_port(0) || host == answers_from_;
}

// A switch with several addresses may answer from another one than it was asked at. Only its first answer shows which:
// later nobody else can answer, even if it reads the nonce. False: the sender is not the switch.
bool JoinClient::note_answer(const wire::Address& from) {
    if (answers_from_.family() == wire::Family::none) answers_from_ = from.with_port(0);
    return is_of_switch(from);
}

void JoinClient::handle_joined(const wire::Joined& joined, const wire::Address& from, Time now) {
    switch_.handle_received(now);
    long_path_.handle_joined(joined.epoch, now);
    answered_at_ = now;
    refusal_.reset();
    unproven_.reset();
    data_address_ = from;
    group_number_ = joined.group_number;
    if (joined.ticket != decltype(ticket_){}) ticket_ = joined.ticket;
    if (!joined.statements.empty()) statements_ = joined.statements;
    note_pace(joined.pace, now);
    if (joined.hold_ms != 0) hold_ = std::chrono::milliseconds(joined.hold_ms);
    if (joined.ready) {
        edge_.reset();
        switch_restarted_ = false;
        if (state_ == State::joining) {
            int32_lanes_ = joined.int32_lanes;
            ready_due_ = true;
        }
        state_ = State::ready;
        return;
    }
    if (ATP_CONTROL_BREAK(ignores_loss) && state_ == State::ready) return;
    note_missing(joined);
    if (state_ == State::joining) waiting_due_ = true;
    if (state_ == State::joining) return;
    edge_.reset();
    if (!joined.edges.empty()) edge_ = joined.edges.front();
    if (state_ != State::ready) return;
    state_ = State::lost;
    lost_since_ = now;
    join_next_ = now;
}

// After the tree is lost, keep the ranks that were missing first, while they are: other ranks leave as a consequence.
// Each JOINED repeats the pace of the last interval. A member that is slow in two of them is named: a single one may
// show a checkpoint, or another program on the host.
void JoinClient::note_pace(const wire::Pace& pace, Time now) {
    if (!is_slow(pace)) {
        slow_since_ = never;
        return;
    }
    const bool same = names_same(pace, pace_);
    pace_ = pace;
    if (!same || slow_since_ == never) slow_since_ = now;
    if (!same) pace_next_ = Time{};
    if (now - slow_since_ < hold_ * 3 / 2 || now < pace_next_) return;
    pace_next_ = now + timing.slow_named;
    slow_due_ = true;
}

void JoinClient::note_missing(const wire::Joined& joined) {
    std::uint32_t units = joined.missing_units;
    std::uint32_t members = joined.missing_members;
    if (state_ == State::lost) {
        units &= missing_units_;
        members &= missing_members_;
        if (units == 0 || (members == 0) != (missing_members_ == 0)) return;
    }
    missing_units_ = units;
    missing_members_ = members;
}

void JoinClient::handle_data(const wire::Address& from, Receipt receipt, bool proven, Time now) {
    reception_.handle_result(receipt);
    if (receipt != Receipt::once && proven && from == data_address_) switch_.handle_received(now);
}

void JoinClient::handle_result(bool is_long, Time now) {
    if (is_long) long_path_.handle_passed(now);
    if (state_ == State::lost && edge_ && edge_->evidence == wire::Evidence::left) lost_since_ = now;
}

void JoinClient::handle_send_error(const wire::SendError& error, Time now) {
    if (ended_) return;
    if (!concerns_this_member(error)) {
        ++counters_.stray_errors;
        return;
    }
    ++counters_.send_errors;
    if (error.kind == wire::SendError::Kind::port_unreachable) {
        if (switch_.handle_refused(now)) join_next_ = now;
    } else {
        note_too_long(error, now);
    }
    check(now);
}

// Others can forge an ICMP message, but they do not know the token that it has to quote.
bool JoinClient::concerns_this_member(const wire::SendError& error) const {
    if (error.to != config_.switch_address && error.to != data_address_) return false;
    return !error.by_network || quoted_channel(error.quote()) == key_of(config_.terms);
}

void JoinClient::note_too_long(const wire::SendError& error, Time now) {
    if (too_long_since_ == never || now - too_long_at_ > hold_) {
        too_long_since_ = now;
        packet_bytes_ = mtu_ = 0;
    }
    too_long_at_ = now;
    packet_bytes_ = std::max(packet_bytes_, error.bytes);
    if (error.mtu != 0) mtu_ = error.mtu;
}

void JoinClient::handle_timeout(Time now) {
    if (ended_) return repeat_leave(now);
    excuse_pause(now);
    if (now >= join_next_) prepare_join(now);
    check(now);
}

// If this process did not run for a while, it sent no JOIN and read no answer in that time. The pause is therefore no
// silence of others (H80).
void JoinClient::excuse_pause(Time now) {
    const Time last = std::exchange(looked_at_, now);
    if (last == Time{} || now - last <= interval_ + timing.pause_slack) return;
    const Duration pause = now - last - interval_;
    switch_.handle_own_pause(pause);
    long_path_.handle_own_pause(pause);
    lost_since_ += pause;
    refused_since_ += pause;
}

void JoinClient::set_busy(bool busy) {
    if (busy_ != busy) long_path_.forget();
    busy_ = busy;
}

bool JoinClient::tries_long_path() const {
    return busy_ && state_ == State::ready && config_.packet_bytes > wire::least_question_bytes;
}

void JoinClient::prepare_join(Time now) {
    const bool ready = state_ == State::ready;
    receives_group_ = group_open_ && reception_.assess(now, ready);
    const bool awaits_group = config_.has_group && group_open_;
    if (awaits_group && reception_.reports_again()) group_due_ = true;
    const bool hurries =
        !ready || refusal_ || !own_statement_.empty() || switch_.suspects() || (awaits_group && reception_.hurries());
    interval_ = hurries ? timing.hurry : refresh_of(hold_);
    join_next_ = now + interval_;
    join_due_ = !(ready && ATP_CONTROL_BREAK(no_refresh));
    ++counters_.joins;
    switch_.handle_asked(now);
    if (tries_long_path()) long_path_.handle_sent(epoch_ + 1, now);
}

void JoinClient::check(Time now) {
    using Peer = FailureDetector::State;
    if (ended_ || (state_ != State::joining && !busy_)) return;
    const bool too_long = too_long_since_ != never && now - too_long_at_ <= hold_;
    if (too_long && too_long_at_ - too_long_since_ >= timing.error_persists) {
        return end({.kind = MemberCause::Kind::path_too_narrow,
                    .elapsed = now - too_long_since_,
                    .packet_bytes = packet_bytes_,
                    .mtu = mtu_});
    }
    const Peer found = switch_.assess(now, hold_);
    const Duration lasted = switch_.lasted(now);
    if (found == Peer::closed) return end({.kind = MemberCause::Kind::switch_ended, .elapsed = lasted});
    if (unproven_ && now - unproven_since_ >= hold_) {
        unproven_->elapsed = now - unproven_since_;
        return end(*unproven_);
    }
    if (state_ == State::joining) return;
    if (refusal_ && now - refused_since_ >= hold_) {
        refusal_->elapsed = now - refused_since_;
        return end(*refusal_);
    }
    if (found == Peer::silent) return end({.kind = MemberCause::Kind::switch_silent, .elapsed = lasted});
    if (tries_long_path() && long_path_.is_narrow(switch_.received_at(), hold_, now)) {
        return end({.kind = MemberCause::Kind::path_too_narrow,
                    .elapsed = long_path_.lasted(now),
                    .packet_bytes = config_.packet_bytes});
    }
    if (state_ == State::lost && now - lost_since_ > grace()) end(missing_cause(now - lost_since_));
}

// How long a lost tree may become ready again. Of a failed edge that was found by silence or by a report, the finder
// has already waited.
Duration JoinClient::grace() const {
    if (!edge_) return timing.lost_grace;
    return edge_->evidence == wire::Evidence::left ? timing.left_grace : Duration::zero();
}

MemberCause JoinClient::missing_cause(Duration elapsed) const {
    if (edge_) return {.kind = MemberCause::Kind::edge_failed, .elapsed = elapsed, .edge = *edge_};
    using Kind = MemberCause::Kind;
    const Kind kind = missing_units_ == 0 ? Kind::server_missing
                      : switch_restarted_ ? Kind::switch_restarted
                                          : Kind::members_missing;
    return {.kind = kind, .elapsed = elapsed, .missing_units = missing_units_, .missing_members = missing_members_};
}

void JoinClient::end(MemberCause cause) {
    if (ended_) return;
    cause_ = std::move(cause);
    ended_ = end_due_ = true;
    join_due_ = false;
}

void JoinClient::leave() {
    ended_ = leave_due_ = true;
    join_due_ = end_due_ = false;
    if (edges_of_leave().empty()) return;
    repeats_of_leave_ = 2;
    leave_next_ = looked_at_ + timing.hurry;
}

// A LEAVE has no answer. If the only one were lost, the switch would take this member for silent.
void JoinClient::repeat_leave(Time now) {
    if (repeats_of_leave_ == 0 || now < leave_next_) return;
    --repeats_of_leave_;
    leave_next_ = now + timing.hurry;
    leave_due_ = true;
}

void JoinClient::state(std::string text, Time now) {
    own_statement_ = std::move(text);
    own_statement_.resize(std::min<std::size_t>(own_statement_.size(), wire::max_statement_bytes));
    join_next_ = now;
}

wire::Statement JoinClient::own_statement() const {
    return {.count = 1,
            .unit = config_.unit.unit,
            .member = static_cast<std::uint8_t>(std::countr_zero(config_.unit.members)),
            .text = own_statement_};
}

wire::Join JoinClient::join() {
    return {.nonce = config_.nonce,
            .terms = config_.terms,
            .cookie = cookie_,
            .epoch = ++epoch_,
            .level = config_.level,
            .begun = was_ready(),
            .receives_group = receives_group_,
            .ticket = ticket_,
            .units = {config_.unit},
            .statements = own_statement_.empty() ? std::vector<wire::Statement>() : std::vector{own_statement()},
            .job_name = config_.job_name};
}

// Why this member failed, for the others. An operation that failed is no failure of an edge.
std::vector<wire::Edge> JoinClient::edges_of_leave() const {
    wire::Edge edge{.unit = config_.unit.unit,
                    .member = static_cast<std::uint8_t>(std::countr_zero(config_.unit.members)),
                    .silent_ms = static_cast<std::uint32_t>(
                        std::chrono::duration_cast<std::chrono::milliseconds>(cause_.elapsed).count())};
    if (cause_.kind == MemberCause::Kind::path_too_narrow) {
        edge.kind = wire::EdgeKind::path_mtu;
        edge.evidence = wire::Evidence::too_long;
        edge.detail = cause_.mtu;
        return {edge};
    }
    if (cause_.kind == MemberCause::Kind::switch_silent) {
        edge.evidence = wire::Evidence::one_direction;
        edge.at = endpoint_of(config_.switch_address);
        return {edge};
    }
    if (cause_.kind == MemberCause::Kind::edge_failed && cause_.edge.evidence != wire::Evidence::left) {
        return {cause_.edge};
    }
    return {};
}

std::optional<ControlTransmit> JoinClient::poll_transmit() {
    if (std::exchange(join_due_, false)) {
        const std::uint32_t bytes = tries_long_path() ? LongPath::join_bytes(epoch_ + 1, config_.packet_bytes) : 0;
        return ControlTransmit{join(), config_.switch_address, bytes};
    }
    if (!std::exchange(leave_due_, false)) return std::nullopt;
    if (!std::exchange(left_, true)) ++epoch_;
    return ControlTransmit{wire::Leave{.nonce = config_.nonce,
                                       .job = config_.terms.job,
                                       .token = config_.terms.token,
                                       .channel = config_.terms.channel,
                                       .epoch = epoch_,
                                       .unit = config_.unit.unit,
                                       .member = static_cast<std::uint8_t>(std::countr_zero(config_.unit.members)),
                                       .edges = edges_of_leave()},
                           config_.switch_address};
}

std::optional<MemberEvent> JoinClient::poll_event() {
    using Kind = MemberEvent::Kind;
    if (std::exchange(ready_due_, false)) {
        waiting_due_ = false;
        return MemberEvent{Kind::ready};
    }
    if (std::exchange(waiting_due_, false))
        return MemberEvent{Kind::waiting, unproven_ ? *unproven_ : missing_cause({})};
    if (std::exchange(group_due_, false)) return MemberEvent{Kind::group_forgotten};
    if (std::exchange(slow_due_, false)) return MemberEvent{.kind = Kind::slow, .pace = pace_};
    if (std::exchange(end_due_, false)) return MemberEvent{Kind::ended, cause_};
    return std::nullopt;
}

Time JoinClient::poll_timeout() const {
    if (ended_) return repeats_of_leave_ == 0 ? never : leave_next_;
    Time next = join_next_;
    if (state_ == State::joining || !busy_) return next;
    next = std::min(next, switch_.poll_timeout(hold_));
    if (state_ != State::lost) return next;
    return std::min(next, lost_since_ + grace() + std::chrono::milliseconds(1));
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
