// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "comm/rank_counters.h"
#include "metrics/exposition.h"

namespace atp::comm {

// What metrics say about one communicator of this process.
struct MeasuredRank {
    std::uint32_t job = 0;
    std::string job_name{};
    std::string group{};  // the communicator's name
    std::uint32_t rank = 0;
    std::uint32_t world = 0;
    std::string layout{};
    std::function<RankCounters()> counters;  // any thread calls it
    std::function<bool()> has_failed;        // any thread calls it
};

[[nodiscard]] std::string metrics_text(const std::list<MeasuredRank>& ranks, metrics::TextFormat format);

// Of all communicators of this process. Any thread.
[[nodiscard]] std::string metrics_of_process(metrics::TextFormat format);

// Shows a rank in the metrics of its process while it exists. It must end before what the functions of the rank read.
class MetricsEntry {
  public:
    explicit MetricsEntry(MeasuredRank rank);
    ~MetricsEntry();
    MetricsEntry(const MetricsEntry&) = delete;
    MetricsEntry& operator=(const MetricsEntry&) = delete;

  private:
    std::list<MeasuredRank>::iterator at_;
};

}  // namespace atp::comm
