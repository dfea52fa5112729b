// SPDX-License-Identifier: Apache-2.0
#include "endpoint/channel_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/statements.h"
#include "endpoint/routing.h"
#include "wire/packet.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {
namespace {

// Of the longest JOIN of a rank, and of shorter messages.
constexpr std::size_t most_control_bytes = 1024;

// After the end of its worker, a hosted server waits until it has received no packet for this long, for late workers.
constexpr Duration server_linger = std::chrono::milliseconds(300);
constexpr Duration server_linger_most = std::chrono::seconds(2);

// Receiver field of an ACK; nullopt for other packets.
std::optional<std::uint16_t> receiver_of_result(std::span<const std::byte> bytes) {
    if (bytes.size() < ATP_HEADER_BYTES || wire::load_u8(bytes.data()) != ATP_VERSION) return std::nullopt;
    if (wire::load_u8(bytes.data() + ATP_OFFSET_TYPE) != ATP_TYPE_ACK) return std::nullopt;
    return wire::load_u16(bytes.data() + ATP_OFFSET_WORKER);
}

// Of a packet that came to the own address of this rank. An ACK without lanes brings no result. What a switch in the
// path does not copy goes to each, whether or not sums go out once for all. A merged frame also has answers for others.
control::Receipt receipt_of(std::span<const std::byte> bytes, std::uint16_t rank) {
    using control::Receipt;
    const auto receiver = receiver_of_result(bytes);
    if (!receiver || bytes.size() == ATP_HEADER_BYTES) return Receipt::other;
    if (receiver == ATP_WORKER_ALL) return may_be_copied(bytes) ? Receipt::to_each : Receipt::other;
    return receiver == rank ? Receipt::asked_for : Receipt::other;
}

control::JoinClientConfig client_config_of(const ChannelMachineConfig& config, std::size_t packet_bytes) {
    return {.terms = config.terms,
            .unit = config.unit,
            .level = config.level,
            .switch_address = config.switch_address,
            .has_group = config.has_group,
            .nonce = config.nonce,
            .packet_bytes = static_cast<std::uint32_t>(packet_bytes),
            .job_name = config.job_name,
            .has_key = config.key != nullptr};
}

protocol::WorkerConfig worker_config_of(const ChannelMachineConfig& config) {
    protocol::WorkerConfig worker = config.worker;
    worker.confirms_mismatch = config.key != nullptr;
    return worker;
}

std::optional<control::MemberSession> session_of(const ChannelMachineConfig& config) {
    if (config.key == nullptr) return std::nullopt;
    return control::MemberSession({{.key = config.key}}, config.nonce, control::key_of(config.terms));
}

// Of the switch whose server runs here.
control::SwitchCodesConfig server_codes_of(const ChannelMachineConfig& config) {
    control::SwitchCodesConfig codes{.secret = config.secret, .hold = control::timing.hold};
    if (config.key != nullptr) codes.tenants = control::Tenants::of_one(*config.key);
    return codes;
}

}  // namespace

ChannelMachine::ChannelMachine(const ChannelMachineConfig& config)
    : config_(config),
      worker_(worker_config_of(config)),
      client_(client_config_of(config, worker_.packet_bytes())),
      session_(session_of(config)),
      codes_(server_codes_of(config)),
      gatekeeper_(config.secret, {}, codes_.introduction(), codes_.cookie_period()) {
    if (config.hosts_server) {
        server_ = std::make_unique<HostedServer>(
            protocol::ServerConfig{.channel = config.worker.channel, .scale = config.terms.scale}, *config.membership);
    }
}

void ChannelMachine::handle_datagram(const wire::Datagram& datagram, Time now) {
    const bool congested = datagram.ecn == wire::Ecn::congested;
    if (!config_.has_group && has_group_number(datagram.bytes)) {
        handle_group_datagram(datagram, now);
    } else if (wire::control_type(datagram.bytes) || wire::refusal_version(datagram.bytes)) {
        handle_control(datagram, now);
    } else if (goes_up(datagram.bytes)) {
        // The last switch sends all that goes up, or a switch in the path of its packets does in its name.
        if (server_ == nullptr || *datagram.from != server_down_) {
            ++strays_;
            return;
        }
        served_at_ = now;
        server_->server.handle_packet(datagram.bytes, congested, now);
    } else if (!trusts(*datagram.from)) {
        ++strays_;
    } else if (works()) {
        note_own_packet(datagram, now);
        worker_.handle_packet(datagram.bytes, congested, now);
    }
}

