// SPDX-License-Identifier: Apache-2.0
// What a server does with fragments that have an owner. hazards/hazard_delivery_test.cc tests whole networks.
#include <gtest/gtest.h>

#include <cstdint>

#include "protocol/delivery.h"
#include "protocol/server.h"
#include "support/owned_server.h"

namespace atp::protocol {
namespace {

using ServerDelivery = testing::OwnedServer;

TEST_F(ServerDelivery, OwnerGetsTheSumAndAllOthersAnAckWithoutLanes) {
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        bench.handle(testing::make_packet(gradient_for({.owner = 1}, rank), {1, 2}));
    }
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].header.worker, 1U);
    EXPECT_EQ(answers[0].header.lanes, ATP_FLOAT32_LANES);
    EXPECT_EQ(answers[1].header.worker, ATP_WORKER_ALL);
    EXPECT_EQ(answers[1].header.lanes, 0U);
    EXPECT_EQ(answers[1].header.peer, 1U);
}

TEST_F(ServerDelivery, LanesOfOneSenderGoToAllWhenAllAreReady) {
    bench.handle(testing::make_packet(gradient_for({.owner = 2, .one_sender = true}, 2), {7, 8}));
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        EXPECT_TRUE(bench.answers().empty());
        bench.handle(ready(rank, 4));
    }
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].header.worker, 2U);
    EXPECT_EQ(answers[0].header.lanes, 0U);
    EXPECT_EQ(answers[1].header.worker, ATP_WORKER_ALL);
    EXPECT_EQ(answers[1].header.lanes, ATP_INT32_LANES);
    EXPECT_EQ(answers[1].header.flags, ATP_FLAG_ONE_SENDER | ATP_FLAG_PLAIN);
}

TEST_F(ServerDelivery, ExpectsMoreWhileAWorkerTakesAFragmentThatIsNotComplete) {
    EXPECT_FALSE(bench.server.expects_more());
    bench.handle(ready(1, 2));
    EXPECT_TRUE(bench.server.expects_more());
    for (std::uint32_t seq = 0; seq < 2; ++seq) {
        EXPECT_TRUE(bench.server.expects_more());
        for (std::uint16_t rank = 0; rank < 3; ++rank) {
            atp_header gradient = gradient_for({.owner = 1}, rank);
            gradient.seq = seq;
            bench.handle(testing::make_packet(gradient, {1, 2}));
        }
    }
    EXPECT_FALSE(bench.server.expects_more());
}

TEST_F(ServerDelivery, ProbesOfOneSenderAreAnsweredByWhatIsMissing) {
    const auto probe = [&](std::uint16_t rank) {
        atp_header header = gradient_for({.owner = 2, .one_sender = true}, rank);
        header.type = ATP_TYPE_PROBE;
        header.lanes = ATP_DTYPE_NONE;
        header.flags = ATP_FLAG_ONE_SENDER;
        header.argument = 0;
        bench.handle(testing::make_packet(header));
        const auto answers = bench.answers();
        return answers.size() == 1 ? answers[0].header : atp_header{};
    };
    const atp_header late_sender = probe(0);
    EXPECT_EQ(late_sender.type, ATP_TYPE_WAIT);
    EXPECT_EQ(late_sender.bitmap0, 1U << 2U);
    EXPECT_EQ(probe(2).type, ATP_TYPE_NACK);
    bench.handle(testing::make_packet(gradient_for({.owner = 2, .one_sender = true}, 2), {7, 8}));
    bench.handle(ready(0, 1));
    const atp_header late_receivers = probe(2);
    EXPECT_EQ(late_receivers.type, ATP_TYPE_WAIT);
    EXPECT_EQ(late_receivers.bitmap0, 1U << 1U | 1U << 2U);
}

TEST_F(ServerDelivery, OnlyReadysOfTheJobAndTheWindowCount) {
    atp_header ready = testing::gradient_of(bench.channel, bench.members, 0, 0);
    ready.lanes = ATP_DTYPE_NONE;
    ready.type = ATP_TYPE_READY;
    ready.argument = bench.channel.window() + 1;
    bench.handle(testing::make_packet(ready));
    EXPECT_EQ(bench.server.counters().ahead, 1U);
    ready.argument = 0;
    bench.handle(testing::make_packet(ready));
    EXPECT_EQ(bench.server.counters().stale, 1U);
    ready.argument = bench.channel.window();
    bench.handle(testing::make_packet(ready));
    EXPECT_EQ(bench.server.counters().readies, 1U);
    ready.worker = 99;
    bench.handle(testing::make_packet(ready));
    EXPECT_EQ(bench.server.counters().refused, 1U);
    EXPECT_FALSE(bench.server.has_transmit());
}

TEST_F(ServerDelivery, OwnersThatAreNotOfTheJobAreRefused) {
    for (const bool one_sender : {false, true}) {
        atp_header gradient = testing::gradient_of(bench.channel, bench.members, 0, 0);
        gradient.peer = one_sender ? ATP_WORKER_ALL : 99;
        if (one_sender) gradient.flags = ATP_FLAG_ONE_SENDER | ATP_FLAG_PLAIN | ATP_FLAG_BYPASS;
        bench.handle(testing::make_packet(gradient, {1}));
    }
    atp_header of_another = testing::gradient_of(bench.channel, bench.members, 0, 0);
    of_another.peer = 1;
    of_another.flags = ATP_FLAG_ONE_SENDER | ATP_FLAG_PLAIN | ATP_FLAG_BYPASS;
    bench.handle(testing::make_packet(of_another, {1}));
    EXPECT_EQ(bench.server.counters().refused, 3U);
    EXPECT_EQ(bench.server.counters().gradients, 0U);
}

TEST_F(ServerDelivery, ProbesWithOwnersThatAreNotOfTheJobAreRefused) {
    for (const bool one_sender : {false, true}) {
        for (const unsigned owner : {3U, 99U, ATP_WORKER_ALL}) {
            if (owner == ATP_WORKER_ALL && !one_sender) continue;  // an all-reduce
            atp_header probe = testing::gradient_of(bench.channel, bench.members, 0, 0);
            probe.type = ATP_TYPE_PROBE;
            probe.lanes = ATP_DTYPE_NONE;
            probe.flags = one_sender ? ATP_FLAG_ONE_SENDER : 0;
            probe.peer = static_cast<std::uint16_t>(owner);
            bench.handle(testing::make_packet(probe));
        }
    }
    EXPECT_EQ(bench.server.counters().refused, 5U);
    EXPECT_FALSE(bench.server.has_transmit());
    // the refused ones decided nothing for the record
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        bench.handle(testing::make_packet(testing::gradient_of(bench.channel, bench.members, rank, 0), {1, 2}));
    }
    EXPECT_EQ(bench.server.counters().mismatched, 0U);
    EXPECT_EQ(bench.server.counters().acks, 1U);
}

}  // namespace
}  // namespace atp::protocol
