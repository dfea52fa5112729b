// SPDX-License-Identifier: Apache-2.0
// All workers of a job, their switch and their server in one process. Trainings sum their gradients with a Reducer to
// study the values of the sums, not the speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "numeric/element_type.h"
#include "tensor/number_form.h"

namespace atp::accuracy {

struct ReducerConfig {
    unsigned workers = 4;
    std::uint16_t lanes = 352;  // fit a packet of 1,500 bytes
    numeric::ElementType type = numeric::ElementType::float32;
    tensor::NumberForm form;
};

struct Counters {
    std::uint64_t fragments = 0;        // all fragments summed
    std::uint64_t float_fragments = 0;  // fragments summed as floats
    std::uint64_t overflows = 0;        // fragments whose integers overflowed in the switch
    std::uint64_t bytes = 0;            // sent by one worker
};

// Sums the values of all workers with real state machines.
//
// Calling order: sum(), any number of times, always with the same length.
// Threads: none.
// Failure: std::runtime_error if the machines do not finish, which is an internal error.
class Reducer {
  public:
    virtual ~Reducer() = default;
    // `inputs` holds `elements` values of worker 0, then of worker 1, and so on; `sums` gets as many.
    virtual void sum(const std::byte* inputs, std::byte* sums, std::size_t elements) = 0;
    // The scale of each cell in the last sum; empty: it was the fixed one.
    [[nodiscard]] virtual std::vector<float> scales() const = 0;
    [[nodiscard]] virtual Counters counters() const = 0;
};

// Uses ATP's state machines under one switch.
[[nodiscard]] std::unique_ptr<Reducer> make_atp(const ReducerConfig& config);
// Uses SwitchML's state machines. If a worker's value does not fit an integer, the sum is 0. If a sum overflows, it is
// the extreme value.
[[nodiscard]] std::unique_ptr<Reducer> make_switchml(const ReducerConfig& config);

}  // namespace atp::accuracy
