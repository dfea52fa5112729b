// SPDX-License-Identifier: Apache-2.0
#include "protocol/worker.h"

#include <algorithm>
#include <cstdlib>

#include "protocol/sequence.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

constexpr std::uint32_t max_doublings = 16;  // the timeout reaches its ceiling earlier

}  // namespace

Worker::Worker(const WorkerConfig& config)
    : config_(config),
      congestion_(config.congestion, static_cast<std::uint32_t>(packet_bytes()), config.channel.window()),
      slots_(config.channel.window()),
      indices_(config.channel.window()),
      entries_(config.tensors),
      last_queued_seq_(config.channel.first_seq),
      expected_(config.channel.first_seq),
      next_seq_(config.channel.first_seq),
      overtaken_scan_(config.channel.first_seq),
      recovery_until_(config.channel.first_seq),
      measured_from_(config.channel.first_seq),
      late_from_(config.channel.first_seq),
      resends_(config.channel.window()),
      resent_(config.channel.window()),
      probes_(config.probe_burst) {
    newest_acks_.fill(config.channel.first_seq - 1);
    for (std::uint32_t slot = 0; slot < indices_.size(); ++slot) indices_[slot] = config.channel.index(slot, 0);
}

std::size_t Worker::packet_bytes() const {
    return ATP_HEADER_BYTES + std::size_t{config_.channel.lanes} * ATP_LANE_BYTES;
}

std::optional<std::uint64_t> Worker::submit(Tensor& tensor, Time now, Time deadline) {
    const std::uint64_t elements = tensor.size();
    const std::uint64_t fragments = (elements + config_.channel.payload_lanes() - 1) / config_.channel.payload_lanes();
    if (failed_ || elements == 0 || fragments > 0xffffffffU) return std::nullopt;
    if (tensors_queued_ - tensors_done_ == entries_.size()) return std::nullopt;
    entry(tensors_queued_) = Entry{.tensor = &tensor,
                                   .first_seq = last_queued_seq_,
                                   .fragments = static_cast<std::uint32_t>(fragments),
                                   .missing = static_cast<std::uint32_t>(fragments),
                                   .submitted_at = now,
                                   .deadline = deadline};
    last_queued_seq_ += static_cast<std::uint32_t>(fragments);
    deadline_ = std::min(deadline_, deadline);
    return tensors_queued_++;
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
        case ATP_TYPE_NACK: handle_nack(header, now); break;
        case ATP_TYPE_WAIT: handle_wait(header, now); break;
        case ATP_TYPE_FLUSH:  // for a switch, which this path does not have
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
    const bool known = in_flight(header.seq);
    if (known && !ack_fits(packet)) {
        ++counters_.refused;
        return;
    }
    // CE marks this worker's own downlink. The next gradient reports it, and the ACK returns it to all workers (H32,
    // docs/protocol.md#h32).
    if (congested) echo_ = true;
    if (!known) {
        ++counters_.stale_acks;
        grow_patient();
        return;
    }
    ++counters_.acks;
    Slot& acked = slot(header.seq);
    Entry& owner = entry(acked.tensor);
    deliver(packet);
    if (--owner.missing == 0 && owner.deadline == deadline_) deadline_ = earliest_deadline();
    --unacked_;
    acked.state = State::acked;
    if (acked.resent) {
        // The ACK may answer any of the sendings.
    } else if (!before(header.seq, measured_from_)) {
        measure(now - acked.sent_at);
    } else if (!before(header.seq, late_from_)) {
        late_round_trip_ = std::max(late_round_trip_, now - acked.sent_at);
        // With blind_resend no WAIT reports that another worker is late, so this round trip would mislead.
        if (!acked.probed && !config_.blind_resend) grow_patient();
    }
    std::uint32_t& index = indices_[config_.channel.slot(header.seq)];
    if (index != header.argument) ++counters_.remaps;
    index = header.argument;  // valid from seq + W on: its sender has this ACK

    if ((header.flags & ATP_FLAG_ECN) != 0) {
        ++counters_.ecn_acks;
        congested_once();
    } else {
        congestion_.on_ack();
    }
    note_newer_ack(header.seq);
    advance(now);
    resend_overtaken();
    resend_overtaken_resends();
}

