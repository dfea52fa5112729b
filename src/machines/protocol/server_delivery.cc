// SPDX-License-Identifier: Apache-2.0
// Who sends a fragment and who gets its result: deliveries, READYs, answers.
#include <utility>

#include "protocol/fragment_sum.h"
#include "protocol/sequence.h"
#include "protocol/server.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

// False: the gradient or PROBE has an owner that this job does not have, or one sender without an owner.
bool Server::has_delivery(const atp_header& header) const {
    const Delivery delivery = Delivery::of(header);
    return delivery.is_owned() ? delivery.owner < membership_.workers() : !delivery.one_sender;
}

// False: the gradient has one sender, but not its lanes alone. Or it has the owner of a sum and others, or no worker.
bool Server::delivers(const wire::Packet& packet, const WorkerSet& set) const {
    const Delivery delivery = Delivery::of(packet.header);
    if (!delivery.one_sender) {
        const bool with_owner = !set.whole && set.units == set.home_unit && (set.members & set.home_member) != 0;
        return !set.whole ? !with_owner || set.is_home_alone() : set.count(membership_) != 0;
    }
    const bool is_plain = (packet.header.flags & ATP_FLAG_PLAIN) != 0;
    const bool is_alone = (packet.header.flags & ATP_FLAG_BYPASS) != 0 && set.single_worker();
    if (!is_plain || !is_alone) return false;
    const Place& owner = membership_.place(delivery.owner);
    return set.unit() == owner.unit && set.members == 1U << owner.member;
}

// The first gradient or PROBE decides for the record. False: this packet differs, so workers run different operations.
bool Server::adopt_delivery(Record& record, const atp_header& header) const {
    const Delivery delivery = Delivery::of(header);
    if (!std::exchange(record.known, true)) record.delivery = delivery;
    return record.delivery == delivery;
}

bool Server::is_complete(const Record& record) {
    if (record.unscaled) return false;
    if (record.delivery.one_sender) {
        return record.count == 1 && (ready_.all_take(record.seq) || ATP_BREAK(complete_without_ready));
    }
    if (record.count == membership_.workers()) return true;
    return owner_is_home(record) && lacks_owner_only(record) && sums_fit_form(records_, record);
}

// A READY for more than a window is from a time before this server.
void Server::handle_ready(const atp_header& header, Time now) {
    const std::int32_t ahead = distance(base_, header.argument);
    if (header.worker >= membership_.workers()) {
        ++counters_.refused;
        return;
    }
    if (ahead <= 0 || ahead > static_cast<std::int32_t>(config_.channel.window())) {
        ++(ahead <= 0 ? counters_.stale : counters_.ahead);
        return;
    }
    ++counters_.readies;
    std::uint32_t seq = ready_.note(header.worker, header.argument);
    for (seq = before(seq, base_) ? base_ : seq; before(seq, header.argument); ++seq) {
        Record& record = records_.at(seq);
        const bool waits = record.seq == seq && record.state == State::gathering && !record.mismatched;
        if (waits && record.delivery.is_owned()) resume_with_owner(record, header, now);
    }
}

// Without lanes, the sender is late, or its gradient was lost. With lanes, the fragment waits for a worker that has
// not called the operation yet, or whose READY was lost. That worker repeats its READY at its own timer.
void Server::answer_probe_of_one_sender(Record& record, const atp_header& header, Time now) {
    const Place& owner = membership_.place(record.delivery.owner);
    Answer wait{.type = ATP_TYPE_WAIT,
                .worker = header.worker,
                .cause = AnswerQueue::cause_of(header),
                .seq = record.seq,
                .members = 1U << owner.member,
                .units = 1U << owner.unit};
    if (record.count == 0 && header.worker == record.delivery.owner) {
        (void)not_yet_notified(record, owner.unit, wait.members, now);
        return ask(record, header, owner.unit, wait.members, header.worker);
    }
    for (unsigned unit = 0; unit < membership_.units() && record.count != 0; ++unit) {
        wait.members = 0;
        wait.units = 1U << unit;
        for_each_bit(membership_.unit_mask(unit), [&](unsigned member) {
            if (!ready_.takes(membership_.rank_of(unit, member), record.seq)) wait.members |= 1U << member;
        });
        if (wait.members != 0) break;
    }
    send(wait, counters_.waits);
}

// The worker that differs from the others gets an ACK of its own: the owner of a sum has the lanes, the only sender has
// none.
void Server::send_result(const Record& record, AnswerQueue::Cause cause) {
    Answer to_all{.type = ATP_TYPE_ACK, .cause = cause, .seq = record.seq, .units = membership_.all_units()};
    if (ATP_BREAK(mark_for_one) && cause.worker < membership_.workers() && (record.ecn || record.ecn_down)) {
        const Place& place = membership_.place(cause.worker);
        send(Answer{.type = ATP_TYPE_ACK,
                    .worker = cause.worker,
                    .cause = cause,
                    .seq = record.seq,
                    .members = 1U << place.member,
                    .units = 1U << place.unit},
             counters_.acks);
    }
    if (record.delivery.is_owned()) {
        const Place& owner = membership_.place(record.delivery.owner);
        Answer to_owner = to_all;
        to_owner.worker = record.delivery.owner;
        to_owner.members = 1U << owner.member;
        to_owner.units = 1U << owner.unit;
        to_owner.without_lanes = record.delivery.one_sender;
        to_all.without_lanes = !record.delivery.one_sender;
        send(to_owner, counters_.acks);
    }
    send(to_all, counters_.acks);
}

// Only the late worker gets the result again (H4, docs/spec/hazards.md#h4). A worker spaces its PROBEs by itself, and
// where round trips are short, by less than the repeat interval.
void Server::answer_again(Record& record, const atp_header& header, Time now) {
    const std::uint16_t rank = header.worker;
    if (rank >= membership_.workers() || ATP_BREAK(no_reack)) return;
    const Place& place = membership_.place(rank);
    const std::uint32_t bit = 1U << place.member;
    if (not_yet_notified(record, place.unit, bit, now) == 0 && header.type != ATP_TYPE_PROBE) return;
    if (ATP_BREAK(index_learned_again))
        record.next_index = indices_.next(record.seq, record.index, record.collision).index;
    send(Answer{.type = ATP_TYPE_ACK,
                .worker = rank,
                .cause = AnswerQueue::cause_of(header),
                .seq = record.seq,
                .members = bit,
                .units = 1U << place.unit,
                .without_lanes = !record.delivery.receives(rank)},
         counters_.reacks);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
