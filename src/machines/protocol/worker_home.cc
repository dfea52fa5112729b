// SPDX-License-Identifier: Apache-2.0
// Sums for this worker: its own numbers stay at home, and are added to the sum of all others when that arrives.
#include <utility>

#include "protocol/worker.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

bool Worker::may_stay_home(const Delivery& delivery) const {
    return delivery.adds_at_home(config_.rank) && config_.senders.has_others();
}

// The ACK with lanes of a sum for this worker has the integers of all others, unless it says that it is whole.
bool Worker::lacks_own(const atp_header& ack) const {
    return delivery_of(ack.seq).adds_at_home(config_.rank) && (ack.flags & ATP_FLAG_WHOLE) == 0;
}

// A READY that passes the fragment promises that this worker has an integer for each element. So it scans the fragment
// first, sends one without integers as floats, and lets no READY pass that one until it has its ACK (H60,
// docs/spec/hazards.md#h60). Meanwhile it sends its later fragments too. A plain fragment always has integers. An
// owner also sends its first fragment of each operation: otherwise no server could tell that it runs another one (H40).
void Worker::start_at_home(std::uint32_t seq) {
    Slot& own = slot(seq);
    const Entry& operation = operations_[own.tensor];
    const bool announced = std::exchange(announced_, true);
    if (!operation.plain && !home_sum_.has_integers(*operation.tensor, operation.range(seq)) &&
        !ATP_BREAK(ready_before_scan)) {
        own.mode = Mode::floats;
        own.only_floats = true;
        if (!ready_.stopped()) ready_.stop_at(seq);
    } else if (ready_.stopped() || !announced) {
        own.mode = Mode::unaggregated;
    } else {
        own.sends_no_lanes = true;
        ready_.note_started(seq);
    }
}

// After the ACK of the fragment at which READYs stopped: they go on to the next one that this worker has to send.
void Worker::resume_readies(std::uint32_t acked) {
    ready_.go_on();
    for (std::uint32_t seq = acked + 1; seq != next_seq_ && !ready_.stopped(); ++seq) {
        if (slot(seq).state == State::sent && slot(seq).only_floats) ready_.stop_at(seq);
    }
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
