// SPDX-License-Identifier: Apache-2.0
#include "protocol/server.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <new>

#include "numeric/lanes16.h"
#include "numeric/lanes32_sums.h"
#include "protocol/sequence.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

// A slot moves to another aggregator if it collided in two of its last three rounds. One collision can be transient.
// Two jobs that alternate at one index both reach the threshold, so neither waits for the other (H12,
// docs/protocol.md#h12).
constexpr std::uint8_t heat_of_collision = 2;
constexpr std::uint8_t heat_to_move = 3;
// Candidates tried to find an index that no other slot of the channel uses.
constexpr unsigned index_candidates = 4;

bool single_bit(std::uint32_t bits) { return std::has_single_bit(bits); }

unsigned lowest(std::uint32_t bits) { return static_cast<unsigned>(std::countr_zero(bits)); }

bool is_plain(const atp_header& header) { return (header.flags & ATP_FLAG_PLAIN) != 0; }

bool is_short(const atp_header& header) { return header.dtype == ATP_DTYPE_INT16; }

unsigned population(std::uint32_t bits) { return static_cast<unsigned>(std::popcount(bits)); }

template <class Visit>
void for_each_bit(std::uint32_t bits, Visit visit) {
    for (; bits != 0; bits &= bits - 1) visit(lowest(bits));
}

// Not written here: otherwise clients that open and close servers would keep a switch busy with clearing memory.
template <class Element>
Element* claim_pages(std::size_t count) {
    void* memory = std::calloc(std::max<std::size_t>(count, 1), sizeof(Element));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<Element*>(memory);
}

std::size_t outbox_capacity(const ServerConfig& config, const Membership& membership) {
    // A round of ACKs, and for a few fragments a request to every unit at every level.
    return 2U * config.channel.window() + 8U * membership.units() + 64U;
}

}  // namespace

Server::Server(const ServerConfig& config, const Membership& membership)
    : config_(config),
      membership_(membership),
      base_(config.channel.first_seq),
      records_(2U * config.channel.window()),
      in_(records_.size() * membership.units()),
      sent_(in_.size()),
      told_(in_.size()),
      sums_(claim_pages<std::int64_t>(records_.size() * config.channel.lanes)),
      exact_(claim_pages<numeric::ExactLane>(records_.size() * config.channel.lanes)),
      results_(claim_pages<std::byte>(records_.size() * config.channel.lanes * ATP_LANE_BYTES)),
      attempts_(config.channel.window()),
      heat_(config.channel.window()),
      outbox_(outbox_capacity(config, membership)) {}

std::size_t Server::packet_bytes() const {
    return ATP_HEADER_BYTES + std::size_t{config_.channel.lanes} * ATP_LANE_BYTES;
}

void Server::handle_packet(std::span<std::byte> bytes, bool congested, Time now) {
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
    } else {
        ++counters_.refused;
    }
}

// The complete record of seq while a worker may still request it, or nullptr.
Server::Record* Server::retained(std::uint32_t seq) {
    Record& record = records_[seq % records_.size()];
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
    Record& record = records_[seq % records_.size()];
    if (record.state == State::gathering) {
        assert(record.seq == seq);
        return &record;
    }
    open(record, seq);
    return &record;
}

void Server::open(Record& record, std::uint32_t seq) {
    record = Record{};
    record.seq = seq;
    record.state = State::gathering;
    record.index = config_.channel.index(seq, attempts_[config_.channel.slot(seq)]);
    std::fill_n(row(in_, record), membership_.units(), 0U);
    std::fill_n(row(sent_, record), membership_.units(), 0U);
    std::fill_n(row(told_, record), membership_.units(), 0U);
}

