// SPDX-License-Identifier: Apache-2.0
#include "protocol/round_trip.h"

#include <algorithm>

namespace atp::protocol {

void RoundTrip::measure(Duration round_trip) {
    if (smoothed_ == Duration::zero()) {
        smoothed_ = round_trip;
        variation_ = round_trip / 2;
        return;
    }
    const Duration error = round_trip > smoothed_ ? round_trip - smoothed_ : smoothed_ - round_trip;
    variation_ += (error - variation_) / 4;
    smoothed_ += (round_trip - smoothed_) / 8;
}

void RoundTrip::note_late(Duration round_trip) { late_ = std::max(late_, round_trip); }

void RoundTrip::raise_minimum() {
    minimum_ = std::max(minimum_, 2 * late_);
    late_ = Duration::zero();
}

Duration RoundTrip::timeout(Duration least, Duration most) const {
    return std::clamp(std::max(smoothed_ + 4 * variation_, minimum_), least, most);
}

}  // namespace atp::protocol
