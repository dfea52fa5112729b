// SPDX-License-Identifier: Apache-2.0
// Sums whose owner adds its own numbers at home (docs/spec/owners.md).

#include "protocol/fragment_sum.h"
#include "protocol/server.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

// The worker that may add its numbers at home; nullptr: all workers send.
const Place* Server::home_of(const Delivery& delivery) const {
    const bool has_home = delivery.is_owned() && !delivery.one_sender && membership_.workers() > 1;
    return has_home ? &membership_.place(delivery.owner) : nullptr;
}

// The fragment needs no numbers of its owner, whose READY promises that it has integers.
bool Server::owner_is_home(const Record& record) const {
    return home_of(record.delivery) != nullptr && record.mode != Mode::floats && !record.asks_owner &&
           ready_.takes(record.delivery.owner, record.seq);
}

bool Server::lacks_owner_only(const Record& record) {
    const Place* home = home_of(record.delivery);
    return home != nullptr && record.count + 1 == membership_.workers() &&
           (records_.included(record)[home->unit] >> home->member & 1U) == 0;
}

// Members of a unit whose numbers the fragment needs.
std::uint32_t Server::members_to_send(const Record& record, unsigned unit) const {
    const std::uint32_t members = membership_.unit_mask(unit);
    const Place* home = home_of(record.delivery);
    return home != nullptr && home->unit == unit && owner_is_home(record) ? members & ~(1U << home->member) : members;
}

// Integers of all others that do not fit the form of the fragment cannot go to the owner. So its own must come here.
void Server::require_owner(Record& record, const atp_header& header, Time now) {
    if (record.mode == Mode::floats || record.asks_owner || !lacks_owner_only(record)) return;
    if (sums_fit_form(records_, record)) return;
    record.asks_owner = true;
    raise_mode(record, Mode::unaggregated, now);
    ask_missing(record, header, now);
}

// The owner has called the operation. If it got an earlier NACK, it could not answer.
void Server::resume_with_owner(Record& record, const atp_header& header, Time now) {
    if (is_complete(record)) return finish(record, AnswerQueue::cause_of(header));
    require_owner(record, header, now);
    const Place* home = home_of(record.delivery);
    if (home == nullptr || record.delivery.owner != header.worker || owner_is_home(record)) return;
    records_.notified(record)[home->unit] &= ~(1U << home->member);
    ask_missing(record, header, now);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
