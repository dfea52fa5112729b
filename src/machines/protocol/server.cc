// SPDX-License-Identifier: Apache-2.0
#include "protocol/server.h"

#include <algorithm>
#include <cassert>

#include "protocol/fragment_sum.h"
#include "protocol/sequence.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

bool is_plain(const atp_header& header) { return (header.flags & ATP_FLAG_PLAIN) != 0; }

bool has_proof(const atp_header& header) { return atp_has_proof(&header) != 0; }

bool is_float(const atp_header& header) { return atp_lanes_type(&header) == ATP_DTYPE_FLOAT32; }

}  // namespace

Server::Server(const ServerConfig& config, const Membership& membership)
    : config_(config),
      membership_(membership),
      base_(config.channel.first_seq),
      records_(config.channel, membership.units(), config.memory),
      indices_(config.channel),
      completions_(config.channel.first_seq, 0),
      ready_(membership.workers(), config.channel.first_seq),
      answers_(config.channel, membership) {}

std::size_t Server::packet_bytes() const {
    return ATP_HEADER_BYTES + std::size_t{config_.channel.lanes} * ATP_LANE_BYTES;
}

void Server::handle_packet(std::span<std::byte> bytes, bool congested, Time now) {
    ++counters_.packets;
    counters_.bytes += bytes.size();
    wire::Packet packet;
    if (wire::decode(bytes, packet) != wire::DecodeError::none) {
        ++counters_.refused;
        return;
    }
    const ChannelConfig& channel = config_.channel;
    if (packet.header.job != channel.job || packet.header.token != channel.token ||
        packet.header.channel != channel.channel) {
        ++counters_.forged;
        return;
    }
    if (congested) packet.header.flags |= ATP_FLAG_ECN;
    if (packet.header.type == ATP_TYPE_GRADIENT) {
        handle_gradient(packet, now);
    } else if (packet.header.type == ATP_TYPE_PROBE) {
        handle_probe(packet.header, now);
    } else if (packet.header.type == ATP_TYPE_READY) {
        handle_ready(packet.header, now);
    } else {
        ++counters_.refused;
    }
}

// The complete record of seq while a worker may still request it, or nullptr.
Server::Record* Server::retained(std::uint32_t seq) {
    Record& record = records_.at(seq);
    if (record.state != State::complete || record.seq != seq) return nullptr;
    if (ATP_BREAK(retain_too_short) && distance(seq, base_) > static_cast<std::int32_t>(config_.channel.window() / 2))
        return nullptr;
    return &record;
}

// The record of seq, opened if necessary. nullptr if seq is finished, or further ahead than any worker can be. To
// send seq a worker needs the result of seq - W, so the server has completed everything up to seq - W.
Server::Record* Server::record_in_progress(std::uint32_t seq) {
    const std::int32_t ahead = distance(base_, seq);
    if (ahead < 0) {
        ++counters_.stale;
        return nullptr;
    }
    if (ahead >= static_cast<std::int32_t>(config_.channel.window())) {
        ++counters_.ahead;
        return nullptr;
    }
    Record& record = records_.at(seq);
    if (record.state == State::gathering) {
        assert(record.seq == seq);
        return &record;
    }
    return &records_.open(seq, indices_.index(seq));
}

// Workers that the packet covers. Nothing if this job has no such workers, shape or parts.
std::optional<WorkerSet> Server::set_of(const wire::Packet& packet) const {
    const atp_header& header = packet.header;
    if ((header.part != 0 && !is_float(header)) || !has_delivery(header)) return std::nullopt;
    if (packet.lane_count() <= records_.tail_lanes(has_proof(header))) return std::nullopt;
    if (packet.lane_count() > config_.channel.lanes) return std::nullopt;
    if (((header.flags & ATP_FLAG_AUDIT) != 0) != config_.channel.audit) return std::nullopt;
    if (is_plain(header) && header.lanes != ATP_INT32_LANES) return std::nullopt;
    return WorkerSet::of(header, membership_, home_of(Delivery::of(header)));
}

