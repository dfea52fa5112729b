// SPDX-License-Identifier: Apache-2.0
// All workers of a job, their switch and their server in one process: what trainings sum their gradients with when the
// question is what the sums are, and not how fast they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensor/adaptive_tensor.h"

namespace atp::accuracy {

struct ReducerConfig {
    unsigned workers = 4;
    std::uint16_t lanes = 352;  // of a packet of 1,500 bytes
    tensor::NumberForm form;
};

struct Counters {
    std::uint64_t fragments = 0;        // sums
    std::uint64_t float_fragments = 0;  // of them, those that came about as floats
    std::uint64_t overflows = 0;        // and those that left their integers in the switch
    std::uint64_t bytes = 0;            // that one worker sent
};

// Calling order: sum(), any number of times, each time as long. Threads: none. Failure: std::runtime_error where the
// machines come to no end, which they always do.
class Reducer {
  public:
    virtual ~Reducer() = default;
    // `inputs` holds each worker's numbers, one after the other; `sums` is as long as one's.
    virtual void sum(std::span<const float> inputs, std::span<float> sums) = 0;
    [[nodiscard]] virtual Counters counters() const = 0;
};

// ATP's machines, under one switch.
[[nodiscard]] std::unique_ptr<Reducer> make_atp(const ReducerConfig& config);
// SwitchML's. What does not fit its integers is no sum: zeros where a worker's number does not, and the extremes where
// a sum does not.
[[nodiscard]] std::unique_ptr<Reducer> make_switchml(const ReducerConfig& config);

}  // namespace atp::accuracy
