// SPDX-License-Identifier: Apache-2.0
#include "sim/systems/ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace atp::sim {

Ring::Ring(const Shared& shared, ProgramId id, unsigned index)
    : FlowJob(shared, id, index), turns_(ranks(), std::vector<Turn>(workload_.buckets.size())) {
    if (ranks() == 1) return;
    // Flow `rank` leads to the next rank.
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        (void)add_flow(site().worker_hosts[rank], site().worker_hosts[next(rank)]);
    }
}

void Ring::submit(unsigned rank, workload::Training::Buckets buckets, Time now) {
    for (std::uint32_t bucket = buckets.first; bucket < buckets.last; ++bucket) {
        if (ranks() == 1) {
            summed(rank, bucket, now);
            continue;
        }
        Turn& turn = turns_[rank][bucket];
        turn.ready = true;
        pass_on(rank, bucket, 0, word_of(training_.iterations_done(rank), bucket, chunk_of(rank, 0), rank), now);
        for (const Message& message : std::exchange(turn.early, {})) take(rank, message, now);
    }
}

void Ring::pass_on(unsigned rank, std::uint32_t bucket, std::uint32_t step, std::uint64_t word, Time now) {
    const std::uint64_t elements = share_of(workload_.buckets[bucket].elements, chunk_of(rank, step), ranks());
    send(rank,
         {.bytes = std::max<std::uint64_t>(elements, 1) * sizeof(float), .label = bucket, .step = step, .word = word},
         now);
}

void Ring::on_message(std::uint32_t flow, const Message& message, Time now) {
    const unsigned rank = next(flow);
    Turn& turn = turns_[rank][message.label];
    if (turn.ready) {
        take(rank, message, now);
    } else {
        turn.early.push_back(message);
    }
}

void Ring::take(unsigned rank, const Message& message, Time now) {
    const std::uint32_t bucket = message.label;
    const std::uint32_t last_sum = ranks() - 2;  // chunks are complete from this step on
    const unsigned iteration = training_.iterations_done(rank);
    const unsigned chunk = chunk_of(rank, message.step + 1);
    std::uint64_t word = message.word;
    if (message.step <= last_sum) word += word_of(iteration, bucket, chunk, rank);
    if (message.step >= last_sum && word != sum_of_words(iteration, bucket, chunk)) {
        fail(fmt::format("rank {}: chunk {} of bucket {}: the sum does not include every worker", rank, chunk, bucket));
    }
    if (message.step + 1 < steps()) pass_on(rank, bucket, message.step + 1, word, now);
    Turn& turn = turns_[rank][bucket];
    if (++turn.received != steps()) return;
    turn = Turn{};
    summed(rank, bucket, now);
}

}  // namespace atp::sim