bool Server::audit_holds(const wire::Packet& packet, const WorkerSet& set) const {
    if (!config_.channel.audit) return true;
    const std::uint32_t lane = wire::load_u32(packet.lanes.last(ATP_LANE_BYTES).data());
    return set.audit_sum(config_.channel, packet.header.seq, membership_) == lane;
}

void Server::handle_gradient(wire::Packet& packet, Time now) {
    const atp_header& header = packet.header;
    const std::optional<WorkerSet> set = set_of(packet);
    if (!set || !delivers(packet, *set)) {
        ++counters_.refused;
        return;
    }
    if (Record* done = retained(header.seq)) {
        ++counters_.duplicates;
        if ((header.flags & ATP_FLAG_RESEND) != 0) answer_again(*done, header, now);
        return;
    }
    Record* record = record_in_progress(header.seq);
    if (record == nullptr) return;
    if (!settle_scale(*record, packet, now)) return;
    // A sum that a switch returned names no owner, whether the fragment has one or not.
    const bool may_have_owner = record->unscaled && header.worker == ATP_WORKER_ALL;
    const bool is_adopted = may_have_owner || adopt_delivery(*record, header);
    if (record->mismatched || !is_adopted || differs(*record, packet)) {
        ++counters_.mismatched;
        notify_mismatch(*record, header, *set, now);
        return;
    }
    ++counters_.gradients;
    record->ecn |= (header.flags & ATP_FLAG_ECN) != 0;
    record->ecn_down |= (header.flags & ATP_FLAG_ECN_DOWN) != 0;
    record->collision |= (header.flags & ATP_FLAG_COLLISION) != 0;

    merge(*record, packet, *set, now);
    if (is_complete(*record)) {
        finish(*record, AnswerQueue::cause_of(header));
    } else {
        require_owner(*record, header, now);
        fetch_from_switches(*record, header, *set);
        if (record->lost) ask_for_lost(*record, header, *set, now);
    }
}

void Server::merge(Record& record, const wire::Packet& packet, const WorkerSet& set, Time now) {
    if (is_float(packet.header)) {
        merge_floats(record, packet, set, now);
    } else {
        merge_integers(record, packet, set, now);
    }
    // The first packet with numbers decides for the record.
    if (!record.filled) return;
    record.plain = is_plain(packet.header);
    record.proof = has_proof(packet.header);
    record.form = atp_lanes_form(&packet.header);
    record.scale = packet.header.scale;
    note_size(record, range_of(records_, packet));
    record.purpose = packet.header.argument;
}

// True if kind, form, number of lanes, scale or purpose differ: a sum would have no meaning.
bool Server::differs(const Record& record, const wire::Packet& packet) const {
    return record.filled && (record.plain != is_plain(packet.header) || record.proof != has_proof(packet.header) ||
                             record.form != atp_lanes_form(&packet.header) ||
                             !fits_size(record, range_of(records_, packet)) || record.scale != packet.header.scale ||
                             (record.purpose != packet.header.argument && !ATP_BREAK(mix_purposes)));
}

// The fragment can never complete, so the server tells all workers. The sender of this packet has not received an
// earlier WAIT, so it gets one even within the repeat interval.
void Server::notify_mismatch(Record& record, const atp_header& header, const WorkerSet& set, Time now) {
    record.mismatched = true;
    const std::span<std::uint32_t> notified = records_.notified(record);
    for_each_bit(set.units, [&](unsigned unit) { notified[unit] &= ~set.members_of(unit, membership_); });
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        if (not_yet_notified(record, unit, membership_.unit_mask(unit), now) == 0) continue;
        send(
            Answer{
                .type = ATP_TYPE_WAIT, .cause = AnswerQueue::cause_of(header), .seq = record.seq, .units = 1U << unit},
            counters_.waits);
    }
}

