// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"
#include "staging/elements.h"

namespace atp::staging {

// A device that converts between its elements and lanes in the host's memory, step by step, beside what else it does.
//
// Lanes are 4 bytes an element as they stand in a packet, in memory that the device reaches (page-locked). Elements and
// lanes belong to the caller and stay until the step is done. Loads are done in the order in which they were asked for,
// and so are stores; neither waits for the other.
// Threads: any. A call may make the device the current one of its thread.
// Failure: a step that fails, or that follows one that did, is done with an error.
class DeviceQueue {
  public:
    // Called once for each step, on any thread. It may not call the device.
    using Done = std::function<void(const Result<void>&)>;

    virtual ~DeviceQueue() = default;

    // Loads that are asked for later wait for `event`, which is of the kind of the device's runtime.
    [[nodiscard]] virtual Result<void> load_after(void* event) = 0;
    // Elements times the scale, as integers; `refused_lane` where that is none.
    virtual void load_integers(const Elements& from, float scale, std::byte* lanes, Done done) = 0;
    // Sums, which are float32, times the factor.
    virtual void store(const std::byte* lanes, double factor, const Elements& to, Done done) = 0;
    // Elements as float32, at once: returns when they are there.
    [[nodiscard]] virtual Result<void> fetch_floats(const Elements& from, std::byte* lanes) = 0;
};

}  // namespace atp::staging
