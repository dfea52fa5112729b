// SPDX-License-Identifier: Apache-2.0
// A loaded kernel program that serves one job, and packets of this job.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "decide_rows.h"
#include "frames.h"
#include "loaded_switch.h"
#include "wire/packet.h"

namespace atp::test {

using Lanes = conformance::DecideLanes;

inline constexpr std::uint32_t job = 7;
inline constexpr std::uint32_t token = 0x5EED;
inline constexpr std::uint32_t members_mask = 0x7;

inline atp_header gradient(unsigned member, std::uint32_t seq = 1) {
    atp_header header{};
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = 8;
    header.job = job;
    header.token = token;
    header.worker = static_cast<std::uint16_t>(member);
    header.seq = seq;
    header.index = seq % 16;
    header.bitmap0 = 1U << member;
    header.mask0 = members_mask;
    header.bitmap1 = 1;
    header.mask1 = 3;
    return header;
}

inline atp_header gradient_with(unsigned member, unsigned flags) {
    atp_header header = gradient(member);
    header.flags = static_cast<std::uint16_t>(flags);
    return header;
}

inline atp_header down(atp_type type) {
    atp_header header = gradient(0);
    header.type = static_cast<std::uint8_t>(type);
    header.lanes = ATP_DTYPE_NONE;
    return header;
}

inline atp_header flush() {
    atp_header header = down(ATP_TYPE_FLUSH);
    header.bitmap0 = members_mask;
    return header;
}

// Serves `job` at level 0, with 16 aggregators.
class SwitchInTheKernel : public LoadedSwitch {
  protected:
    void SetUp() override {
        load({.aggregators = 16, .jobs = 4, .ageing = std::chrono::hours(1)});
        if (machine == nullptr) return;
        ASSERT_TRUE(machine->admit(job, token, 0));
    }

    xdp::Outcome run(const Bytes& frame) {
        auto outcome = machine->run(frame);
        EXPECT_TRUE(outcome) << to_string(outcome.error());
        return outcome ? *outcome : xdp::Outcome{};
    }
    xdp::Outcome leave(const Bytes& frame, std::uint32_t segment_bytes = 0) {
        auto outcome = machine->run_egress(frame, segment_bytes);
        EXPECT_TRUE(outcome) << to_string(outcome.error());
        return outcome ? *outcome : xdp::Outcome{};
    }
    void expect_to_leave_untouched(const Bytes& frame, std::uint32_t segment_bytes = 0) {
        const xdp::Outcome outcome = leave(frame, segment_bytes);
        EXPECT_EQ(outcome.disposition, xdp::Disposition::passed);
        EXPECT_EQ(outcome.frame, frame);
    }
    xdp::Outcome send(const atp_header& header, const Lanes& lanes, const Wrapping& wrapping = {}) {
        return run(wrap(conformance::bytes_of(header, lanes), wrapping));
    }
    void expect_untouched(const Bytes& frame) {
        const xdp::Outcome outcome = run(frame);
        EXPECT_EQ(outcome.disposition, xdp::Disposition::passed);
        EXPECT_EQ(outcome.frame, frame);
    }
    std::uint64_t events() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : machine->counters().packets.events) sum += count;
        return sum;
    }
};

}  // namespace atp::test
