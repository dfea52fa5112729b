// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>

#include "base/time.h"

namespace atp::comm {

// How many operations a rank has called, and the time in which any was in flight or a thread waited for one.
//
// Ownership: a communicator and its works share it, because works may outlive the communicator.
// Calling order: begin() of an operation, then its end(); wait() and sums() at any time.
// Threads: any.
// Failure: none.
class OperationTimes {
  public:
    struct Sums {
        std::uint64_t operations = 0;
        Duration in_flight{};  // operations that overlap count once
        Duration waiting{};    // threads that wait at once count each
    };

    void begin(Time now);
    void end(Time now);
    void wait(Duration waited);
    [[nodiscard]] Sums sums(Time now) const;

  private:
    mutable std::mutex mutex_;
    Sums sums_;
    std::uint64_t open_ = 0;  // operations in flight
    Time since_{};            // while there are some: since when
};

}  // namespace atp::comm