// Workers that the packet covers. Nothing if it names workers or a shape that this job does not have.
std::optional<Server::Set> Server::set_of(const wire::Packet& packet) const {
    const atp_header& header = packet.header;
    Set set{.units = header.bitmap1, .members = header.bitmap0, .whole = (header.flags & ATP_FLAG_WHOLE) != 0};
    if ((set.units & ~membership_.all_units()) != 0 || set.units == 0) return std::nullopt;
    if (packet.lane_count() <= audit_lanes() || lanes_of(packet) > config_.channel.lanes) return std::nullopt;
    if (((header.flags & ATP_FLAG_AUDIT) != 0) != config_.channel.audit) return std::nullopt;
    if (is_plain(header) && header.dtype != ATP_DTYPE_INT32) return std::nullopt;
    if (set.whole) return set;
    if (!single_bit(set.units)) return std::nullopt;
    if (set.members == 0 || (set.members & ~membership_.unit_mask(lowest(set.units))) != 0) return std::nullopt;
    return set;
}

std::uint32_t Server::members_of(const Set& set, unsigned unit) const {
    if ((set.units >> unit & 1U) == 0) return 0;
    return set.whole ? membership_.unit_mask(unit) : set.members;
}

std::uint32_t Server::count_of(const Set& set) const {
    std::uint32_t count = 0;
    for_each_bit(set.units, [&](unsigned unit) { count += population(members_of(set, unit)); });
    return count;
}

bool Server::audit_holds(const wire::Packet& packet, const Set& set) const {
    if (!config_.channel.audit) return true;
    std::uint32_t expected = 0;
    for_each_bit(set.units, [&](unsigned unit) {
        for_each_bit(members_of(set, unit), [&](unsigned member) {
            expected += config_.channel.audit_of(packet.header.seq, membership_.rank_of(unit, member));
        });
    });
    return expected == wire::load_u32(packet.lanes.last(ATP_LANE_BYTES).data());
}

// Relation of the packet's set to the included set. In any order and with any losses, an accepted set is disjoint or
// a superset.
Server::Relation Server::relation(const Record& record, const Set& set) const {
    bool any_common = false;
    bool any_new = false;
    bool any_left_out = false;
    const std::uint32_t* in = row(in_, record);
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        const std::uint32_t members = members_of(set, unit);
        any_common |= (members & in[unit]) != 0;
        any_new |= (members & ~in[unit]) != 0;
        any_left_out |= (in[unit] & ~members) != 0;
    }
    if (!any_common) return Relation::disjoint;
    if (!any_new) return Relation::inside;
    return any_left_out ? Relation::overlaps : Relation::contains;
}

void Server::handle_gradient(const wire::Packet& packet, Time now) {
    const atp_header& header = packet.header;
    const std::optional<Set> set = set_of(packet);
    if (!set) {
        ++counters_.refused;
        return;
    }
    if (Record* done = retained(header.seq)) {
        ++counters_.duplicates;
        if ((header.flags & ATP_FLAG_RESEND) != 0) answer_again(*done, header.worker, now);
        return;
    }
    Record* record = record_in_progress(header.seq);
    if (record == nullptr) return;
    if (record->mismatched || differs(*record, packet)) {
        ++counters_.mismatched;
        tell_mismatch(*record, *set, now);
        return;
    }
    ++counters_.gradients;
    record->ecn |= (header.flags & ATP_FLAG_ECN) != 0;
    record->collision |= (header.flags & ATP_FLAG_COLLISION) != 0;

    merge(*record, packet, *set, now);
    if (record->count == membership_.workers()) {
        finish(*record);
    } else {
        fetch_from_switches(*record, header, *set);
    }
}

void Server::merge(Record& record, const wire::Packet& packet, const Set& set, Time now) {
    if (packet.header.dtype == ATP_DTYPE_FLOAT32) {
        merge_floats(record, packet, set, now);
    } else {
        merge_integers(record, packet, set, now);
    }
    // The first included packet decides for the record.
    if (record.count == 0) return;
    record.plain = is_plain(packet.header);
    record.shorts = is_short(packet.header);
    record.scale = packet.header.scale;
    record.lanes = static_cast<std::uint16_t>(lanes_of(packet));
    record.purpose = packet.header.argument;
}

