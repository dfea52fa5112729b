// SPDX-License-Identifier: Apache-2.0
#include "protocol/worker.h"

#include <algorithm>
#include <utility>

#include "protocol/sequence.h"
#include "protocol/slot_indices.h"
#include "wire/ack_list.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

Worker::Worker(const WorkerConfig& config)
    : config_(config),
      congestion_(config.congestion, static_cast<std::uint32_t>(packet_bytes()), config.channel.window()),
      slots_(config.channel.window()),
      indices_(config.channel.window()),
      operations_(config.tensors, config.channel.first_seq),
      expected_(config.channel.first_seq),
      next_seq_(config.channel.first_seq),
      ready_(config.channel.first_seq),
      home_sum_(std::size_t{config.channel.payload_lanes()} * atp_elements_per_word(ATP_DTYPE_INT8)),
      recovery_until_(config.channel.first_seq),
      losses_until_(config.channel.first_seq),
      measured_from_(config.channel.first_seq),
      late_from_(config.channel.first_seq),
      losses_(config.channel.first_seq, config.channel.window()),
      resends_(config.channel.window()),
      probes_(config.channel.window()) {
    const SlotIndices first(config.channel);
    for (std::uint32_t slot = 0; slot < indices_.size(); ++slot) indices_[slot] = first.index(slot);
}

std::size_t Worker::packet_bytes() const {
    return ATP_HEADER_BYTES + std::size_t{config_.channel.lanes} * ATP_LANE_BYTES;
}

std::optional<std::uint64_t> Worker::submit(Tensor& tensor, Time now, Time deadline) {
    const std::uint8_t form = config_.int32_lanes ? std::uint8_t{ATP_DTYPE_INT32} : tensor.form();
    const std::uint32_t longest = config_.channel.payload_lanes() * atp_elements_per_word(form);
    const FragmentCut cut(tensor.size(), longest, tensor.spans());
    const std::uint64_t fragments = cut.fragments();
    if (failed_ || fragments == 0 || fragments > 0xffffffffU) return std::nullopt;
    return operations_.push(tensor, cut, now, deadline, config_.int32_lanes);
}

void Worker::handle_packet(std::span<std::byte> bytes, bool congested, Time now) {
    wire::Packet packet;
    if (failed_) return;
    if (wire::decode(bytes, packet) != wire::DecodeError::none) {
        ++counters_.refused;
        return;
    }
    const atp_header& header = packet.header;
    const ChannelConfig& channel = config_.channel;
    if (header.job != channel.job || (header.token != channel.token && !ATP_BREAK(accept_any_ack)) ||
        header.channel != channel.channel) {
        ++counters_.forged;
        return;
    }
    switch (header.type) {
        case ATP_TYPE_ACK: handle_ack(packet, congested, now); break;
        case ATP_TYPE_ACK_LIST: handle_ack_list(packet, congested, now); break;
        case ATP_TYPE_NACK: handle_nack(header, now); break;
        case ATP_TYPE_WAIT: handle_wait(header, now); break;
        case ATP_TYPE_FLUSH:  // for a switch; arrives only on a path without one
            return;
        default: ++counters_.refused; return;
    }
    answered_ = true;
    answered_at_ = now;
}

bool Worker::in_flight(std::uint32_t seq) const {
    return distance(expected_, seq) >= 0 && before(seq, next_seq_) && slot(seq).state == State::sent;
}

void Worker::handle_ack(const wire::Packet& packet, bool congested, Time now) {
    const atp_header& header = packet.header;
    if (is_for_others(packet)) return;
    const bool known = in_flight(header.seq);
    if (known && !ack_fits(packet)) {
        if (atp_lanes_type(&header) == ATP_DTYPE_FLOAT32) note_demand(header.seq);
        if (!ends_as_mismatch(packet, now)) ++counters_.refused;
        return;
    }
    if (known && !audit_holds(packet)) {
        ++counters_.audit_failures;
        return;
    }
    // CE marks this worker's own downlink. The next gradient reports it, and the ACK returns it to all workers (H32,
    // docs/spec/hazards.md#h32).
    if (congested) echo_ = true;
    if (!known) {
        ++counters_.stale_acks;
        round_trip_.raise_minimum();
        return;
    }
    if (!deliver(packet)) return;
    ++counters_.acks;
    Slot& acked = slot(header.seq);
    operations_.complete_fragment(acked.tensor);
    --unacked_;
    acked.state = State::acked;
    if (ready_.stopped_at(header.seq)) resume_readies(header.seq);
    const bool resend_ended_it = header.sending != 0 && acked.mode != Mode::floats;  // floats may need several packets
    if (acked.resent || resend_ended_it) {
        // Not measured: the ACK may answer any of the sendings (H90), or the time of another worker's timer is in it
        // (H92).
    } else if (!before(header.seq, measured_from_)) {
        round_trip_.measure(now - acked.sent_at);
    } else if (!before(header.seq, late_from_)) {
        round_trip_.note_late(now - acked.sent_at);
        if (!acked.probed) round_trip_.raise_minimum();
    }
    std::uint32_t& index = indices_[config_.channel.slot(header.seq)];
    if (index != header.argument) ++counters_.remaps;
    const std::uint32_t before_ack = std::exchange(index, header.argument);  // for seq + W, which waits for this ACK
    if (ATP_BREAK(index_for_sharers)) std::ranges::replace(indices_, before_ack, header.argument);

    if ((header.flags & (ATP_FLAG_ECN | ATP_FLAG_ECN_DOWN)) != 0) {
        ++counters_.ecn_acks;
        congested_once();
    } else if (!(ATP_BREAK(never_grows_again) && congestion_.has_halved())) {
        congestion_.on_ack();
    }
    if (acked.delivery.is_owned()) {
        note_newer(header.seq, acked.delivery);
    } else {
        losses_.note_ack(header.seq);
    }
    advance(now);
    recover_overtaken();
}

