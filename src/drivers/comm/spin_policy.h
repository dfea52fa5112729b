// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::comm {

// Decides whether a rank that waits for another one looks at the shared memory for a while before it sleeps. That finds
// a rank that runs on another core and is about to finish. If the ranks share a core, it only keeps the core from the
// other one. The rank cannot see which, but it sees whether its last looks found something.
//
// Ownership: a value. Calling order: looks() for each wait, then note() if it looked. Threads: none. Failure: none.
class SpinPolicy {
  public:
    static constexpr std::uint32_t most_misses = 3;  // in a row
    static constexpr std::uint32_t probing = 16;     // after so many misses, one wait in this many looks

    [[nodiscard]] bool looks() { return misses_ < most_misses || ++skipped_ % probing == 0; }
    void note(bool found) { misses_ = found ? 0 : misses_ + 1; }

  private:
    std::uint32_t misses_ = 0;
    std::uint32_t skipped_ = 0;
};

}  // namespace atp::comm
