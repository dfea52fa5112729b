// SPDX-License-Identifier: Apache-2.0
#include "policy/aggregators.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

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
    const Aggregators rule(false, in_flight);
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

TEST(Aggregators, SlotsInSequenceTakeIndicesInSequenceAtEveryAttempt) {
    Aggregators rule(true);
    rule.give_part(ServerBench::default_channel().job, 100);
    const protocol::ChannelConfig channel = channel_with(&rule, 3);  // fewer aggregators than the four slots
    EXPECT_EQ(channel.index(0, 0), 100U);
    EXPECT_EQ(channel.index(2, 0), 102U);
    EXPECT_EQ(channel.index(3, 0), 100U);
    EXPECT_EQ(channel.index(4, 7), 100U) << "sequence number 4 is slot 0 again";
}

TEST(Aggregators, PartOfTheTableShiftsTheHash) {
    Aggregators rule(false);
    rule.give_part(ServerBench::default_channel().job, 512);
    const protocol::ChannelConfig own = channel_with(nullptr, 256);
    const protocol::ChannelConfig part = channel_with(&rule, 256);
    for (std::uint32_t attempt = 0; attempt < 20; ++attempt) {
        EXPECT_EQ(part.index(1, attempt), 512 + own.index(1, attempt));
    }
}

TEST(Aggregators, WorkerAndServerUseTheirIndices) {
    protocol::WorkerConfig config = WorkerBench::default_config();
    Aggregators rule(true);
    rule.give_part(config.channel.job, 7000);
    rule.give_part(ServerBench::default_channel().job, 7000);
    config.channel.indices = &rule;
    WorkerBench worker(config);
    ASSERT_TRUE(worker.submit_fragments(3).has_value());
    std::uint32_t expected = 7000;
    for (const auto& packet : worker.packets()) EXPECT_EQ(packet.header.index, expected++);
    EXPECT_EQ(expected, 7003U);

    ServerBench server(*protocol::Membership::star(2), channel_with(&rule));
    server.handle(server.gradient(0, 2, 1));
    server.handle(server.gradient(1, 2, 1));
    const auto answers = server.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.index, 7002U);
    EXPECT_EQ(answers[0].header.argument, 7002U) << "no collision: the slot stays";
}

TEST(Aggregators, ServerMovesACollidedSlotWithinItsPartOfTheTable) {
    Aggregators rule(false);
    rule.give_part(ServerBench::default_channel().job, 5000);
    ServerBench server(*protocol::Membership::star(2), channel_with(&rule, 16));
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
    EXPECT_GE(*indices.begin(), 5000U);
    EXPECT_LT(*indices.rbegin(), 5016U);
}

}  // namespace
}  // namespace atp::policy