// Each ACK of a list counts like one that arrived alone.
void Worker::handle_ack_list(const wire::Packet& list, bool congested, Time now) {
    for (std::size_t at = 0; at < wire::listed_acks(list); ++at) {
        wire::Packet ack{.header = wire::listed_ack(list, at), .lanes = {}};
        if (ATP_BREAK(list_has_one_index)) ack.header.argument = list.header.argument;
        if (ATP_BREAK(list_stops_at_stale) && !in_flight(ack.header.seq)) return;
        if (atp_check_header(&ack.header, 0) != ATP_REFUSED_NOT) {
            ++counters_.refused;
        } else {
            handle_ack(ack, congested, now);
        }
    }
}

void Worker::advance(Time now) {
    const std::uint32_t before_advance = expected_;
    while (expected_ != next_seq_ && slot(expected_).state == State::acked) {
        slot(expected_) = Slot{};
        ++expected_;
    }
    backoff_ = 0;
    arm(now);  // while ACKs arrive, newer ones show what is lost: the timer is for silence
    if (expected_ == before_advance) return;
    // Moves these marks along, because after 2^31 further fragments an old mark would compare as newer.
    for (std::uint32_t* mark : {&recovery_until_, &losses_until_, &measured_from_, &late_from_}) {
        if (before(*mark, expected_)) *mark = expected_;
    }
    losses_.advance(expected_);
    ready_.advance(expected_);
    missing_units_ = missing_members_ = 0;
}

bool Worker::concerns_me(const atp_header& header) const {
    const Place& place = config_.place;
    return (header.bitmap1 >> place.unit & 1U) != 0 && (header.bitmap0 >> place.member & 1U) != 0;
}

void Worker::handle_nack(const atp_header& header, Time now) {
    if (!concerns_me(header) || !in_flight(header.seq)) return;
    const bool asks_floats = atp_lanes_type(&header) == ATP_DTYPE_FLOAT32;
    Slot& asked = slot(header.seq);
    const bool sends = asked.delivery.contributes(config_.rank);
    if (asks_floats || (header.flags & ATP_FLAG_BYPASS) != 0) note_demand(header.seq);
    if (header.part != 0 || (asks_floats && is_plain(header.seq)) || !sends) {
        ++counters_.refused;  // a server requests no parts, no floats of a plain tensor, and nothing that others send
        return;
    }
    ++counters_.nacks;
    // The answer to a PROBE that left before the last resend.
    const bool asks_again = asks_floats || (header.flags & ATP_FLAG_BYPASS) != 0;
    const auto since = static_cast<std::int8_t>(header.sending - asked.resent_as);
    const bool is_older = since < 0 && since >= -64;  // further back, it is a newer PROBE of a long wait
    if (asked.resent && header.peer == config_.rank && is_older && !asks_again) return;
    if (ATP_BREAK(nack_of_probe_ignored) && asked.probed && !asks_again) return;
    if (!asked.resent && !asked.resend_queued && !asks_again) note_loss();
    asked.sends_no_lanes = false;
    if (may_stay_home(asked.delivery)) asked.mode = std::max(asked.mode, Mode::unaggregated);  // no switch expects it
    const Mode requested = asks_floats                             ? Mode::floats
                           : (header.flags & ATP_FLAG_BYPASS) != 0 ? Mode::unaggregated
                                                                   : Mode::aggregated;
    asked.mode = std::max(asked.mode, requested);
    queue_resend(header.seq);
    exclude_waiting_fragments();
    backoff_ = 0;
    arm(now);
}

void Worker::handle_wait(const atp_header& header, Time now) {
    if (!in_flight(header.seq)) return;
    ++counters_.waits;
    if (header.argument == ATP_WAIT_MISMATCHED) {
        note_mismatch(header.seq, now);
        return;
    }
    exclude_waiting_fragments();
    missing_units_ = header.bitmap1;
    missing_members_ = header.bitmap0;
}