// Another kind, number of lanes, scale or purpose: the sum would have no meaning.
bool Server::differs(const Record& record, const wire::Packet& packet) const {
    return record.count != 0 && (record.plain != is_plain(packet.header) || record.lanes != lanes_of(packet) ||
                                 record.scale != packet.header.scale ||
                                 (record.purpose != packet.header.argument && !ATP_BREAK(mix_purposes)));
}

// The fragment can never complete, so the server tells all workers. The sender of this packet has not received an
// earlier WAIT, so it gets one even within the repeat interval.
void Server::tell_mismatch(Record& record, const Set& set, Time now) {
    record.mismatched = true;
    for_each_bit(set.units, [&](unsigned unit) { row(told_, record)[unit] &= ~members_of(set, unit); });
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        if (not_yet_told(record, unit, membership_.unit_mask(unit), now) == 0) continue;
        send(Answer{.type = ATP_TYPE_WAIT, .seq = record.seq, .units = 1U << unit}, counters_.waits);
    }
}

void Server::merge_integers(Record& record, const wire::Packet& packet, const Set& set, Time now) {
    if (record.mode == Mode::floats && !ATP_BREAK(mix_modes)) {
        // The sender has not received an earlier NACK, so it gets one even within the repeat interval.
        if (!set.whole) row(told_, record)[lowest(set.units)] &= ~set.members;
        ask_missing(record, now);
        return;
    }
    if ((packet.header.flags & ATP_FLAG_OVERFLOW) != 0 && !ATP_BREAK(trust_overflowed_lanes)) {
        ++counters_.overflowed;
        raise_mode(record, Mode::singly, now);
        ask_missing(record, now);
        return;
    }
    if (!audit_holds(packet, set)) {
        ++counters_.audit_failures;
        return;
    }
    const std::span<std::int64_t> sums = sums_of(record).first(payload_of(lanes_of(packet)));
    Relation found = relation(record, set);
    if (ATP_BREAK(merge_overlapping) && found == Relation::overlaps) found = Relation::disjoint;
    if (ATP_BREAK(replace_smaller) && found == Relation::inside) found = Relation::contains;
    switch (found) {
        case Relation::disjoint:
            if (record.count == 0) {
                assign(record, packet, set);
            } else {
                const auto add = is_short(packet.header) ? numeric::sums_add_shorts : numeric::sums_add;
                add(packet.lanes.data(), sums.size(), sums.data());
                ++record.merges;
            }
            mark_in(record, set, false);
            break;
        case Relation::contains:
            ++counters_.replaced;
            assign(record, packet, set);
            record.merges = 0;
            mark_in(record, set, true);
            break;
        case Relation::inside: ++counters_.duplicates; break;
        case Relation::overlaps:
            ++counters_.overlapping;
            ask_missing(record, now);
            break;
    }
}

// This packet becomes the included set. Usually it is the sum of all workers and needs no wider accumulator.
void Server::assign(Record& record, const wire::Packet& packet, const Set& set) {
    const std::size_t elements = payload_of(lanes_of(packet));
    const std::byte* lanes = packet.lanes.data();
    const bool is_whole = count_of(set) == membership_.workers();
    record.converted = is_whole && !is_plain(packet.header);
    if (is_whole && is_short(packet.header)) {
        std::copy_n(lanes, elements * numeric::short_bytes, result_of(record).data());
    } else if (record.converted) {
        numeric::lanes_to_floats(lanes, elements, inverse_scale(packet.header.scale), result_of(record).data());
    } else if (is_short(packet.header)) {
        numeric::sums_assign_shorts(lanes, elements, sums_of(record).data());
    } else {
        numeric::sums_assign(lanes, elements, sums_of(record).data());
    }
}

// A packet of floats is from one worker. The exact sum does not depend on their order.
void Server::merge_floats(Record& record, const wire::Packet& packet, const Set& set, Time now) {
    if (set.whole || !single_bit(set.members)) {
        ++counters_.refused;
        return;
    }
    if (!audit_holds(packet, set)) {
        ++counters_.audit_failures;
        return;
    }
    const bool first = record.mode != Mode::floats;
    raise_mode(record, Mode::floats, now);
    if (relation(record, set) != Relation::disjoint) {
        ++counters_.duplicates;
        return;
    }
    numeric::exact_add(packet.lanes.data(), payload_of(packet.lane_count()), exact_of(record).data());
    record.merges += record.count == 0 ? 0 : 1;
    mark_in(record, set, false);
    if (first) ask_missing(record, now);
}

