// SPDX-License-Identifier: Apache-2.0
#include "sim/sampler.h"

#include <utility>

namespace atp::sim {
namespace {

void append(const std::vector<std::uint64_t>& now, std::vector<std::uint64_t> last,
            std::vector<std::vector<std::uint64_t>>& growth) {
    last.resize(now.size());
    growth.resize(now.size());
    // A counter smaller than before has restarted from 0: a switch resets a job's counters at its next incarnation.
    for (std::size_t i = 0; i < now.size(); ++i) growth[i].push_back(now[i] < last[i] ? now[i] : now[i] - last[i]);
}

}  // namespace

void Sampler::take(Reading reading) {
    append(reading.job_bytes, last_.job_bytes, series_.job_bytes);
    append(reading.job_added_in_network, last_.job_added_in_network, series_.job_added_in_network);
    append(reading.job_added_at_server, last_.job_added_at_server, series_.job_added_at_server);
    append(reading.background_bytes, last_.background_bytes, series_.background_bytes);
    append(reading.link_bytes, last_.link_bytes, series_.link_bytes);
    last_ = std::move(reading);
}

}  // namespace atp::sim
