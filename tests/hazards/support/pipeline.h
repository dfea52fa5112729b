// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "protocol/channel.h"
#include "protocol/membership.h"
#include "protocol/pipeline_cells.h"
#include "support/packets.h"

namespace atp::testing {

struct PipelineConfig {
    protocol::ChannelConfig channel;
    std::uint8_t level = 0;
    std::uint32_t aggregators = 0;
    Duration ageing{};
};

// What a packet takes with it from one pass to the next.
struct NextPass {
    std::uint8_t kind = ATP_PASS_FIRST;
    std::uint32_t seen = 0;
};

// A switch that is a pipeline (pipeline/decide_pipeline.h), with the lanes of its aggregators. It serves one channel.
//
// Ownership: borrows the membership.
class Pipeline {
  public:
    enum class Fate : std::uint8_t { absorbed, goes_up, goes_down, passes_again };

    Pipeline(const PipelineConfig& config, const protocol::Membership& membership);
    // One pass: rewrites the packet.
    [[nodiscard]] Fate handle(Bytes& bytes, bool congested, NextPass& pass, Time now);

  private:
    struct Aggregator {
        atp_pipeline_words words{};
        std::vector<std::uint32_t> lanes;
    };

    [[nodiscard]] atp_pipeline_place place_of(const atp_header& header) const;
    void move_lanes(std::uint8_t action, Bytes& bytes, Aggregator& at) const;

    PipelineConfig config_;
    const protocol::Membership& membership_;
    std::vector<Aggregator> table_;
};

}  // namespace atp::testing