void Worker::fail(Time now) {
    failed_ = true;
    failed_at_ = now;
    timer_ = never;
    resends_.clear();
    losses_.clear();
    probes_.clear();
}

std::optional<WorkerEvent> Worker::poll_event() {
    if (idle()) return std::nullopt;
    const Entry& oldest = operations_[operations_.first()];
    if (oldest.missing != 0 && !failed_) return std::nullopt;
    WorkerEvent event;
    event.tensor = operations_.pop();
    if (oldest.missing != 0) {
        event.kind = mismatched_ ? WorkerEvent::Kind::mismatched : WorkerEvent::Kind::timed_out;
        event.elapsed = failed_at_ - oldest.submitted_at;
        event.answered = answered_;
        event.answered_at = answered_at_;
        event.missing_units = missing_units_;
        event.missing_members = missing_members_;
        event.mismatched_tensor = mismatched_tensor_;
    }
    return event;
}

bool Worker::may_send_new() {
    const bool joins = std::exchange(in_train_, false);
    if (tensors_started_ == operations_.end()) return false;
    const auto ahead = static_cast<std::uint32_t>(distance(expected_, next_seq_));
    const std::uint32_t slots_left = ATP_BREAK(window_unbounded) ? 1 : config_.channel.window() - ahead;
    const std::uint32_t window = congestion_.window_packets();
    if (slots_left == 0 || unacked_ >= window) return false;
    if (!joins && waits_for_train(std::min(slots_left, window - unacked_))) return false;
    const Entry& next = operations_[tensors_started_];
    const auto [first, count] = next.range(next_seq_);
    in_train_ = next.tensor->ready(first, count);
    return in_train_;
}

// The fragments in flight bring further ACKs, or the timer expires. The end of a tensor does not wait.
bool Worker::waits_for_train(std::uint32_t room) const {
    const std::uint32_t train = std::min(config_.train, congestion_.window_packets() / 4);
    const Entry& next = operations_[tensors_started_];
    return room < train && unacked_ >= 2 * train && next.first_seq + next.fragments - next_seq_ > room;
}

std::optional<std::size_t> Worker::poll_transmit(std::span<std::byte> buffer, Time now) {
    if (failed_ || buffer.size() < packet_bytes()) return std::nullopt;
    if (const FloatsLeft left = std::exchange(floats_left_, {}); left.any && in_flight(left.seq)) {
        return write_gradient(left.seq, left.resend, left.next, buffer);
    }
    while (!resends_.empty()) {
        const std::uint32_t seq = resends_.front().seq;
        resends_.pop();
        if (!in_flight(seq)) continue;  // acknowledged in the meantime
        slot(seq).resend_queued = false;
        slot(seq).resent = true;
        slot(seq).resent_as = slot(seq).sendings;
        losses_.note_resend(seq, next_seq_);
        count_newer_from_now(slot(seq));
        ++counters_.resent;
        return write_gradient(seq, true, {}, buffer);
    }
    while (!probes_.empty()) {
        const std::uint32_t seq = probes_.front().seq;
        probes_.pop();
        if (!in_flight(seq)) continue;
        slot(seq).probe_queued = ATP_BREAK(probe_once);
        ++counters_.probes;
        return write_probe(seq, buffer);
    }
    while (!ready_due(false) && may_send_new()) {
        const std::uint32_t seq = start_next_fragment(now);
        if (!slot(seq).sends_no_lanes) return write_gradient(seq, false, {}, buffer);
    }
    const bool has_room = unacked_ < congestion_.window_packets() && next_seq_ - expected_ < config_.channel.window();
    if (!ready_due(has_room)) return std::nullopt;
    return write_ready(buffer);
}

// Gives the next fragment its slot and returns its sequence number.
std::uint32_t Worker::start_next_fragment(Time now) {
    const std::uint32_t seq = next_seq_++;
    const Entry& current = operations_[tensors_started_];
    announced_ = announced_ && seq != current.first_seq;
    const Delivery delivery = current.tensor->delivery(current.range(seq).first);
    slot(seq) = Slot{.sent_at = now, .tensor = tensors_started_, .state = State::sent, .delivery = delivery};
    count_newer_from_now(slot(seq));
    if (delivery.one_sender) {
        slot(seq).mode = Mode::unaggregated;  // no switch adds it
        slot(seq).sends_no_lanes = !delivery.contributes(config_.rank);
        ready_.note_started(seq);
    } else if (may_stay_home(delivery)) {
        start_at_home(seq);
    }
    counters_.sent += slot(seq).sends_no_lanes ? 0U : 1U;
    if (++unacked_ == 1) arm(now);
    if (next_seq_ == current.first_seq + current.fragments) ++tensors_started_;
    return seq;
}

std::size_t Worker::write_probe(std::uint32_t seq, std::span<std::byte> buffer) {
    wire::encode_header(header_for(seq, ATP_TYPE_PROBE), buffer);
    return ATP_HEADER_BYTES;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