// True if the ACK has the length of its fragment and its type: floats, or the fragment's own integers.
bool Worker::ack_fits(const wire::Packet& packet) const {
    const std::uint32_t seq = packet.header.seq;
    if (packet.header.dtype == ATP_DTYPE_INT16) {
        const Format format = format_of(seq);
        return format.shorts && packet.header.scale == format.scale && packet.lane_count() == lanes_of(seq, format);
    }
    const atp_dtype wanted = is_plain(seq) ? ATP_DTYPE_INT32 : ATP_DTYPE_FLOAT32;
    return packet.header.dtype == wanted && packet.lane_count() == lanes_of(seq, Format{});
}

void Worker::deliver(const wire::Packet& packet) {
    const std::uint32_t seq = packet.header.seq;
    const Entry& owner = entry(slot(seq).tensor);
    const std::size_t lanes = packet.lane_count() - (config_.channel.audit ? 1 : 0);
    const std::span<const std::byte> sums = packet.lanes.first(lanes * ATP_LANE_BYTES);
    if (packet.header.dtype == ATP_DTYPE_INT16) {
        owner.tensor->store_shorts(first_element(owner, seq), sums);
    } else {
        owner.tensor->store(first_element(owner, seq), sums);
    }
}

void Worker::note_newer_ack(std::uint32_t seq) {
    for (std::size_t i = newest_acks_.size(); i-- > 0;) {
        if (seq == newest_acks_[i]) return;
        if (before(newest_acks_[i], seq)) std::swap(newest_acks_[i], seq);
    }
}

void Worker::advance(Time now) {
    const std::uint32_t before_advance = expected_;
    while (expected_ != next_seq_ && slot(expected_).state == State::acked) {
        slot(expected_) = Slot{};
        ++expected_;
    }
    if (expected_ == before_advance) return;
    // Marks left behind would appear ahead again after 2^31 fragments.
    for (std::uint32_t* mark : {&overtaken_scan_, &recovery_until_, &measured_from_, &late_from_}) {
        if (before(*mark, expected_)) *mark = expected_;
    }
    backoff_ = 0;
    missing_units_ = missing_members_ = 0;
    arm(now);
}

// Three distinct newer ACKs prove that every worker has sent seq, so its gradient or its ACK was lost (ATP §3.7).
void Worker::resend_overtaken() {
    const std::uint32_t limit = newest_acks_.front();
    for (; before(overtaken_scan_, limit); ++overtaken_scan_) {
        if (!in_flight(overtaken_scan_)) continue;
        ++counters_.resent_newer;
        queue_resend(overtaken_scan_);
        congested_once();
    }
}

// Three ACKs of fragments that were first sent after a resend prove that the resend was lost too.
void Worker::resend_overtaken_resends() {
    while (!resent_.empty() && !before(newest_acks_.front(), resent_.front().before)) {
        const std::uint32_t seq = resent_.front().seq;
        resent_.pop();
        if (!in_flight(seq)) continue;
        ++counters_.resent_newer;
        queue_resend(seq);
        congested_once();
    }
}

void Worker::congested_once() {
    const PolicyHooks* policy = config_.channel.policy;
    if (before(expected_, recovery_until_) || (policy != nullptr && policy->keeps_window())) return;
    recovery_until_ = next_seq_;
    ++counters_.halvings;
    congestion_.on_congestion();
}

// Round-trip estimator of RFC 6298.
void Worker::measure(Duration round_trip) {
    if (smoothed_ == Duration::zero()) {
        smoothed_ = round_trip;
        variation_ = round_trip / 2;
        return;
    }
    const Duration error = round_trip > smoothed_ ? round_trip - smoothed_ : smoothed_ - round_trip;
    variation_ += (error - variation_) / 4;
    smoothed_ += (round_trip - smoothed_) / 8;
}