void Server::merge_integers(Record& record, const wire::Packet& packet, const WorkerSet& set, Time now) {
    if (record.mode == Mode::floats && !ATP_BREAK(mix_modes)) {
        // The sender has not received an earlier NACK, so it gets one even within the repeat interval.
        if (!set.whole) records_.notified(record)[set.unit()] &= ~set.members;
        ask_missing(record, packet.header, now);
        return;
    }
    if ((packet.header.flags & ATP_FLAG_OVERFLOW) != 0 && !ATP_BREAK(trust_overflowed_lanes)) {
        ++counters_.overflowed;
        raise_mode(record, Mode::unaggregated, now);
        ask_missing(record, packet.header, now);
        return;
    }
    if (!audit_holds(packet, set)) {
        // A sum that names no owner has another set of workers if the fragment has one: then nothing is wrong with it.
        counters_.audit_failures += record.unscaled ? 0U : 1U;
        return;
    }
    // The sum changes only if the set is disjoint or a superset, in whatever order packets arrive.
    SetRelation found = set.relation_to(records_.included(record), membership_);
    if (ATP_BREAK(merge_overlapping) && found == SetRelation::overlaps) found = SetRelation::disjoint;
    if (ATP_BREAK(replace_smaller) && found == SetRelation::inside) found = SetRelation::contains;
    switch (found) {
        case SetRelation::disjoint:
            if (record.count == 0) {
                if (!assign(record, packet, set)) return;
            } else {
                add_integers(records_, record, packet);
                ++record.merges;
            }
            mark_in(record, set, false);
            break;
        case SetRelation::contains:
            if (!assign(record, packet, set)) return;
            ++counters_.replaced;
            record.merges = 0;
            mark_in(record, set, true);
            break;
        case SetRelation::inside: ++counters_.duplicates; break;
        case SetRelation::overlaps:
            ++counters_.overlapping;
            ask_missing(record, packet.header, now);
            break;
    }
}

// This packet becomes the included set. Usually it is the sum of all workers and needs no wider accumulator.
bool Server::assign(Record& record, const wire::Packet& packet, const WorkerSet& set) {
    const std::uint32_t count = set.count(membership_);
    const bool without_owner = count + 1 == membership_.workers() && owner_is_home(record) && !set.is_home_alone();
    const bool is_whole = (count == membership_.workers() || without_owner) && !record.unscaled;
    const bool needs_sums = !is_whole || is_plain(packet.header);
    if (needs_sums && !records_.hold_sums(record, range_of(records_, packet).end, is_first(record))) {
        ++counters_.no_memory;
        return false;
    }
    record.without_owner = without_owner;
    assign_integers(records_, record, packet, is_whole, inverse_scale(packet.header.scale));
    return true;
}

bool Server::is_first(const Record& record) const {
    return distance(base_, record.seq) < static_cast<std::int32_t>(fragments_with_room(config_.channel.window()));
}

void Server::mark_in(Record& record, const WorkerSet& set, bool replace) {
    const std::span<std::uint32_t> in = records_.included(record);
    if (replace) {
        std::ranges::fill(in, 0U);
        record.count = 0;
    }
    for_each_bit(set.units, [&](unsigned unit) { in[unit] |= set.members_of(unit, membership_); });
    record.count += set.count(membership_);
    record.filled = true;
}

// Answers of a lower mode do not apply to this mode, so all workers may be notified again. Included integers stay
// valid.
void Server::raise_mode(Record& record, Mode mode, Time now) {
    if (record.mode >= mode) return;
    record.mode = mode;
    record.notified_until = now;
}

