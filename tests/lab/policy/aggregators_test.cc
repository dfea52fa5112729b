// SPDX-License-Identifier: Apache-2.0
#include "policy/aggregators.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>

#include "protocol/worker.h"
#include "support/server_bench.h"
#include "support/worker_bench.h"

namespace atp::policy {
namespace {

using testing::ServerBench;
using testing::WorkerBench;

protocol::ChannelConfig channel_with(const protocol::IndexRule* indices, std::uint32_t aggregators = 1024) {
    protocol::ChannelConfig channel = ServerBench::default_channel();
    channel.aggregators = aggregators;
    channel.indices = indices;
    return channel;
}

TEST(Aggregators, WithoutPartsHaveTheIndicesOfTheProtocol) {
    constexpr std::uint32_t in_flight = 16;
    const Aggregators rule({.in_flight = in_flight});
    protocol::ChannelConfig own = channel_with(nullptr);
    protocol::ChannelConfig hooked = channel_with(&rule);
    own.window_log2 = hooked.window_log2 = 6;
    ASSERT_EQ(own.window(), protocol::slots_for(in_flight));
    for (std::uint32_t seq = 0; seq < 2 * own.window(); ++seq) {
        for (std::uint32_t attempt = 0; attempt < 3; ++attempt) {
            EXPECT_EQ(hooked.index(seq, attempt), own.index(seq, attempt)) << seq << ", " << attempt;
        }
    }
}

TEST(Aggregators, WithoutANumberOfPacketsHaveTheBaseSlotsOfTheProtocol) {
    EXPECT_EQ(Aggregators({.in_sequence = true}).base_slots(1024), protocol::usual_base_slots(1024));
    EXPECT_EQ(Aggregators({.in_sequence = true, .in_flight = 0}).base_slots(1024), 1024U);
}

TEST(Aggregators, SlotsInSequenceTakeIndicesInSequenceAtEveryAttempt) {
    const Aggregators rule({.in_sequence = true, .in_flight = 0});
    const protocol::ChannelConfig channel = channel_with(&rule, 3);  // fewer aggregators than the four slots
    EXPECT_EQ(channel.index(0, 0), 0U);
    EXPECT_EQ(channel.index(2, 0), 2U);
    EXPECT_EQ(channel.index(3, 0), 0U);
    EXPECT_EQ(channel.index(4, 7), 0U) << "sequence number 4 is slot 0 again";
}

TEST(Aggregators, JobTakesThePartOfItsNumber) {
    const Aggregators rule({.in_sequence = true, .parts = 3, .in_flight = 0});
    protocol::ChannelConfig channel = channel_with(&rule, 302);
    for (const auto& [job, first] : {std::pair{0U, 0U}, {1U, 100U}, {2U, 200U}, {3U, 0U}, {0xFFFFFFFFU, 0U}}) {
        channel.job = job;
        EXPECT_EQ(channel.index(0, 0), first) << job;
        EXPECT_EQ(channel.index(3, 0), first + 3) << job;
    }
}

TEST(Aggregators, IndicesExistEvenIfPartsOutnumberAggregators) {
    const Aggregators rule({.parts = 8, .in_flight = 0});
    protocol::ChannelConfig channel = channel_with(&rule, 3);
    for (channel.job = 0; channel.job < 9; ++channel.job) EXPECT_LT(channel.index(1, 0), 3U) << channel.job;
}

TEST(Aggregators, PartOfTheTableShiftsTheHash) {
    const Aggregators rule({.parts = 2, .in_flight = 0});
    protocol::ChannelConfig own = channel_with(nullptr, 256);
    protocol::ChannelConfig part = channel_with(&rule, 512);
    own.job = part.job = 7;  // in the second part
    for (std::uint32_t attempt = 0; attempt < 20; ++attempt) {
        EXPECT_EQ(part.index(1, attempt), 256 + own.index(1, attempt));
    }
}

TEST(Aggregators, WorkerAndServerUseTheirIndices) {
    protocol::WorkerConfig config = WorkerBench::default_config();
    const Aggregators rule({.in_sequence = true, .parts = 2, .in_flight = 0});
    protocol::ChannelConfig of_server = channel_with(&rule, 14'000);
    config.channel.aggregators = of_server.aggregators;
    config.channel.job = of_server.job = 1;
    config.channel.indices = &rule;
    WorkerBench worker(config);
    ASSERT_TRUE(worker.submit_fragments(3).has_value());
    std::uint32_t expected = 7000;
    for (const auto& packet : worker.packets()) EXPECT_EQ(packet.header.index, expected++);
    EXPECT_EQ(expected, 7003U);

    ServerBench server(*protocol::Membership::star(2), of_server);
    server.handle(server.gradient(0, 2, 1));
    server.handle(server.gradient(1, 2, 1));
    const auto answers = server.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.index, 7002U);
    EXPECT_EQ(answers[0].header.argument, 7002U) << "no collision: the slot stays";
}

TEST(Aggregators, ServerMovesACollidedSlotWithinItsPartOfTheTable) {
    const Aggregators rule({.parts = 3, .in_flight = 0});
    protocol::ChannelConfig channel = channel_with(&rule, 48);
    channel.job = 1;
    ServerBench server(*protocol::Membership::star(2), channel);
    std::set<std::uint32_t> indices;
    for (std::uint32_t round = 0; round < 40; ++round) {
        const std::uint32_t seq = round * server.channel.window();
        for (std::uint32_t slot = 0; slot < server.channel.window(); ++slot) {
            const unsigned collision = slot == 0 ? unsigned{ATP_FLAG_COLLISION} : 0U;
            server.handle(server.gradient(0, seq + slot, 1, collision));
            server.handle(server.gradient(1, seq + slot, 1, collision));
            for (const auto& answer : server.answers()) {
                if (answer.header.type == ATP_TYPE_ACK) indices.insert(answer.header.argument);
            }
        }
    }
    EXPECT_GT(server.server.counters().remapped, 10U);
    EXPECT_GT(indices.size(), 5U);
    EXPECT_GE(*indices.begin(), 16U);
    EXPECT_LT(*indices.rbegin(), 32U);
}

}  // namespace
}  // namespace atp::policy
