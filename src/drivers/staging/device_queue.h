// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"
#include "staging/elements.h"

namespace atp::staging {

// A device that converts between elements in its memory and lanes in the host's memory, asynchronously and in steps. A
// lane has 4 bytes per element, in wire format, in page-locked memory that the device can access.
//
// Ownership: borrows elements and lanes, which must stay valid until the step is done.
// Calling order: any. Loads run in the order of their calls, and so do stores. Loads and stores do not wait for each
//   other.
// Threads: any. A call may make the device the current device of the calling thread.
// Failure: a step that fails is done with an error, and so is every step after it.
class DeviceQueue {
  public:
    // Called once for each step, on any thread. It must not call the device.
    using Done = std::function<void(const Result<void>&)>;

    virtual ~DeviceQueue() = default;

    // Later loads wait for `event`, an event of the device's runtime (CUDA: cudaEvent_t).
    [[nodiscard]] virtual Result<void> load_after(void* event) = 0;
    // Writes elements times the scale as integers. An element that does not fit an integer becomes `refused_lane`.
    virtual void load_integers(const Elements& from, float scale, std::byte* lanes, Done done) = 0;
    // Writes float32 sums times the factor to the elements.
    virtual void store(const std::byte* lanes, double factor, const Elements& to, Done done) = 0;
    // Writes elements as float32. Returns when all are written.
    [[nodiscard]] virtual Result<void> fetch_floats(const Elements& from, std::byte* lanes) = 0;
};

}  // namespace atp::staging
