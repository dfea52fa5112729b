// SPDX-License-Identifier: Apache-2.0
// Reads counters at regular intervals and keeps the differences.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/report.h"

namespace atp::sim {

class Sampler {
  public:
    explicit Sampler(Duration interval) { series_.interval = interval; }

    // Current values of the counters. The order within each list never changes.
    struct Reading {
        std::vector<std::uint64_t> job_bytes;
        std::vector<std::uint64_t> job_added_in_network;
        std::vector<std::uint64_t> job_added_at_server;
        std::vector<std::uint64_t> background_bytes;
        std::vector<std::uint64_t> link_bytes;
    };
    void take(Reading reading);
    [[nodiscard]] const Series& series() const { return series_; }

  private:
    Reading last_;
    Series series_;
};

}  // namespace atp::sim
