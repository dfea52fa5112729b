// SPDX-License-Identifier: Apache-2.0
// Gradients that were lost (docs/spec/server.md#lost-gradients).
#include <bit>

#include "protocol/sequence.h"
#include "protocol/server.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

// The result comes late, after a loss: no worker measures its round trip (H92).
constexpr AnswerQueue::Cause after_a_loss{.sending = 1};

}  // namespace

// Workers send in order. So three newer fragments that are complete prove that every worker has sent this one, too.
void Server::find_lost(std::uint32_t completed) {
    completions_.note_ack(completed);
    completions_.advance(base_);
    while (const auto overtaken = completions_.poll()) {
        const std::uint32_t seq = overtaken->seq;
        if (before(seq, base_) || has_result(seq)) continue;
        Record* const record = record_in_progress(seq);
        if (record == nullptr || record->mismatched || record->mode != Mode::aggregated) continue;
        if (record->delivery.is_owned()) continue;
        record->lost = true;
        for (unsigned unit = 0; unit < membership_.units(); ++unit) {
            records_.sent(*record)[unit] = membership_.unit_mask(unit);
            if (ATP_BREAK(lost_is_included)) records_.included(*record)[unit] = membership_.unit_mask(unit);
        }
        fetch_lost(*record);
    }
}

// What switches hold tells who is missing.
void Server::fetch_lost(Record& record) {
    if (membership_.units() > 1 && !record.level1_flushed) {
        record.level1_flushed = true;
        send(Answer{.type = ATP_TYPE_FLUSH,
                    .scale = record.filled ? record.scale : scale_of_job,
                    .cause = after_a_loss,
                    .hop = 1,
                    .seq = record.seq,
                    .units = membership_.all_units()},
             counters_.flushes);
        return;
    }
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        const std::uint32_t missing = members_to_send(record, unit) & ~records_.included(record)[unit];
        if (missing != 0) flush_unit(record, unit, missing);
    }
}

void Server::flush_unit(Record& record, unsigned unit, std::uint32_t missing) {
    if (membership_.unit(unit).direct || (record.flushed_units >> unit & 1U) != 0) return;
    record.flushed_units |= 1U << unit;
    send(Answer{.type = ATP_TYPE_FLUSH,
                .scale = record.filled ? record.scale : scale_of_job,
                .cause = after_a_loss,
                .hop = 0,
                .seq = record.seq,
                .members = missing,
                .units = 1U << unit},
         counters_.flushes);
}

std::optional<std::uint8_t> Server::scale_of(std::uint32_t seq, std::uint32_t argument) {
    const Record& record = records_.at(seq);
    const bool is_known = record.seq == seq && record.state != State::idle && record.filled;
    // With an owner, the sum would be taken for one without: a FLUSH of a fragment without a gradient names none.
    if (!is_known || record.purpose != argument || record.delivery.is_owned()) return std::nullopt;
    return record.scale;
}

// A switch does not keep the scale. It keeps the argument, which depends on it, and which fragments of the same block
// have too.
bool Server::knows_scale(Record& record, wire::Packet& packet, Time now) {
    if (!record.lost || packet.header.worker != ATP_WORKER_ALL) return true;
    // The FLUSH was sent before a gradient or PROBE told what the fragment is. A sum that lacks its owner is of no use.
    const bool fits = !record.known || Delivery::of(packet.header) == record.delivery;
    if (fits && record.filled) {
        if (record.purpose == packet.header.argument) packet.header.scale = record.scale;
        return true;
    }
    for (std::uint32_t distance = 1; fits && distance < 4; ++distance) {
        for (const std::uint32_t seq : {record.seq - distance, record.seq + distance}) {
            const auto scale = scale_of(seq, packet.header.argument);
            if (!scale) continue;
            packet.header.scale = *scale;
            return true;
        }
    }
    // A fragment of another block than its neighbours.
    if (std::has_single_bit(packet.header.bitmap1)) {
        ask_unit(record, packet.header, static_cast<unsigned>(std::countr_zero(packet.header.bitmap1)), now);
    }
    return false;
}

void Server::ask_for_lost(Record& record, const atp_header& header, const WorkerSet& set, Time now) {
    if (record.mode != Mode::aggregated || record.delivery.is_owned()) return;
    if (!set.whole) return ask_unit(record, header, set.unit(), now);
    fetch_lost(record);
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        if (membership_.unit(unit).direct) ask_unit(record, header, unit, now);
    }
}

void Server::ask_unit(Record& record, const atp_header& header, unsigned unit, Time now) {
    const std::uint32_t missing = members_to_send(record, unit) & ~records_.included(record)[unit];
    const std::uint32_t asked = not_yet_notified(record, unit, missing, now);
    if (asked != 0) ask(record, header, unit, asked, ATP_WORKER_ALL);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
