// SPDX-License-Identifier: Apache-2.0
// Packets or bytes that one sender has in the queue of its host. The sender chooses the unit. A host accepts little at
// a time from each sender, as TCP small queues and transmit rings do. Several senders therefore share its link, and a
// sender can still change data that is not queued yet.
#pragma once

#include <cstdint>
#include <deque>

#include "base/time.h"

namespace atp::sim {

class HostQueue {
  public:
    explicit HostQueue(std::uint64_t most) : most_(most) {}

    [[nodiscard]] bool has_room(Time now) {
        while (!departures_.empty() && departures_.front().at <= now) {
            held_ -= departures_.front().amount;
            departures_.pop_front();
        }
        return held_ < most_;
    }
    void add(Time departs, std::uint64_t amount) {
        departures_.push_back({.at = departs, .amount = amount});
        held_ += amount;
    }
    // Time at which half of the queue has departed. Requires a full queue. A sender that waits until this time wakes up
    // less often than once per packet.
    [[nodiscard]] Time half_empty_at() const { return departures_[departures_.size() / 2].at; }

  private:
    struct Departure {
        Time at;
        std::uint64_t amount = 0;
    };

    std::uint64_t most_;
    std::uint64_t held_ = 0;
    std::deque<Departure> departures_;
};

}  // namespace atp::sim