void ChannelMachine::handle_group_datagram(const wire::Datagram& datagram, Time now) {
    if (wire::control_type(datagram.bytes) == wire::ControlType::joined) {
        if (!client_.handle_message(datagram.bytes, *datagram.from, true, now)) ++strays_;
    } else if (works() && take_group_result(datagram)) {
        client_.handle_data(*datagram.from, control::Receipt::once, false, now);
        client_.handle_result(proves_long_path(datagram.bytes), now);
        results_by_group_ = true;
        ++group_results_;
        worker_.handle_packet(datagram.bytes, datagram.ecn == wire::Ecn::congested, now);
    } else {
        ++strays_;
    }
}

// True for what the switch sent once for all: a switch in the path copied it, or this member is the one that it sent
// to.
bool ChannelMachine::has_group_number(std::span<const std::byte> bytes) const {
    const std::uint64_t number = client_.group_number();
    if (number == 0 || bytes.size() < ATP_HEADER_BYTES) return false;
    if (wire::control_type(bytes) != wire::ControlType::joined)
        return wire::load_u64(bytes.data() + ATP_OFFSET_TOKEN) == number;
    const auto joined = wire::decode<wire::Joined>(bytes);
    return joined && joined->token == number;
}

// Results by group carry the number of the group. They come from the switch that this rank joined, as far as an address
// tells: others can forge it. The worker expects the token.
bool ChannelMachine::take_group_result(const wire::Datagram& datagram) const {
    if (!receiver_of_result(datagram.bytes) || client_.group_number() == 0) return false;
    std::byte* const token = datagram.bytes.data() + ATP_OFFSET_TOKEN;
    if (wire::load_u64(token) != client_.group_number()) return false;
    if (datagram.from->with_port(0) != client_.data_address().with_port(0)) return false;
    wire::store_u64(token, config_.terms.token);
    return has_identity(datagram.bytes);
}

// What only a code proves, a member with a key believes with a code only.
bool ChannelMachine::is_believed(const wire::Datagram& datagram, Time now) {
    using Belief = control::MemberSession::Belief;
    if (!session_ || wire::control_type(datagram.bytes) == wire::ControlType::join) return true;
    const Belief outcome = session_->handle_message(datagram.bytes);
    if (outcome == Belief::unproven) client_.handle_unproven(datagram.bytes, *datagram.from, session_->problem(), now);
    return outcome == Belief::believed;
}

void ChannelMachine::handle_control(const wire::Datagram& datagram, Time now) {
    if (!is_believed(datagram, now)) {
        ++strays_;
        return;
    }
    if (client_.handle_message(datagram.bytes, *datagram.from, false, now)) {
        if (!begun_ && client_.was_ready()) {
            begun_ = true;
            if (client_.int32_lanes()) worker_.use_int32_lanes();
        }
        return;
    }
    // From the last switch, whose server runs here.
    const auto join = wire::decode<wire::Join>(datagram.bytes);
    if (join && server_ != nullptr && join->level == ATP_LEVELS && join->terms == config_.terms &&
        datagram.bytes.size() >= wire::least_question_bytes) {
        return handle_server_join(*join, datagram, now);
    }
    ++strays_;
}

void ChannelMachine::handle_server_join(const wire::Join& join, const wire::Datagram& datagram, Time now) {
    const wire::Address& from = *datagram.from;
    if (auto retry = gatekeeper_.handle_join(join, from, now)) {
        answer_ = PendingAnswer{*std::move(retry), from, 0, now};
        return;
    }
    if (!codes_.check_join(join, datagram.bytes, now).believed) {
        ++strays_;
        return;
    }
    server_down_ = from;
    if (!server_int32_lanes_) server_int32_lanes_ = join.int32_path;
    answer_ = PendingAnswer{wire::Joined{.nonce = join.nonce,
                                         .job = join.terms.job,
                                         .token = join.terms.token,
                                         .channel = join.terms.channel,
                                         .epoch = join.epoch,
                                         .number = ++server_joined_,
                                         .ready = true,
                                         .int32_lanes = *server_int32_lanes_},
                            from, datagram.bytes.size(), now};
}

// A rank takes results only from the switch that it joined. The token alone is not enough.
bool ChannelMachine::trusts(const wire::Address& from) const { return from == client_.data_address(); }

