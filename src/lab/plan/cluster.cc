// SPDX-License-Identifier: Apache-2.0
#include "plan/cluster.h"

#include <algorithm>
#include <numeric>

#include "protocol/switch.h"

namespace atp::plan {

std::uint64_t Switch::aggregators() const { return memory_bytes / protocol::aggregator_bytes(lanes); }

unsigned Job::worker_count() const { return std::accumulate(workers.begin(), workers.end(), 0U); }

std::size_t Cluster::last_switch(const Job& job) const {
    const auto has_workers = [](unsigned count) { return count != 0; };
    const auto first = std::ranges::find_if(job.workers, has_workers);
    const bool alone = std::find_if(std::next(first), job.workers.end(), has_workers) == job.workers.end();
    return alone ? static_cast<std::size_t>(first - job.workers.begin()) : root;
}

bool Cluster::serves(std::size_t at, const Job& job) const { return job.workers[at] != 0 || at == last_switch(job); }

}  // namespace atp::plan
