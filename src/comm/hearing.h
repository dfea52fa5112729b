// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/time.h"

namespace atp::comm {

// Whether what is sent to a channel's group arrives at this worker: what its JOINs say of that.
//
// Calling order: handle_*() for what arrives, judge() for each JOIN. Threads: none. Failure: none. Who doubts says no,
// and gets copies of its own.
class Hearing {
  public:
    // The switch speaks to the group at least every second.
    static constexpr protocol::Duration memory = std::chrono::milliseconds(3500);
    // The group is heard, and its results are not: then somebody on the way carries a little of it, and no more.
    static constexpr std::uint64_t most_results_asked_for = 16;
    static constexpr protocol::Duration distrust = std::chrono::seconds(30);

    // A message of the tree came by the group. True: that is news, which is worth a JOIN at once.
    [[nodiscard]] bool handle_message(protocol::Time now);
    // A result came by the group, or to this worker alone because it had asked.
    void handle_group_result() { ++group_results_; }
    void handle_own_result() { ++own_results_; }
    // What the next JOIN says.
    [[nodiscard]] bool judge(protocol::Time now);

  private:
    [[nodiscard]] bool hears(protocol::Time now) const { return now < heard_until_ && now >= distrusts_until_; }

    protocol::Time heard_until_{};
    protocol::Time distrusts_until_{};
    std::uint64_t group_results_ = 0;  // since the last JOIN
    std::uint64_t own_results_ = 0;
    bool said_ = false;
};

}  // namespace atp::comm