// A packet with the channel's token proves that the switch forwards packets: it counts as a sign of life.
void ChannelMachine::note_own_packet(const wire::Datagram& datagram, Time now) {
    const auto receiver = receiver_of_result(datagram.bytes);
    if (receiver == ATP_WORKER_ALL) results_by_group_ = false;
    const bool proven = has_identity(datagram.bytes);
    client_.handle_data(*datagram.from, receipt_of(datagram.bytes, config_.worker.rank), proven, now);
    if (receiver && proven) client_.handle_result(proves_long_path(datagram.bytes), now);
}

// Of a sum for all, a worker sends as much as it receives. `peer` may be the owner, which alone receives a sum.
bool ChannelMachine::proves_long_path(std::span<const std::byte> result) const {
    if (result.size() < worker_.packet_bytes()) return false;
    const std::uint16_t flags = wire::load_u16(result.data() + ATP_OFFSET_FLAGS);
    return (flags & ATP_FLAG_ONE_SENDER) == 0 && wire::load_u16(result.data() + ATP_OFFSET_PEER) != config_.worker.rank;
}

bool ChannelMachine::has_identity(std::span<const std::byte> bytes) const {
    if (bytes.size() < ATP_HEADER_BYTES || wire::load_u8(bytes.data()) != ATP_VERSION) return false;
    return wire::load_u32(bytes.data() + ATP_OFFSET_JOB) == config_.terms.job &&
           wire::load_u64(bytes.data() + ATP_OFFSET_TOKEN) == config_.terms.token &&
           wire::load_u16(bytes.data() + ATP_OFFSET_CHANNEL) == config_.terms.channel;
}

void ChannelMachine::handle_timeout(Time now) {
    client_.handle_timeout(now);
    if (ended_) return;
    if (!difference_) worker_.handle_timeout(now);
}

bool ChannelMachine::submit(protocol::Tensor& tensor, Time now, Time deadline) {
    if (!works() || !worker_.submit(tensor, now, deadline)) return false;
    ++in_flight_;
    client_.set_busy(true);
    return true;
}

void ChannelMachine::close(Time now) {
    if (close_asked_ == never) close_asked_ = now;
}

Time ChannelMachine::closes_at() const {
    if (close_asked_ == never) return never;
    if (ended_) return client_.poll_timeout() == never ? close_asked_ : never;
    if (server_ == nullptr) return close_asked_;
    return std::min(close_asked_ + server_linger_most, served_at_ + server_linger);
}

void ChannelMachine::end() {
    if (ended_) return;
    ended_ = true;
    client_.leave();
}

std::optional<ChannelEvent> ChannelMachine::poll_event(Time now) {
    using Kind = ChannelEvent::Kind;
    if (now >= closes_at()) {
        close_asked_ = never;
        return ChannelEvent{Kind::closed};
    }
    if (ended_) return std::nullopt;
    if (difference_) return poll_difference(now);
    if (auto asked = poll_hint(now)) return asked;
    if (const auto event = worker_.poll_event()) {
        if (event->kind == protocol::WorkerEvent::Kind::mismatched) {
            difference_ = cause_of(*event, now);
            differs_until_ = now + control::timing.statements;
            return ChannelEvent{.kind = Kind::differs, .number = event->mismatched_tensor - event->tensor};
        }
        if (event->kind != protocol::WorkerEvent::Kind::completed) return fail(cause_of(*event, now));
        --in_flight_;
        ++completed_;
        client_.set_busy(in_flight_ != 0);
        return ChannelEvent{};
    }
    auto event = client_.poll_event();
    if (!event) return std::nullopt;
    switch (event->kind) {
        case control::MemberEvent::Kind::waiting:
            return ChannelEvent{.kind = Kind::waiting, .cause = std::move(event->cause)};
        case control::MemberEvent::Kind::ready:
            return ChannelEvent{.kind = Kind::ready, .int32_lanes = client_.int32_lanes()};
        case control::MemberEvent::Kind::group_forgotten: return ChannelEvent{Kind::group_forgotten};
        case control::MemberEvent::Kind::slow: return ChannelEvent{.kind = Kind::slow, .pace = event->pace};
        case control::MemberEvent::Kind::ended: break;
    }
    return fail(std::move(event->cause));
}

