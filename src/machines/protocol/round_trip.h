// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace atp::protocol {

// Timeout of a channel, learned from the round trips of its fragments.
//
// Ownership: a value.
// Calling order: measure() for a round trip that only the network determined; note_late() for a round trip during which
//   the timer expired. Then timeout().
// Threads: none.
// Failure: none.
class RoundTrip {
  public:
    // Estimator of RFC 6298.
    void measure(Duration round_trip);
    // A fragment that was in flight at the last expiry took this long.
    void note_late(Duration round_trip);
    // The timer expired: earlier late round trips no longer count.
    void forget_late() { late_ = Duration::zero(); }
    // A result arrived twice, or without a PROBE: nothing was lost, but round trips are longer than the timeout.
    // measure() never learns such round trips, because the timer expires during each of them. The next timer therefore
    // waits for twice the longest round trip that note_late() received since the expiry.
    void raise_minimum();
    // The server answered without a result, so late round trips include the time of other workers.
    void reset_minimum() { late_ = minimum_ = Duration::zero(); }

    // Time without an ACK after which a fragment may be lost, from `least` to `most`.
    [[nodiscard]] Duration timeout(Duration least, Duration most) const;

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(smoothed_), archive.value(variation_), archive.value(late_), archive.value(minimum_);
    }

  private:
    Duration smoothed_{};   // zero: not measured yet
    Duration variation_{};  // of the round trip
    Duration late_{};       // longest since the last expiry, of fragments in flight at that expiry
    Duration minimum_{};    // learned minimum of the timeout; a NACK or WAIT resets it
};

}  // namespace atp::protocol
