// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace atp::control {

// Whether what is sent to a channel's group arrives at this worker: what its JOINs say of that.
//
// Calling order: handle_*() for what arrives, judge() for each JOIN. Threads: none. Failure: none. Who doubts says no,
// and gets copies of its own.
class Hearing {
  public:
    // The switch speaks to the group at least every second.
    static constexpr Duration memory = std::chrono::milliseconds(3500);
    // The group is heard, and most results are not: then it may be heard no longer, or somebody on the way carries a
    // little of it, and no more. So the doubt is short at first, and doubles until most results come by the group.
    static constexpr std::uint64_t most_results_asked_for = 16;
    static constexpr Duration first_distrust = std::chrono::seconds(1);
    static constexpr Duration longest_distrust = std::chrono::seconds(32);
    // The switch speaks to the group when somebody joins. What it says first may come before a bridge on the way has
    // learnt who listens: then so many JOINs do not wait for their usual time.
    static constexpr unsigned most_hurried = 20;
    // After so many JOINs without the group, and every so many, bridges are told anew that somebody listens. One that
    // begins to snoop does not know those who kept silent because they had heard another listener's report (IGMPv2).
    static constexpr unsigned joins_between_reports = 10;

    // A message of the tree came by the group. True: that is news, which is worth a JOIN at once.
    [[nodiscard]] bool handle_message(Time now);
    // A result came by the group, or to this worker alone because it had asked.
    void handle_group_result() { ++group_results_; }
    void handle_own_result() { ++own_results_; }
    // What the next JOIN says, of a worker that is let in or not yet.
    [[nodiscard]] bool judge(Time now, bool let_in);
    // After judge(), of one that is let in: whether the JOIN after this one comes soon,
    [[nodiscard]] bool hurries() const { return !said_ && deaf_joins_ <= most_hurried; }
    // and whether the network is to be told anew that it listens.
    [[nodiscard]] bool reports_anew() const { return deaf_joins_ != 0 && deaf_joins_ % joins_between_reports == 0; }

  private:
    [[nodiscard]] bool hears(Time now) const { return now < heard_until_ && now >= distrusts_until_; }

    Time heard_until_{};
    Time distrusts_until_{};
    std::uint64_t group_results_ = 0;  // since the last JOIN
    std::uint64_t own_results_ = 0;
    Duration distrust_ = first_distrust;  // how long the next one is
    unsigned deaf_joins_ = 0;             // in a row, since it was let in
    bool said_ = false;
};

}  // namespace atp::control