// A result arrived twice or without a PROBE: nothing was lost, but round trips are longer than the timeout. Results
// that arrive in longer intervals would never be measured. The next timer therefore waits for twice the longest round
// trip of the fragments that were in flight at the expiry.
void Worker::grow_patient() {
    patience_ = std::max(patience_, 2 * late_round_trip_);
    late_round_trip_ = Duration::zero();
}

// The server answered without a result: fragments in flight wait for a slow worker, or for timers of workers that
// lost something. Their round trips are excluded, and so are those that patience_ came from. Timers that learn from
// each other would stay at their ceiling.
void Worker::lose_patience() {
    late_from_ = next_seq_;
    late_round_trip_ = patience_ = Duration::zero();
}

Duration Worker::base_timeout() const {
    return std::clamp(std::max(smoothed_ + 4 * variation_, patience_), config_.min_timeout, config_.max_timeout);
}

// Workers that lost the same fragments must not send PROBEs in step: together they may overflow a queue that drops
// the same ones each time. Each repetition is late by up to half of its timeout; the share differs between workers.
Duration Worker::lateness(Duration timeout) const {
    if (backoff_ == 0) return Duration::zero();
    const std::uint32_t share = mix(mix(mix(config_.channel.job + config_.rank) + expected_) + backoff_);
    return Duration((timeout.count() / 2 * (share >> 16U)) >> 16U);
}

void Worker::arm(Time now) {
    const Duration timeout = std::min(base_timeout() * (1U << std::min(backoff_, max_doublings)), config_.max_timeout);
    timer_ = unacked_ == 0 ? never : now + timeout + lateness(timeout);
}

bool Worker::concerns_me(const atp_header& header) const {
    const Place& place = config_.place;
    return (header.bitmap1 >> place.unit & 1U) != 0 && (header.bitmap0 >> place.member & 1U) != 0;
}

void Worker::handle_nack(const atp_header& header, Time now) {
    if (!concerns_me(header) || !in_flight(header.seq)) return;
    if (header.dtype == ATP_DTYPE_FLOAT32 && is_plain(header.seq)) {
        ++counters_.refused;  // a server requests no floats of a plain tensor
        return;
    }
    ++counters_.nacks;
    Slot& asked = slot(header.seq);
    const Mode wanted = header.dtype == ATP_DTYPE_FLOAT32       ? Mode::floats
                        : (header.flags & ATP_FLAG_BYPASS) != 0 ? Mode::singly
                                                                : Mode::aggregated;
    asked.mode = std::max(asked.mode, wanted);
    queue_resend(header.seq);
    lose_patience();
    arm(now);
}

void Worker::handle_wait(const atp_header& header, Time now) {
    if (!in_flight(header.seq)) return;
    ++counters_.waits;
    if (header.argument == ATP_WAIT_MISMATCHED) {
        mismatched_ = true;
        fail(now);
        return;
    }
    lose_patience();
    missing_units_ = header.bitmap1;
    missing_members_ = header.bitmap0;
}

void Worker::queue_resend(std::uint32_t seq) {
    Slot& lost = slot(seq);
    if (lost.resend_queued) return;
    lost.resend_queued = resends_.push(Sequence{seq});
}

Time Worker::poll_timeout() const { return failed_ || idle() ? never : std::min(timer_, deadline_); }

// Earliest deadline of the incomplete operations.
Time Worker::earliest_deadline() const {
    Time earliest = never;
    for (std::uint64_t number = tensors_done_; number != tensors_queued_; ++number) {
        if (entry(number).missing != 0) earliest = std::min(earliest, entry(number).deadline);
    }
    return earliest;
}

void Worker::handle_timeout(Time now) {
    if (failed_ || idle()) return;
    if (now >= deadline_) {
        fail(now);
        return;
    }
    if (now < timer_) return;
    if (!ATP_BREAK(no_probe)) ask_or_resend();
    // Fragments in flight may wait for another worker's timer. If they were measured, timers would raise each other.
    measured_from_ = next_seq_;
    late_round_trip_ = Duration::zero();
    ++backoff_;
    arm(now);
}

