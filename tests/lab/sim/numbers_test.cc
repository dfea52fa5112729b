// SPDX-License-Identifier: Apache-2.0
// Jobs that sum numbers in memory, with the scaling and the lanes of the product.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "sim/number_tensors.h"
#include "support.h"
#include "wire/packet.h"

namespace atp::sim {
namespace {

using tensor::LaneType;
using tensor::Scaling;

Scenario numbers(Scaling scaling, LaneType type) {
    Scenario s;
    s.topology = topology("racks:2x2");
    s.bytes = 100'000;
    s.tensors = 2;
    s.channels = 2;
    s.iterations = 8;
    s.scaling = scaling;
    s.lane_type = type;
    return s;
}

Outage crash_of_a_worker() {
    return {.kind = Outage::Kind::crash,
            .node = Outage::Node::worker,
            .index = 1,
            .at = Time(std::chrono::microseconds(60)),
            .lasts = std::chrono::milliseconds(5)};
}

TEST(Numbers, SumsAreRightInAllFormsAmongLosses) {
    for (const Scaling scaling : {Scaling::fixed, Scaling::dynamic}) {
        for (const LaneType type : {LaneType::int32, LaneType::int16, LaneType::int8}) {
            Scenario s = numbers(scaling, type);
            s.float_share = 0.1;
            s.faults.loss = 0.02;
            s.faults.duplicate = 0.02;
            s.faults.reorder = 0.1;
            EXPECT_GT(workers_of(run_verified(s)).resent, 0U);
        }
    }
}

TEST(Numbers, ScalesThatFollowFromSumsLetSwitchesAddMostFragments) {
    const Report report = run_verified(numbers(Scaling::dynamic, LaneType::int32));
    const WorkerCounters workers = workers_of(report);
    EXPECT_GT(workers.float_fragments, 0U);  // where magnitudes leap
    EXPECT_LT(static_cast<double>(workers.float_fragments), 0.4 * static_cast<double>(workers.sent));
}

TEST(Numbers, NarrowLanesNeedFewerPackets) {
    const auto packets = [](LaneType type) {
        return static_cast<double>(workers_of(run_verified(numbers(Scaling::dynamic, type))).sent);
    };
    const double int32 = packets(LaneType::int32);
    EXPECT_LT(packets(LaneType::int16), 0.6 * int32);
    EXPECT_LT(packets(LaneType::int8), 0.4 * int32);
}

TEST(Numbers, ASwitchThatAddsOnlyInt32LetsAllRanksSendThat) {
    Scenario s = numbers(Scaling::dynamic, LaneType::int16);
    const std::uint64_t narrow = workers_of(run_verified(s)).sent;
    for (unsigned at = 0; at < 3; ++at) {
        s.int32_switch = at;
        EXPECT_GT(static_cast<double>(workers_of(run_verified(s)).sent), 1.7 * static_cast<double>(narrow));
    }
}

TEST(Numbers, JobsFormAgainWithNewScales) {
    Scenario s = numbers(Scaling::dynamic, LaneType::int16);
    s.faults.outages = {crash_of_a_worker()};
    EXPECT_GE(run_verified(s).jobs[0].incarnations, 2U);
}

TEST(Numbers, SettingsOfSyntheticGradientsAreRefused) {
    Scenario s = numbers(Scaling::dynamic, LaneType::int32);
    s.plain_share = 0.5;
    EXPECT_NE(problem_of(s).value_or("").find("--plain-share"), std::string::npos);
    s = numbers(Scaling::dynamic, LaneType::int32);
    s.int32_switch = 3;
    EXPECT_NE(problem_of(s).value_or("").find("3 switches"), std::string::npos);
}

TEST(HostRanks, SumInMemoryBeforeTheirWorkerSends) {
    for (const Scaling scaling : {Scaling::fixed, Scaling::dynamic}) {
        Scenario s = numbers(scaling, LaneType::int32);
        s.iterations = 3;
        const std::uint64_t sent = workers_of(run_verified(s)).sent;
        s.ranks_of_host = 3;
        EXPECT_LT(static_cast<double>(workers_of(run_verified(s)).sent), 1.3 * static_cast<double>(sent));
    }
}

TEST(HostRanks, SumsAreRightInAllFormsAmongLosses) {
    for (const Scaling scaling : {Scaling::fixed, Scaling::dynamic}) {
        for (const LaneType type : {LaneType::int32, LaneType::int16, LaneType::int8}) {
            Scenario s = numbers(scaling, type);
            s.ranks_of_host = 3;
            s.iterations = 3;
            s.float_share = 0.3;
            if (!s.has_numbers()) s.plain_share = 0.5;
            s.faults.loss = 0.02;
            s.faults.duplicate = 0.02;
            s.faults.reorder = 0.1;
            const WorkerCounters workers = workers_of(run_verified(s));
            EXPECT_GT(workers.float_fragments, 0U);
            EXPECT_GT(workers.resent, 0U);
        }
    }
}

TEST(HostRanks, AllRanksOfAHostThatEndsFormAgain) {
    for (const Scaling scaling : {Scaling::fixed, Scaling::dynamic}) {
        Scenario s = numbers(scaling, LaneType::int32);
        s.ranks_of_host = 2;
        s.faults.outages = {crash_of_a_worker()};
        EXPECT_GE(run_verified(s).jobs[0].incarnations, 2U);
    }
}

TEST(HostRanks, WhatAHostCannotSumIsRefused) {
    Scenario s = numbers(Scaling::fixed, LaneType::int32);
    s.ranks_of_host = 2;
    EXPECT_FALSE(problem_of(s));
    s.owned_share = 0.5;
    EXPECT_NE(problem_of(s).value_or("").find("--owned-share"), std::string::npos);
    s.owned_share = 0;
    s.topology = topology("star:17");
    s.ranks_of_host = 63;
    EXPECT_NE(problem_of(s).value_or("").find("1024 ranks"), std::string::npos);
}

// One rank, whose sums are its numbers at the fixed scale.
TEST(Numbers, AWrongBitOfOneSumIsReported) {
    Scenario s = numbers(Scaling::fixed, LaneType::int16);
    s.channels = 1;
    s.bytes = 400;
    s.tensors = 1;
    for (const bool wrong : {false, true}) {
        const workload::Workload workload = s.workload(0);
        NumberTensors tensors(s, {.key = 7, .workers = 1, .channels = 1, .workload = workload});
        tensors.begin(0, 0, 0);
        while (const auto polled = tensors.poll_part(0)) {
            protocol::Tensor& part = *polled->tensor;
            std::vector<std::byte> lanes(part.size() * ATP_LANE_BYTES);
            part.load_floats(0, lanes);
            for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
                const auto value = std::bit_cast<float>(wire::load_u32(lanes.data() + at));
                const float rounded = std::rint(value * 0x1p26F) * 0x1p-26F + 0.0F;
                wire::store_u32(lanes.data() + at, std::bit_cast<std::uint32_t>(rounded));
            }
            if (wrong) lanes[lanes.size() / 2 + 3] ^= std::byte{1};
            part.store(0, lanes);
        }
        EXPECT_EQ(tensors.objection(0, 0).empty(), !wrong) << tensors.objection(0, 0);
    }
}

}  // namespace
}  // namespace atp::sim