// A packet that bypassed a switch's aggregator proves that this aggregator can never complete. A FLUSH fetches the
// rest of the fragment from there at once. The switch forwards later packets (H7, H14, docs/spec/hazards.md#h7).
void Server::fetch_from_switches(Record& record, const atp_header& header, const WorkerSet& set) {
    const bool passed_by = (header.flags & (ATP_FLAG_BYPASS | ATP_FLAG_RESEND)) != 0;
    if (!passed_by || record.mode != Mode::aggregated || record.delivery.one_sender) return;
    if (set.is_home_alone()) return;  // switches expect all others only
    // The sum that the switch returns has both. It thus names the owner, and says whether a resend caused it (H92).
    const AnswerQueue::Cause cause{.worker = record.delivery.owner, .sending = header.sending};
    if (membership_.units() > 1 && !record.level1_flushed) {
        record.level1_flushed = true;
        send(Answer{.type = ATP_TYPE_FLUSH,
                    .scale = header.scale,
                    .cause = cause,
                    .hop = 1,
                    .seq = record.seq,
                    .units = membership_.all_units()},
             counters_.flushes);
    }
    // With BYPASS at hop 0, the worker itself chose to pass the switch (H91). The switch may hold the numbers of all
    // others.
    const bool collided = (header.flags & ATP_FLAG_COLLISION) != 0;
    const bool passed_by_choice = header.hop == 0 && (header.flags & ATP_FLAG_BYPASS) != 0;
    if ((!collided && !passed_by_choice) || set.whole) return;
    const unsigned unit = set.unit();
    const std::uint32_t missing = members_to_send(record, unit) & ~records_.included(record)[unit];
    if (missing == 0 || membership_.unit(unit).direct) return;
    // After a choice, another job may still have the aggregator. A COLLISION then tells that its FLUSH found nothing.
    std::uint32_t& flushed = collided ? record.flushed_units : record.passed_units;
    if (((record.flushed_units | flushed) & set.units) != 0) return;
    flushed |= set.units;
    send(Answer{.type = ATP_TYPE_FLUSH,
                .scale = header.scale,
                .cause = cause,
                .hop = 0,
                .seq = record.seq,
                .members = missing,
                .units = set.units},
         counters_.flushes);
}

void Server::finish(Record& record, AnswerQueue::Cause last) {
    record.without_owner = lacks_owner_only(record);
    freeze(record);
    ++counters_.completed;
    counters_.added_here += record.merges;
    counters_.collided += record.collision ? 1 : 0;
    counters_.marked += record.ecn || record.ecn_down ? 1 : 0;
    send_result(record, last);
    while (true) {
        const Record& first = records_.at(base_);
        if (first.state != State::complete || first.seq != base_) break;
        if (config_.channel.slot(++base_) == 0) ready_.advance(base_);
    }
    find_lost(record);
}

void Server::freeze(Record& record) {
    record.state = State::complete;
    // All ACKs of seq carry the index for seq + W, and a worker needs one of them to send seq + W. All workers
    // therefore use the same index (H11, docs/spec/hazards.md#h11).
    const auto [next_index, moved] = indices_.next(record.seq, record.index, record.collision);
    record.next_index = next_index;
    counters_.remapped += moved ? 1 : 0;
    std::ranges::fill(records_.notified(record), 0U);
    if (config_.channel.audit) {
        record.audit_lane = result_audit(records_.included(record), config_.channel, record.seq, membership_);
    }
    write_result(records_, record, inverse_scale(record.scale));
    records_.drop_sums(record);
}

void Server::handle_probe(const atp_header& header, Time now) {
    if (header.worker >= membership_.workers() || !has_delivery(header)) {
        ++counters_.refused;
        return;
    }
    if (Record* done = retained(header.seq)) {
        answer_again(*done, header, now);
        return;
    }
    Record* record = record_in_progress(header.seq);
    if (record == nullptr) return;
    forget_if_owned(*record, header);
    if (!record->mismatched && !adopt_delivery(*record, header)) {
        ++counters_.mismatched;
        return notify_mismatch(*record, header, {}, now);
    }
    if (record->delivery.one_sender && !record->mismatched) return answer_probe_of_one_sender(*record, header, now);
    const Place& place = membership_.place(header.worker);
    const std::uint32_t bit = 1U << place.member;
    const std::span<const std::uint32_t> in = records_.included(*record);
    const std::span<std::uint32_t> sent = records_.sent(*record);
    sent[place.unit] |= bit;

    // In mode aggregated, the sender of the PROBE waits for workers that have not sent. If all workers have sent, a
    // packet was lost.
    std::uint32_t unsent_unit = 0;
    std::uint32_t unsent_members = 0;
    for (unsigned unit = 0; unit < membership_.units() && unsent_members == 0; ++unit) {
        unsent_members = members_to_send(*record, unit) & ~in[unit] & ~sent[unit];
        unsent_unit = 1U << unit;
    }
    const bool sends_scale = record->unscaled && record->count == membership_.workers();
    const bool asker_missing = sends_scale || (members_to_send(*record, place.unit) & ~in[place.unit] & bit) != 0;
    if (ATP_BREAK(lost_waits) && record->lost) unsent_members = bit;
    if (asker_missing && !record->mismatched && (unsent_members == 0 || record->mode != Mode::aggregated)) {
        // Recent answers did not arrive. The worker's timer limits its PROBEs, so each of them gets a NACK.
        (void)not_yet_notified(*record, place.unit, bit, now);
        ask(*record, header, place.unit, bit, header.worker);
        return;
    }
    send(Answer{.type = ATP_TYPE_WAIT,
                .worker = header.worker,
                .cause = AnswerQueue::cause_of(header),
                .seq = header.seq,
                .members = unsent_members,
                .units = unsent_members == 0 ? 0 : unsent_unit},
         counters_.waits);
}