void Server::mark_in(Record& record, const Set& set, bool replace) {
    std::uint32_t* in = row(in_, record);
    if (replace) {
        std::fill_n(in, membership_.units(), 0U);
        record.count = 0;
    }
    for_each_bit(set.units, [&](unsigned unit) { in[unit] |= members_of(set, unit); });
    record.count += count_of(set);
}

// Answers of a lower mode do not apply to this one, so all workers may be told again. Included integers stay valid in
// Mode::singly. Floats start from zero.
void Server::raise_mode(Record& record, Mode mode, Time now) {
    if (record.mode >= mode) return;
    record.mode = mode;
    record.told_until = now;
    if (mode != Mode::floats) return;
    ++counters_.float_fragments;
    std::fill_n(row(in_, record), membership_.units(), 0U);
    record.count = 0;
    record.merges = 0;
    std::ranges::fill(exact_of(record), numeric::ExactLane{});
}

// A packet that bypassed a switch's aggregator proves that this aggregator can never complete. A FLUSH fetches the
// rest of the fragment from there at once. The switch forwards later packets (H7, H14, docs/protocol.md#h7).
void Server::fetch_from_switches(Record& record, const atp_header& header, const Set& set) {
    if ((header.flags & (ATP_FLAG_BYPASS | ATP_FLAG_RESEND)) == 0 || record.mode != Mode::aggregated) return;
    if (membership_.units() > 1 && !record.level1_flushed) {
        record.level1_flushed = true;
        send(Answer{.type = ATP_TYPE_FLUSH,
                    .scale = header.scale,
                    .hop = 1,
                    .seq = record.seq,
                    .units = membership_.all_units()},
             counters_.flushes);
    }
    if ((header.flags & ATP_FLAG_COLLISION) == 0 || set.whole) return;
    const unsigned unit = lowest(set.units);
    const std::uint32_t missing = membership_.unit_mask(unit) & ~row(in_, record)[unit];
    if (missing == 0 || membership_.unit(unit).direct || (record.flushed_units & set.units) != 0) return;
    record.flushed_units |= set.units;
    send(Answer{.type = ATP_TYPE_FLUSH,
                .scale = header.scale,
                .hop = 0,
                .seq = record.seq,
                .members = missing,
                .units = set.units},
         counters_.flushes);
}

void Server::finish(Record& record) {
    freeze(record);
    ++counters_.completed;
    counters_.added_here += record.merges;
    counters_.collided += record.collision ? 1 : 0;
    counters_.marked += record.ecn ? 1 : 0;
    send(Answer{.type = ATP_TYPE_ACK, .seq = record.seq, .units = membership_.all_units()}, counters_.acks);
    while (true) {
        const Record& first = records_[base_ % records_.size()];
        if (first.state != State::complete || first.seq != base_) break;
        ++base_;
    }
}

void Server::freeze(Record& record) {
    record.state = State::complete;
    record.next_index = choose_next_index(record);
    std::fill_n(row(told_, record), membership_.units(), 0U);
    const std::span<std::byte> result = result_of(record);
    const std::size_t lanes = payload_of(record.lanes);
    if (record.plain) {
        numeric::sums_to_integers(sums_of(record).data(), lanes, result.data());
    } else if (record.mode == Mode::floats) {
        numeric::exact_round(exact_of(record).data(), lanes, result.data());
    } else if (record.converted) {
        record.short_result = record.shorts;  // assign() wrote the result
    } else if (record.shorts && numeric::sums_to_shorts(sums_of(record).data(), lanes, result.data())) {
        record.short_result = true;
    } else {
        numeric::sums_to_floats(sums_of(record).data(), lanes, inverse_scale(record.scale), result.data());
    }
    // The audit lane of an ACK has no meaning. It may hold data of an earlier, longer fragment, so clear it.
    const std::size_t audit_at = (result_lanes(record) - audit_lanes()) * ATP_LANE_BYTES;
    std::ranges::fill(result.subspan(audit_at, audit_lanes() * ATP_LANE_BYTES), std::byte{0});
}

