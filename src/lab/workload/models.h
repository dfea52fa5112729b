// SPDX-License-Identifier: Apache-2.0
// Neural networks as tables of layers: how many parameters, how much arithmetic. No network is ever run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/training.h"

namespace atp::workload {

struct ModelLayer {
    std::string name;
    std::vector<std::uint64_t> tensors;  // parameters of each
    double forward_flops = 0;            // of one sample; the backward pass takes twice as many

    [[nodiscard]] std::uint64_t parameters() const;
};

// From the input to the output.
struct Model {
    std::string name;
    std::string sample;  // what throughput counts
    unsigned batch = 64;
    double samples_per_s = 0;  // of one worker that waits for nobody
    std::string source;        // of that number
    std::vector<ModelLayer> layers;

    [[nodiscard]] std::uint64_t parameters() const;
    [[nodiscard]] double forward_flops() const;
    // Of a batch: its share of the model's time, by arithmetic.
    [[nodiscard]] Duration forward_time(const ModelLayer& layer) const;
    [[nodiscard]] Duration backward_time(const ModelLayer& layer) const;
};

[[nodiscard]] std::span<const Model> models();
// Whatever the case of its letters; nullptr where there is none.
[[nodiscard]] const Model* find_model(std::string_view name);
[[nodiscard]] std::string model_names();

struct Bucketing {
    // Tensors, from the back, are cut and joined to buckets of this size. BytePS cuts at 4 MB and joins nothing;
    // PyTorch's DistributedDataParallel joins to 25 MB and cuts nothing.
    std::uint64_t bytes = 4'000'000;
    double scale = 1;                  // parameters, buckets and times are divided by it
    std::uint64_t least_elements = 1;  // of a bucket
};
[[nodiscard]] Workload workload_of(const Model& model, const Bucketing& bucketing);

}  // namespace atp::workload
