// SPDX-License-Identifier: Apache-2.0
// For which child the others wait. A switch that adds knows which packet completed a fragment, and for how long only
// this packet was missing. A child that begins late completes only the fragments of its first window: the time counts,
// not the number of fragments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "protocol/archive.h"
#include "wire/control.h"
#include "wire/format.h"

namespace atp::control {

// True if users should know: the others wait for this member for a notable time, and hardly for another.
[[nodiscard]] bool is_slow(const wire::Pace& pace);
[[nodiscard]] bool names_same(const wire::Pace& a, const wire::Pace& b);

// Of one interval.
struct LongestWait {
    std::uint8_t child = 0;             // the others waited longest for it
    std::uint8_t share_percent = 0;     // of all that children waited for one
    std::uint8_t last_percent = 0;      // of the fragments that it completed
    std::uint16_t waited_permille = 0;  // of the interval
};

// Counts for one channel of one switch.
//
// Ownership: owns its counts.
// Calling order: handle_completed() for each completed fragment, handle_time() from time to time. An interval begins
//   with a fragment, and lasts until the first handle_time() after `interval`.
// Threads: none. Failure: none.
class PaceMeter {
  public:
    // `completed_by`: bit of the child. `alone`: time since the packet before it was added to this fragment. Several
    // fragments may wait for one child at a time: this time counts once.
    void handle_completed(std::uint32_t completed_by, Duration alone, Time now);
    void handle_time(Time now, Duration interval);
    // nullopt: the last interval had too few fragments or no wait, or is over for as long as it lasted.
    [[nodiscard]] const std::optional<LongestWait>& last() const { return last_; }

    template <protocol::Archive Archive>
    void persist(Archive& archive);

  private:
    // A single operation with few fragments shows no habit.
    static constexpr std::uint32_t least_fragments = 8;

    struct Count {
        std::uint32_t fragments = 0;
        Duration waited{};
    };
    [[nodiscard]] std::optional<LongestWait> assess(Duration interval) const;

    std::array<Count, ATP_BITMAP_BITS> counts_{};  // by child
    Time completed_at_{};
    Time begun_{};  // of the interval; Time{}: none
    std::optional<LongestWait> last_;
    Time assessed_at_{};  // valid with last_
};

template <protocol::Archive Archive>
void PaceMeter::persist(Archive& archive) {
    archive.unread(begun_);
    if (begun_ != Time{}) {
        for (Count& count : counts_) archive.unread(count.fragments), archive.unread(count.waited);
    }
    archive.unread(completed_at_);
    bool known = last_.has_value();
    archive.unread(known);
    if (!known) return last_.reset();
    if (!last_) last_.emplace();
    archive.unread(last_->child), archive.unread(last_->share_percent), archive.unread(last_->last_percent);
    archive.unread(last_->waited_permille);
    archive.unread(assessed_at_);
}

}  // namespace atp::control