std::size_t Server::lanes_of(const wire::Packet& packet) const {
    const std::size_t payload = payload_of(packet.lane_count());
    return (is_short(packet.header) ? 2 * payload : payload) + audit_lanes();
}

// The index for seq + W. All ACKs of seq carry the same index, and a worker needs one of them to send seq + W. All
// workers therefore use the same index (H11, docs/protocol.md#h11).
std::uint32_t Server::choose_next_index(const Record& record) {
    const std::uint32_t slot = config_.channel.slot(record.seq);
    std::uint8_t& heat = heat_[slot];
    if (!record.collision) {
        heat = static_cast<std::uint8_t>(heat == 0 ? 0 : heat - 1);
        return record.index;
    }
    heat = static_cast<std::uint8_t>(heat + heat_of_collision);
    if (heat < heat_to_move) return record.index;
    heat = 0;
    ++counters_.remapped;
    std::uint32_t index = 0;
    for (unsigned candidate = 0; candidate < index_candidates; ++candidate) {
        index = config_.channel.index(record.seq, ++attempts_[slot]);
        if (!index_in_use(index, slot)) break;
    }
    return index;
}

bool Server::index_in_use(std::uint32_t index, std::uint32_t except_slot) const {
    for (std::uint32_t slot = 0; slot < config_.channel.window(); ++slot) {
        if (slot != except_slot && config_.channel.index(slot, attempts_[slot]) == index) return true;
    }
    return false;
}

void Server::handle_probe(const atp_header& header, Time now) {
    if (header.worker >= membership_.workers()) {
        ++counters_.refused;
        return;
    }
    if (Record* done = retained(header.seq)) {
        answer_again(*done, header.worker, now);
        return;
    }
    Record* record = record_in_progress(header.seq);
    if (record == nullptr) return;
    const Place& place = membership_.place(header.worker);
    const std::uint32_t bit = 1U << place.member;
    row(sent_, *record)[place.unit] |= bit;

    // In mode aggregated the asker waits for workers that have not sent. If all workers have sent, a packet was lost.
    std::uint32_t unsent_unit = 0;
    std::uint32_t unsent_members = 0;
    for (unsigned unit = 0; unit < membership_.units() && unsent_members == 0; ++unit) {
        unsent_members = membership_.unit_mask(unit) & ~row(in_, *record)[unit] & ~row(sent_, *record)[unit];
        unsent_unit = 1U << unit;
    }
    const bool asker_missing = (row(in_, *record)[place.unit] & bit) == 0;
    if (asker_missing && !record->mismatched && (unsent_members == 0 || record->mode != Mode::aggregated)) {
        // Recent answers did not arrive. The worker's timer limits its PROBEs, so each of them gets a NACK.
        (void)not_yet_told(*record, place.unit, bit, now);
        ask(*record, place.unit, bit, header.worker);
        return;
    }
    send(Answer{.type = ATP_TYPE_WAIT,
                .worker = header.worker,
                .seq = header.seq,
                .members = unsent_members,
                .units = unsent_members == 0 ? 0 : unsent_unit},
         counters_.waits);
}

void Server::ask_missing(Record& record, Time now) {
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        const std::uint32_t missing = membership_.unit_mask(unit) & ~row(in_, record)[unit];
        const std::uint32_t asked = not_yet_told(record, unit, missing, now);
        if (asked != 0) ask(record, unit, asked, ATP_WORKER_ALL);
    }
}

