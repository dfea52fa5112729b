// SPDX-License-Identifier: Apache-2.0
// Gradients that were lost (docs/spec/server.md#lost-gradients).
#include <bit>
#include <utility>

#include "protocol/sequence.h"
#include "protocol/server.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

// The result comes late, after a loss: no worker measures its round trip (H92).
constexpr AnswerQueue::Cause after_a_loss{.sending = 1};

}  // namespace

// Workers send in order. So three newer fragments that are complete prove that every worker has sent this one, too.
void Server::find_lost(const Record& completed) {
    completions_.advance(base_);
    if (completed.delivery.is_owned()) return;
    completions_.note_ack(completed.seq);
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
        // A FLUSH after a collision may have come before a gradient that then claimed the aggregator.
        const bool collided = std::exchange(record->level1_flushed, false);
        record->flushed_units = 0;
        fetch_lost(*record);
        if (collided) fetch_lost(*record);
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

// A switch does not keep the scale of its sums. Unless a gradient came first, the next one of a worker tells it.
bool Server::settle_scale(Record& record, wire::Packet& packet, Time now) {
    atp_header& header = packet.header;
    if (!record.lost || header.worker != ATP_WORKER_ALL) {
        forget_if_owned(record, header);
        if (record.unscaled && (!record.filled || record.purpose == header.argument)) {
            record.scale = header.scale;
            record.unscaled = false;
        }
        return true;
    }
    // The FLUSH left before a gradient or PROBE told that the fragment has an owner. A sum without it is of no use.
    if (record.known && Delivery::of(header) != record.delivery) {
        if (std::has_single_bit(header.bitmap1)) {
            ask_unit(record, header, static_cast<unsigned>(std::countr_zero(header.bitmap1)), now);
        }
        return false;
    }
    if (!record.filled) {
        record.unscaled = true;
    } else if (record.purpose == header.argument) {
        header.scale = record.scale;
    }
    return true;
}

// A sum that a switch returned names no owner, and of a fragment with one, its set of workers means something else.
void Server::forget_if_owned(Record& record, const atp_header& header) {
    if (!record.unscaled || !Delivery::of(header).is_owned()) return;
    records_.open(record.seq, record.index).lost = true;  // further sums of its FLUSHes are dropped
}

void Server::ask_for_lost(Record& record, const atp_header& header, const WorkerSet& set, Time now) {
    if (record.mode != Mode::aggregated || record.delivery.is_owned()) return;
    if (record.unscaled && record.count == membership_.workers()) return ask_for_scale(record, header, now);
    if (!set.whole) return ask_unit(record, header, set.unit(), now);
    fetch_lost(record);
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        if (membership_.unit(unit).direct) ask_unit(record, header, unit, now);
    }
}

// Nobody is missing, and nobody has told the scale of the sum.
void Server::ask_for_scale(Record& record, const atp_header& header, Time now) {
    const Place& first = membership_.place(0);
    const std::uint32_t asked = not_yet_notified(record, first.unit, 1U << first.member, now);
    if (asked != 0) ask(record, header, first.unit, asked, ATP_WORKER_ALL);
}

void Server::ask_unit(Record& record, const atp_header& header, unsigned unit, Time now) {
    const std::uint32_t missing = members_to_send(record, unit) & ~records_.included(record)[unit];
    const std::uint32_t asked = not_yet_notified(record, unit, missing, now);
    if (asked != 0) ask(record, header, unit, asked, ATP_WORKER_ALL);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
