// SPDX-License-Identifier: Apache-2.0
// `atp-lab bench --model`: ranks train a model of the laboratory in real time, and sum its gradients over a network.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "apps/atp/bench_rank.h"
#include "apps/common/command.h"
#include "workload/models.h"
#include "workload/real_time.h"

namespace atp::apps {

struct BenchModel {
    const workload::Model* model = nullptr;  // nullptr: none
    workload::Bucketing bucketing{};

    [[nodiscard]] workload::Workload workload() const { return workload::workload_of(*model, bucketing); }
};

// The model excludes flags that the command already has: what it sums follows from its tables.
void add_model_flags(Command& command, BenchModel& model);
// The flags of the ranks that are started.
[[nodiscard]] std::vector<std::string> flags_of(const BenchModel& model);

// Starts to sum elements of all ranks in place, and returns the call that waits for it.
using BucketSum = std::function<Result<workload::TrainingCalls::Wait>(void* memory, std::size_t elements)>;

// The times of the iterations of all ranks. Each bucket is a part of one tensor, whose sums of the last iteration are
// verified.
[[nodiscard]] Result<BenchSize> measure_model(const BenchRank& bench, store::Rendezvous& rendezvous,
                                              const workload::Workload& workload, const BucketSum& sum);

}  // namespace atp::apps