void Server::ask_missing(Record& record, const atp_header& header, Time now, const WorkerSet& except) {
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        std::uint32_t missing = members_to_send(record, unit) & ~records_.included(record)[unit];
        if ((except.units >> unit & 1U) != 0) missing &= ~except.members_of(unit, membership_);
        const std::uint32_t asked = not_yet_notified(record, unit, missing, now);
        if (asked != 0) ask(record, header, unit, asked, ATP_WORKER_ALL);
    }
}

void Server::ask(Record& record, const atp_header& header, unsigned unit, std::uint32_t members, std::uint16_t worker) {
    if (ATP_BREAK(no_nack)) return;
    const bool floats = record.mode == Mode::floats;
    send(Answer{.type = ATP_TYPE_NACK,
                .requested = static_cast<std::uint8_t>(floats ? ATP_DTYPE_FLOAT32 : ATP_DTYPE_INT32),
                .flags = static_cast<std::uint16_t>(record.mode == Mode::aggregated ? 0 : ATP_FLAG_BYPASS),
                .worker = worker,
                .cause = AnswerQueue::cause_of(header),
                .seq = record.seq,
                .members = members,
                .units = 1U << unit},
         counters_.nacks);
}

void Server::send(const Answer& answer, std::uint64_t& counter) {
    if (answers_.push(answer)) {
        ++counter;
    } else {
        ++counters_.unsent;
    }
}

std::optional<ServerTransmit> Server::poll_transmit(std::span<std::byte> buffer) {
    while (!answers_.empty()) {
        if (buffer.size() < packet_bytes()) return std::nullopt;
        const Answer answer = answers_.front();
        const Record& record = records_.at(answer.seq);
        if (!AnswerQueue::is_current(answer, record)) {
            answers_.pop();
            answer_packet_ = 0;
            continue;
        }
        const bool with_result = answer.type == ATP_TYPE_ACK && !answer.without_lanes;
        atp_header header = answers_.header_of(answer, record);
        const bool to_all = answer.worker == ATP_WORKER_ALL;
        if ((ATP_BREAK(mark_for_one) && to_all) || (ATP_BREAK(mark_lost_in_repeat) && !to_all))
            header.flags = static_cast<std::uint16_t>(header.flags & ~(ATP_FLAG_ECN | ATP_FLAG_ECN_DOWN));
        header.part = static_cast<std::uint8_t>(answer_packet_ << ATP_PART_PACKET_SHIFT);
        wire::encode_header(header, buffer);
        const std::span<std::byte> words = buffer.subspan(ATP_HEADER_BYTES);
        const std::size_t bytes = with_result ? records_.copy_result(record, answer_packet_, words) : 0;
        if (!with_result || ++answer_packet_ == records_.result_packets(record)) {
            answers_.pop();
            answer_packet_ = 0;
        }
        return ServerTransmit{.size = ATP_HEADER_BYTES + bytes, .worker = answer.worker, .units = answer.units};
    }
    return std::nullopt;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
