// SPDX-License-Identifier: Apache-2.0
#include "workload/training.h"

#include <algorithm>

namespace atp::workload {

std::uint64_t Workload::elements() const {
    std::uint64_t sum = 0;
    for (const Bucket& bucket : buckets) sum += bucket.elements;
    return sum;
}

Duration Workload::compute() const {
    Duration sum = buckets.back().ready;
    for (const Stage& stage : forward) sum += stage.compute;
    return sum;
}

Training::Training(const Workload& workload, unsigned ranks, unsigned iterations)
    : workload_(workload), iterations_(iterations), ranks_(ranks) {}

bool Training::all_finished() const {
    return std::ranges::all_of(ranks_, [&](const Rank& rank) { return rank.done == iterations_; });
}

void Training::begin(unsigned rank, unsigned iterations_done, Time when) {
    Rank& begun = ranks_[rank] = Rank{};
    begun.done = iterations_done;
    if (iterations_done < iterations_) begin_backward(begun, when);
}

void Training::begin_backward(Rank& rank, Time now) {
    rank.forward = rank.computing = false;
    rank.appeared = rank.summed_count = 0;
    rank.summed.assign(workload_.buckets.size(), false);
    rank.begun = now;
    rank.due = now + workload_.buckets.front().ready;
}

Training::Buckets Training::advance(unsigned id, Time now) {
    Rank& rank = ranks_[id];
    if (now < rank.due) return {};
    if (rank.forward) {
        rank.computing = false;
        ++rank.stage;
        try_stage(rank, now);
        if (rank.forward || rank.due > now) return {};
    }
    const auto& buckets = workload_.buckets;
    const std::uint32_t first = rank.appeared;
    while (rank.appeared < buckets.size() && rank.begun + buckets[rank.appeared].ready <= now) ++rank.appeared;
    if (rank.appeared < buckets.size()) {
        rank.due = rank.begun + buckets[rank.appeared].ready;
    } else {
        rank.forward = true;
        rank.stage = 0;
        rank.due = never;
        try_stage(rank, now);
    }
    return {.first = first, .last = rank.appeared};
}

// Starts the stage if its sums are available. After the last stage, starts the next backward pass.
void Training::try_stage(Rank& rank, Time now) {
    rank.due = never;
    if (rank.stage == workload_.forward.size()) {
        begin_backward(rank, now);
        return;
    }
    const Workload::Stage& stage = workload_.forward[rank.stage];
    for (std::uint32_t bucket = stage.first; bucket < stage.last; ++bucket) {
        if (!rank.summed[bucket]) return;
    }
    const bool last_iteration = rank.done + (rank.summed_count == workload_.buckets.size() ? 0U : 1U) == iterations_;
    if (last_iteration) return;
    rank.computing = true;
    rank.due = now + stage.compute;
}

void Training::summed(unsigned id, std::uint32_t bucket, Time now) {
    Rank& rank = ranks_[id];
    if (rank.summed[bucket]) return;
    rank.summed[bucket] = true;
    if (++rank.summed_count == workload_.buckets.size()) end_iteration(rank, now);
    if (rank.forward && !rank.computing) try_stage(rank, now);
}

void Training::end_iteration(Rank& rank, Time now) {
    const unsigned done = ++rank.done;
    if (!std::ranges::all_of(ranks_, [&](const Rank& other) { return other.done >= done; })) return;
    last_end_ = now;
    if (done == 1) first_end_ = now;
}

}  // namespace atp::workload