void Worker::ask_or_resend() {
    std::uint32_t left = config_.probe_burst;
    for (std::uint32_t seq = expected_; seq != next_seq_ && left != 0; ++seq) {
        if (!in_flight(seq)) continue;
        --left;
        if (config_.blind_resend) {
            queue_resend(seq);
        } else if (!probes_.push(Sequence{seq})) {
            return;
        }
        slot(seq).probed = true;
    }
}

void Worker::fail(Time now) {
    failed_ = true;
    failed_at_ = now;
    timer_ = never;
    resends_.clear();
    resent_.clear();
    probes_.clear();
}

std::optional<WorkerEvent> Worker::poll_event() {
    if (idle()) return std::nullopt;
    const Entry& oldest = entry(tensors_done_);
    if (oldest.missing != 0 && !failed_) return std::nullopt;
    WorkerEvent event;
    event.tensor = tensors_done_++;
    if (oldest.missing != 0) {
        event.kind = mismatched_ ? WorkerEvent::Kind::mismatched : WorkerEvent::Kind::timed_out;
        event.elapsed = failed_at_ - oldest.submitted_at;
        event.answered = answered_;
        event.answered_at = answered_at_;
        event.missing_units = missing_units_;
        event.missing_members = missing_members_;
    }
    return event;
}

bool Worker::may_send_new() const {
    if (tensors_started_ == tensors_queued_) return false;
    const bool within_slots = distance(expected_, next_seq_) < static_cast<std::int32_t>(config_.channel.window()) ||
                              ATP_BREAK(window_unbounded);
    if (!within_slots || unacked_ >= congestion_.window_packets()) return false;
    const Entry& owner = entry(tensors_started_);
    return owner.tensor->ready(first_element(owner, next_seq_), elements_of(owner, next_seq_));
}

std::optional<std::size_t> Worker::poll_transmit(std::span<std::byte> buffer, Time now) {
    if (failed_ || buffer.size() < packet_bytes()) return std::nullopt;
    while (!resends_.empty()) {
        const std::uint32_t seq = resends_.front().seq;
        resends_.pop();
        if (!in_flight(seq)) continue;  // acknowledged in the meantime
        slot(seq).resend_queued = false;
        slot(seq).resent = true;
        // If the ring is full, the timer covers the fragment.
        (void)resent_.push({.seq = seq, .before = next_seq_});
        ++counters_.resent;
        return write_gradient(seq, true, buffer);
    }
    while (!probes_.empty()) {
        const std::uint32_t seq = probes_.front().seq;
        probes_.pop();
        if (!in_flight(seq)) continue;
        ++counters_.probes;
        return write_probe(seq, buffer);
    }
    if (!may_send_new()) return std::nullopt;
    return write_gradient(start_next_fragment(now), false, buffer);
}

// Gives the next fragment its slot and returns its sequence number.
std::uint32_t Worker::start_next_fragment(Time now) {
    const std::uint32_t seq = next_seq_++;
    slot(seq) = Slot{.sent_at = now, .tensor = tensors_started_, .state = State::sent};
    ++counters_.sent;
    if (++unacked_ == 1) arm(now);
    const Entry& owner = entry(tensors_started_);
    if (next_seq_ == owner.first_seq + owner.fragments) ++tensors_started_;
    return seq;
}

std::uint64_t Worker::first_element(const Entry& entry, std::uint32_t seq) const {
    return std::uint64_t{seq - entry.first_seq} * config_.channel.payload_lanes();
}

std::size_t Worker::elements_of(const Entry& entry, std::uint32_t seq) const {
    const std::uint64_t left = entry.tensor->size() - first_element(entry, seq);
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, config_.channel.payload_lanes()));
}

Format Worker::format_of(std::uint32_t seq) const {
    const Entry& owner = entry(slot(seq).tensor);
    return owner.tensor->format(first_element(owner, seq), elements_of(owner, seq));
}

// The last fragment of a tensor can be shorter.
std::size_t Worker::lanes_of(std::uint32_t seq, const Format& format) const {
    return format.lanes_of(elements_of(entry(slot(seq).tensor), seq)) + (config_.channel.audit ? 1 : 0);
}

