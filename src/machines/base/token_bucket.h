// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/time.h"

namespace atp {

// A token bucket in units of time: what happens costs time, and time passes. It keeps only when it will be full.
//
// Calling order: any. Threads: none. Failure: none.
class TokenBucket {
  public:
    // Whether `cost` is left of a bucket that holds `most`.
    [[nodiscard]] bool has(Duration cost, Duration most, Time now) const { return debt(now) + cost <= most; }
    void charge(Duration cost, Time now) { full_at_ = std::max(full_at_, now) + cost; }
    // When has() becomes true, if nothing is charged until then.
    [[nodiscard]] Time ready_at(Duration cost, Duration most) const { return full_at_ - (most - cost); }
    [[nodiscard]] Duration debt(Time now) const { return std::max(full_at_ - now, Duration::zero()); }

  private:
    Time full_at_{};
};

}  // namespace atp
