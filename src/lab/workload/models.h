// SPDX-License-Identifier: Apache-2.0
// Neural networks as tables of layers: numbers of parameters and operations. The tables are never executed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/training.h"

namespace atp::workload {

struct ModelLayer {
    std::string name;
    std::vector<std::uint64_t> tensors;  // parameters of each tensor
    double forward_flops = 0;            // per sample; the backward pass takes twice as many

    [[nodiscard]] std::uint64_t parameters() const;
};

// Layers are in order from input to output.
struct Model {
    std::string name;
    std::string sample;  // unit of throughput
    unsigned batch = 64;
    double samples_per_s = 0;  // of one worker without communication
    std::string source;        // source of samples_per_s
    std::vector<ModelLayer> layers;

    [[nodiscard]] std::uint64_t parameters() const;
    [[nodiscard]] double forward_flops() const;
    // Per batch: the layer's share of the model's time, in proportion to its operations.
    [[nodiscard]] Duration forward_time(const ModelLayer& layer) const;
    [[nodiscard]] Duration backward_time(const ModelLayer& layer) const;
};

[[nodiscard]] std::span<const Model> models();
// Ignores case. nullptr: unknown name.
[[nodiscard]] const Model* find_model(std::string_view name);
[[nodiscard]] std::string model_names();

struct Bucketing {
    // Size of a bucket, in bytes. Tensors, from the last to the first, are split or joined into buckets of this size.
    // BytePS splits at 4 MB and joins nothing; PyTorch's DistributedDataParallel joins up to 25 MB and splits nothing.
    std::uint64_t bytes = 4'000'000;
    double scale = 1;                  // divisor of the sizes of buckets and of times
    double slowness = 1;               // factor of times, for links slower than those of the test bed
    std::uint64_t least_elements = 1;  // minimum size of a bucket
    std::optional<unsigned> batch{};   // samples of a worker per iteration; empty: the model's
};
[[nodiscard]] Workload workload_of(const Model& model, const Bucketing& bucketing);

}  // namespace atp::workload