void Server::ask(Record& record, unsigned unit, std::uint32_t members, std::uint16_t worker) {
    if (ATP_BREAK(no_nack)) return;
    const bool floats = record.mode == Mode::floats;
    send(Answer{.type = ATP_TYPE_NACK,
                .dtype = static_cast<std::uint8_t>(floats ? ATP_DTYPE_FLOAT32 : ATP_DTYPE_INT32),
                .flags = static_cast<std::uint16_t>(record.mode == Mode::aggregated ? 0 : ATP_FLAG_BYPASS),
                .worker = worker,
                .seq = record.seq,
                .members = members,
                .units = 1U << unit},
         counters_.nacks);
}

// Only the late worker gets the result again (H4, docs/protocol.md#h4).
void Server::answer_again(Record& record, std::uint16_t rank, Time now) {
    if (rank >= membership_.workers() || ATP_BREAK(no_reack)) return;
    const Place& place = membership_.place(rank);
    const std::uint32_t bit = 1U << place.member;
    if (not_yet_told(record, place.unit, bit, now) == 0) return;
    send(Answer{.type = ATP_TYPE_ACK, .worker = rank, .seq = record.seq, .members = bit, .units = 1U << place.unit},
         counters_.reacks);
}

// Those of `members` without an answer in this repeat interval. It marks them as answered.
std::uint32_t Server::not_yet_told(Record& record, unsigned unit, std::uint32_t members, Time now) {
    if (now >= record.told_until) {
        std::fill_n(row(told_, record), membership_.units(), 0U);
        record.told_until = now + config_.repeat_interval;
    }
    std::uint32_t& told = row(told_, record)[unit];
    const std::uint32_t fresh = members & ~told;
    told |= fresh;
    return fresh;
}

void Server::send(const Answer& answer, std::uint64_t& counter) {
    if (outbox_.push(answer)) {
        ++counter;
    } else {
        ++counters_.unsent;
    }
}

std::optional<ServerTransmit> Server::poll_transmit(std::span<std::byte> buffer) {
    while (!outbox_.empty()) {
        const Answer answer = outbox_.front();
        outbox_.pop();
        const Record& record = records_[answer.seq % records_.size()];
        if (record.seq != answer.seq) continue;  // a newer fragment has replaced it
        const bool with_result = answer.type == ATP_TYPE_ACK;
        if (with_result != (record.state == State::complete)) continue;
        const std::size_t lane_bytes = with_result ? result_lanes(record) * ATP_LANE_BYTES : 0;
        if (buffer.size() < ATP_HEADER_BYTES + lane_bytes) return std::nullopt;

        const ChannelConfig& channel = config_.channel;
        std::uint16_t flags = answer.flags;
        std::uint8_t dtype = answer.dtype;
        std::uint32_t argument = with_result ? record.next_index : 0;
        if (answer.type == ATP_TYPE_WAIT && record.mismatched) argument = ATP_WAIT_MISMATCHED;
        if (with_result) dtype = result_dtype(record);
        if (with_result && record.plain) flags |= ATP_FLAG_PLAIN;
        if (with_result && record.ecn) flags |= ATP_FLAG_ECN;
        if (with_result && channel.audit) flags |= ATP_FLAG_AUDIT;
        const atp_header header{
            .version = ATP_VERSION,
            .type = answer.type,
            .flags = flags,
            .hop = answer.hop,
            .dtype = dtype,
            .window_log2 = channel.window_log2,
            .scale = with_result ? record.scale : answer.scale,
            .job = channel.job,
            .token = channel.token,
            .channel = channel.channel,
            .worker = answer.worker,
            .seq = answer.seq,
            .index = record.index,
            .argument = argument,
            .bitmap0 = answer.members,
            .mask0 = single_bit(answer.units) ? membership_.unit_mask(lowest(answer.units)) : answer.members,
            .bitmap1 = answer.units,
            .mask1 = membership_.all_units(),
        };
        wire::encode_header(header, buffer);
        std::copy_n(result_of(record).data(), lane_bytes, buffer.data() + ATP_HEADER_BYTES);
        return ServerTransmit{.size = ATP_HEADER_BYTES + lane_bytes, .worker = answer.worker, .units = answer.units};
    }
    return std::nullopt;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