bool Worker::could_overflow(std::span<const std::byte> lanes) const {
    if (config_.bypass_above == 0) return false;
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        const auto value = std::int64_t{static_cast<std::int32_t>(wire::load_u32(lanes.data() + at))};
        if (std::abs(value) > config_.bypass_above) return true;
    }
    return false;
}

// Reads the fragment as integers. If they do not fit, or could overflow in a switch, it raises the mode of the slot.
void Worker::load_integers(Slot& slot, std::uint32_t seq, const Format& format, std::span<std::byte> lanes) {
    const Entry& owner = entry(slot.tensor);
    if (!owner.tensor->load_integers(first_element(owner, seq), lanes)) {
        slot.mode = Mode::floats;
        return;
    }
    const bool judged = slot.mode == Mode::aggregated && !owner.tensor->plain() && !format.shorts;
    if (!judged || !could_overflow(lanes)) return;
    ++counters_.bypassed;
    slot.mode = Mode::singly;
}

atp_header Worker::header_for(std::uint32_t seq) const {
    const ChannelConfig& channel = config_.channel;
    const Place& place = config_.place;
    return atp_header{
        .version = ATP_VERSION,
        .type = ATP_TYPE_GRADIENT,
        .flags = 0,
        .hop = place.hop,
        .dtype = ATP_DTYPE_NONE,
        .window_log2 = channel.window_log2,
        .scale = scale_of_job,
        .job = channel.job,
        .token = channel.token,
        .channel = channel.channel,
        .worker = config_.rank,
        .seq = seq,
        .index = indices_[channel.slot(seq)],
        .argument = 0,
        .bitmap0 = 1U << place.member,
        .mask0 = place.mask0,
        .bitmap1 = 1U << place.unit,
        .mask1 = place.mask1,
    };
}

std::size_t Worker::write_gradient(std::uint32_t seq, bool resend, std::span<std::byte> buffer) {
    Slot& sending = slot(seq);
    const Entry& owner = entry(sending.tensor);
    const Format format = format_of(seq);
    const std::size_t audit_bytes = config_.channel.audit ? ATP_LANE_BYTES : 0;
    const auto lanes_in = [&](const Format& form) {
        return buffer.subspan(ATP_HEADER_BYTES, lanes_of(seq, form) * ATP_LANE_BYTES);
    };
    std::span<std::byte> lanes = lanes_in(format);
    if (sending.mode != Mode::floats) load_integers(sending, seq, format, lanes.first(lanes.size() - audit_bytes));
    if (sending.mode == Mode::floats) {
        ++counters_.float_fragments;
        lanes = lanes_in(Format{});
        owner.tensor->load_floats(first_element(owner, seq), lanes.first(lanes.size() - audit_bytes));
    }
    if (config_.channel.audit) {
        wire::store_u32(lanes.last(ATP_LANE_BYTES).data(), config_.channel.audit_of(seq, config_.rank));
    }
    const atp_dtype integers = format.shorts ? ATP_DTYPE_INT16 : ATP_DTYPE_INT32;
    atp_header header = header_for(seq);
    header.scale = format.scale;
    header.argument = owner.tensor->purpose() ^ format.mark();
    header.dtype = sending.mode == Mode::floats ? ATP_DTYPE_FLOAT32 : integers;
    if (resend) header.flags |= ATP_FLAG_RESEND;
    if (sending.mode != Mode::aggregated) header.flags |= ATP_FLAG_BYPASS;
    if (config_.channel.audit) header.flags |= ATP_FLAG_AUDIT;
    if (is_plain(seq)) header.flags |= ATP_FLAG_PLAIN;
    if (echo_) {
        header.flags |= ATP_FLAG_ECN;
        ++counters_.echoes;
        echo_ = false;
    }
    wire::encode_header(header, buffer);
    return ATP_HEADER_BYTES + lanes.size();
}

std::size_t Worker::write_probe(std::uint32_t seq, std::span<std::byte> buffer) {
    atp_header header = header_for(seq);
    header.type = ATP_TYPE_PROBE;
    wire::encode_header(header, buffer);
    return ATP_HEADER_BYTES;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