// No packet alone ends a job with a key: only if another rank states, with a code, that it called another operation at
// the same place, the hint was true.
std::optional<ChannelEvent> ChannelMachine::poll_hint(Time now) {
    const auto position = worker_.poll_hint();
    if (position && !hint_) {
        hint_ = Hint{.completed = completed_,
                     .tensor = *position,
                     .place = fmt::format(" at fragment {}", worker_.first_seq_of(*position)),
                     .until = now + control::timing.statements};
        client_.forget_statements();
        return ChannelEvent{.kind = ChannelEvent::Kind::differs, .number = *position};
    }
    if (!hint_) return std::nullopt;
    const std::uint64_t completed = completed_ - hint_->completed;
    const bool is_over = completed > hint_->tensor || now >= hint_->until;
    if (!is_over && !control::differ_at(client_.statements(), hint_->place)) return std::nullopt;
    if (!is_over) worker_.confirm_mismatch(hint_->tensor - completed, now);
    if (is_over) client_.forget_statements();
    hint_.reset();
    return std::nullopt;
}

void ChannelMachine::state(std::string called, Time now) {
    if (hint_) {
        called.resize(std::min(called.size(), wire::max_statement_bytes - hint_->place.size()));
        called += hint_->place;
    }
    client_.state(std::move(called), now);
}

// The switch collects the statements of all ranks. A rank that never reached the operation makes none.
std::optional<ChannelEvent> ChannelMachine::poll_difference(Time now) {
    const bool member_ended = client_.poll_event().has_value() && client_.ended();
    const bool all = control::count_of(client_.statements()) >= config_.membership->workers();
    if (!all && !member_ended && now < differs_until_) return std::nullopt;
    difference_->statements = client_.statements();
    return fail(*std::move(difference_));
}

ChannelEvent ChannelMachine::fail(ChannelCause cause) {
    end();
    return {.kind = ChannelEvent::Kind::failed, .cause = std::move(cause)};
}

OperationCause ChannelMachine::cause_of(const protocol::WorkerEvent& event, Time now) const {
    const Duration switch_silent = now - client_.answered_at();
    return {.event = event,
            .server_silent = now - event.answered_at,
            .switch_silent = switch_silent,
            .switch_is_silent = switch_silent > 3 * control::refresh_of(client_.hold())};
}

void ChannelMachine::transmit_control(wire::Outbox& out) {
    while (answer_ || client_.has_transmit()) {
        const std::span<std::byte> room = out.reserve(std::max(most_control_bytes, worker_.packet_bytes()));
        if (room.empty()) return;
        if (const auto answer = std::exchange(answer_, std::nullopt)) {
            const std::size_t size =
                codes_.encode(answer->message, answer->to, gatekeeper_, room, answer->padded_bytes, answer->asked_at);
            if (size != 0) out.commit(size, answer->to, wire::Ecn::not_capable);
            continue;
        }
        const auto transmit = client_.poll_transmit();
        const std::size_t size = session_ ? session_->encode(transmit->message, room, transmit->padded_bytes)
                                          : wire::encode(transmit->message, room, transmit->padded_bytes);
        if (size != 0) out.commit(size, transmit->to, wire::Ecn::not_capable);
    }
}

ChannelMachine::Sent ChannelMachine::transmit(wire::Outbox& out, unsigned most_gradients, Time now) {
    Sent sent;
    while (works() && sent.gradients < most_gradients) {
        const std::span<std::byte> room = out.reserve(worker_.packet_bytes());
        if (room.empty()) {
            sent.no_room = true;
            return sent;
        }
        const auto size = worker_.poll_transmit(room, now);
        if (!size) break;
        ++sent.gradients;
        out.commit(*size, client_.data_address(), wire::Ecn::capable_0);
    }
    if (server_ != nullptr) sent.no_room = !transmit_server(out);
    return sent;
}

// False: no room.
bool ChannelMachine::transmit_server(wire::Outbox& out) {
    while (server_->server.has_transmit()) {
        const std::span<std::byte> room = out.reserve(server_->server.packet_bytes());
        if (room.empty()) return false;
        const auto transmit = server_->server.poll_transmit(room);
        if (!transmit) break;
        if (server_down_.family() != wire::Family::none) {
            out.commit(transmit->size, server_down_, wire::Ecn::capable_0);
        }
    }
    return true;
}

Time ChannelMachine::poll_timeout() const {
    const Time next = std::min(client_.poll_timeout(), closes_at());
    if (ended_) return next;
    const Time hint = hint_ ? hint_->until : never;
    return std::min({difference_ ? differs_until_ : worker_.poll_timeout(), next, hint});
}

protocol::ServerCounters ChannelMachine::server_counters() const {
    return server_ == nullptr ? protocol::ServerCounters{} : server_->server.counters();
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
