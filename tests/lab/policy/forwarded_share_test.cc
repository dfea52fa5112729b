// SPDX-License-Identifier: Apache-2.0
#include "policy/forwarded_share.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "support/worker_bench.h"

namespace atp::policy {
namespace {

using testing::WorkerBench;

TEST(ForwardedShare, MarkedGradientsPassTheSwitchesAsIfTheFirstHadForwardedThem) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit_fragments(3).has_value());
    for (auto& packet : bench.packets()) {
        ForwardedShare(1, 5).mark(packet.bytes);
        wire::Packet marked;
        ASSERT_EQ(wire::decode(packet.bytes, marked), wire::DecodeError::none);
        EXPECT_EQ(marked.header.flags, packet.header.flags | ATP_FLAG_BYPASS);
        EXPECT_EQ(marked.header.hop, packet.header.hop + 1);
        EXPECT_EQ(marked.header.seq, packet.header.seq);
    }
}

TEST(ForwardedShare, DependsOnTheFragmentAndTheSeedAlone) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit_fragments(1).has_value());
    auto packet = bench.packets().front().bytes;
    const auto marks = [&](std::uint32_t seq, std::uint64_t seed) {
        auto copy = packet;
        wire::store_u32(copy.data() + ATP_OFFSET_SEQ, seq);
        const auto before = copy;
        ForwardedShare(0.25, seed).mark(copy);
        return copy != before;
    };
    unsigned marked = 0;
    unsigned differ = 0;
    for (std::uint32_t seq = 0; seq < 4000; ++seq) {
        const bool is_marked = marks(seq, 1);
        if (is_marked) ++marked;
        if (marks(seq, 2) != is_marked) ++differ;
        EXPECT_EQ(marks(seq, 1), is_marked);
    }
    EXPECT_NEAR(marked, 1000, 100);
    EXPECT_GT(differ, 1000U);
}

TEST(ForwardedShare, OtherPacketsStayAsTheyAre) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit_fragments(1).has_value());
    (void)bench.packets();
    bench.expire();
    auto probes = bench.packets();
    ASSERT_FALSE(probes.empty());
    for (auto& probe : probes) {
        const auto before = probe.bytes;
        ForwardedShare(1, 5).mark(probe.bytes);
        EXPECT_EQ(probe.bytes, before);
    }
}

}  // namespace
}  // namespace atp::policy
