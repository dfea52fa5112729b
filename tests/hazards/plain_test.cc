// SPDX-License-Identifier: Apache-2.0
// Unscaled integers in every state machine: sums are exact modulo 2^32, and scaled numbers are never added to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "support/integer_tensor.h"
#include "support/scenes.h"
#include "support/server_bench.h"
#include "support/worker_bench.h"

namespace atp::testing {
namespace {

using Integers = std::vector<std::int32_t>;
using protocol::Membership;

constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();

// Worker r contributes `values[r]` in each of its elements.
void submit_integers(Network& network, const Integers& values) {
    for (unsigned rank = 0; rank < values.size(); ++rank) {
        network.submit_integers(rank, Integers(elements_each, values[rank]));
    }
}

std::size_t count_overflowed(const Network& network) {
    return network.count_delivered([](const Flight& flight) { return flight.has(ATP_FLAG_OVERFLOW); });
}

// --- the network

TEST(Plain, IntegersSumExactlyOverOneAndTwoLevels) {
    // float32 cannot represent 2^24 + 1, so no conversion or scale can have been applied.
    const Integers values{16777217, -3, 1 << 30, 40};
    for (const NetworkConfig& config : {star(4), racks(2, 2), racks(4, 1)}) {
        Network network(config);
        submit_integers(network, values);
        network.run();
        EXPECT_TRUE(network.done());
        EXPECT_EQ(network.integers(3), Integers(elements_each, 16777217 - 3 + (1 << 30) + 40));
        EXPECT_TRUE(network.sums_are_right());
        EXPECT_EQ(network.server().counters().added_here, 0U) << "the switches added all gradients";
        EXPECT_EQ(network.server().counters().audit_failures, 0U);
    }
}

TEST(Plain, EveryPacketOfATensorCarriesThePlainFlag) {
    Network network(racks(2, 2));
    submit_integers(network, {1, 2, 3, 4});
    network.run();
    EXPECT_TRUE(network.done());
    for (const Flight& flight : network.delivered()) {
        EXPECT_TRUE(flight.has(ATP_FLAG_PLAIN));
        EXPECT_EQ(flight.header().lanes, ATP_INT32_LANES);
    }
}

TEST(Plain, LowestIntegerIsSummedWithoutANack) {
    for (const NetworkConfig& config : {star(4), racks(2, 2)}) {
        Network network(config);
        submit_integers(network, {lowest, highest, 0, 1});
        network.run();
        EXPECT_TRUE(network.done());
        EXPECT_EQ(network.integers(0), Integers(elements_each, 0));
        EXPECT_EQ(network.server().counters().nacks, 0U) << "no sum exceeded 32 bits";
    }
}

TEST(Plain, OverflowInASwitchIsFetchedUnaggregatedAndWraps) {
    for (const NetworkConfig& config : {star(4), racks(2, 2)}) {
        for (const Integers& values : {Integers{highest, 1, 5, -7}, {lowest, -1, 0, 0}, {lowest, lowest, lowest, -9}}) {
            Network network(config);
            submit_integers(network, values);
            EXPECT_TRUE(network.finish());
            EXPECT_GT(count_overflowed(network), 0U);
            EXPECT_TRUE(network.sums_are_right());
            EXPECT_EQ(network.server().counters().float_fragments, 0U);
            EXPECT_EQ(network.occupied(), 0U);
        }
    }
}

TEST(Plain, H24_FlushedPartialSumStaysPlain) {
    Network network(star(3));
    submit_integers(network, {5, 6, highest});
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 2); });
    network.run();
    network.inject({server_node, rack_node(0), flush_of(first_sending(network, 0), 0)});
    network.run();  // the server includes {0, 1}
    EXPECT_EQ(network.server().counters().refused, 0U);
    EXPECT_EQ(network.server().counters().gradients, 1U);
    network.release();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Plain, PlainAndScaledTensorsAreSummedUnderAllFaults) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        NetworkConfig config = seed % 2 == 0 ? star(4) : racks(2, 2);
        config.aggregators = seed % 3 == 0 ? 2 : 1024;
        Network network(config);
        Random random(seed);
        for (int tensor = 0; tensor < 4; ++tensor) {
            for (unsigned rank = 0; rank < 4; ++rank) {
                Integers values(elements_each * 3 + 1);
                for (std::int32_t& value : values) value = random.chance(0.2) ? lowest : random.number();
                network.submit_integers(rank, values);
            }
            network.submit_all(elements_each * 2, own_value);
        }
        const Faults faults{.loss = 0.05, .duplication = 0.1, .reordering = 0.5, .marking = 0.05};
        ASSERT_TRUE(network.finish_among(faults, seed)) << seed;
        ASSERT_TRUE(network.sums_are_right()) << seed;
        ASSERT_EQ(network.server().counters().audit_failures, 0U) << seed;
    }
}

TEST(Plain, H24_WorkersThatDisagreeAboutPlainGetNoSum) {
    for (const NetworkConfig& config : {star(2), racks(2, 1)}) {
        Network network(config);
        network.submit_integers(0, Integers(elements_each, 7));
        network.submit(1, std::vector<float>(elements_each, 7.0F));
        EXPECT_TRUE(network.finish(20));
        EXPECT_EQ(network.server().counters().completed, 0U);
        EXPECT_GT(network.server().counters().mismatched, 0U);
        for (unsigned rank = 0; rank < 2; ++rank) {
            ASSERT_EQ(network.events(rank).size(), 1U);
            EXPECT_EQ(network.events(rank)[0].kind, protocol::WorkerEvent::Kind::mismatched);
        }
        EXPECT_EQ(network.integers(0), Integers(elements_each, 0));
    }
}

// --- the server

TEST(PlainServer, AcksIntegersModulo2To32) {
    ServerBench bench(*Membership::star(3));
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.gradient(rank, 0, highest, ATP_FLAG_PLAIN));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_ACK);
    EXPECT_EQ(answers[0].header.lanes, ATP_INT32_LANES);
    EXPECT_NE(answers[0].header.flags & ATP_FLAG_PLAIN, 0);
    EXPECT_EQ(answers[0].integers, (Lanes{highest - 2, -highest + 2})) << "3 * (2^31 - 1) is 2^31 - 3 modulo 2^32";
}

TEST(PlainServer, RepeatedResultStaysPlain) {
    ServerBench bench(*Membership::star(2));
    bench.complete(0, ATP_FLAG_PLAIN);
    bench.handle(bench.probe(1, 0));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.lanes, ATP_INT32_LANES);
    EXPECT_NE(answers[0].header.flags & ATP_FLAG_PLAIN, 0);
    EXPECT_EQ(answers[0].integers, (Lanes{2, -2}));
}

TEST(PlainServer, GradientThatDiffersInPlainFromTheFirstMismatchesTheFragment) {
    for (const unsigned first : {0U, unsigned{ATP_FLAG_PLAIN}}) {
        const unsigned other = first ^ ATP_FLAG_PLAIN;
        ServerBench bench(*Membership::star(2));
        bench.handle(bench.gradient(0, 0, 5, first));
        bench.handle(bench.gradient(1, 0, 666, other));
        EXPECT_EQ(bench.server.counters().mismatched, 1U);
        const auto answers = bench.answers();
        ASSERT_EQ(answers.size(), 1U);
        EXPECT_EQ(answers[0].header.type, ATP_TYPE_WAIT);
        EXPECT_EQ(answers[0].header.argument, ATP_WAIT_MISMATCHED);
        bench.handle(bench.gradient(1, 0, 6, first));
        EXPECT_EQ(bench.server.counters().completed, 0U) << "the fragment stays mismatched";
    }
}

TEST(PlainServer, ProbeOrOverflowedSumDoesNotDecideWhetherTheFragmentIsPlain) {
    ServerBench bench(*Membership::star(2));
    bench.handle(bench.probe(0, 0));
    bench.handle(bench.members_gradient(0, 0x3, 0, 1, ATP_FLAG_OVERFLOW | ATP_FLAG_PLAIN));
    bench.handle(bench.gradient(0, 0, 5, ATP_FLAG_BYPASS));
    bench.handle(bench.gradient(1, 0, 6, ATP_FLAG_BYPASS));
    EXPECT_EQ(bench.server.counters().refused, 0U);
    EXPECT_EQ(bench.server.counters().completed, 1U);
}

TEST(PlainServer, H24_FloatsOfAPlainFragmentAreMismatched) {
    ServerBench bench(*Membership::star(2));
    bench.handle(bench.gradient(0, 0, 5, ATP_FLAG_PLAIN));
    bench.handle(bench.floats(1, 0, 1e30F));
    EXPECT_EQ(bench.server.counters().mismatched, 1U);
    Bytes plain_floats = bench.floats(1, 1, 1.0F);
    atp_header header = header_in(plain_floats);
    header.flags |= ATP_FLAG_PLAIN;
    wire::encode_header(header, plain_floats);
    bench.handle(plain_floats);
    EXPECT_EQ(bench.server.counters().refused, 1U);
    EXPECT_EQ(bench.server.counters().float_fragments, 0U);
    for (const ServerAnswer& answer : bench.answers()) EXPECT_NE(answer.header.lanes, ATP_FLOAT32_LANES);
}

TEST(PlainServer, PlainRecordCanBeReusedForAScaledFragment) {
    ServerBench bench(*Membership::star(2));
    const std::uint32_t records = 2U * bench.channel.window();
    for (std::uint32_t seq = 0; seq < 2 * records; ++seq) bench.complete(seq, seq < records ? ATP_FLAG_PLAIN : 0);
    EXPECT_EQ(bench.server.counters().completed, 2 * records);
    EXPECT_EQ(bench.server.counters().refused, 0U);
}

// --- the worker

struct PlainWorker {
    explicit PlainWorker(Integers in) : input(std::move(in)), output(input.size()), tensor(input, output) {
        EXPECT_TRUE(bench.worker.submit(tensor, bench.now).has_value());
    }
    [[nodiscard]] Bytes ack(std::uint32_t seq, const Lanes& lanes) const {
        return make_packet(bench.answer(ATP_TYPE_ACK, ATP_DTYPE_INT32, seq, ATP_FLAG_PLAIN), lanes);
    }

    WorkerBench bench;
    Integers input;
    Integers output;
    IntegerTensor tensor;
};

TEST(PlainWorker, SendsUnscaledIntegersWithThePlainFlag) {
    PlainWorker plain({lowest, highest, -1});
    const auto packets = plain.bench.packets();
    ASSERT_EQ(packets.size(), 2U);
    for (const WorkerPacket& packet : packets) {
        EXPECT_TRUE(packet.has(ATP_FLAG_PLAIN));
        EXPECT_EQ(packet.header.lanes, ATP_INT32_LANES);
    }
    EXPECT_EQ(lanes_in(packets[0].bytes), (Lanes{lowest, highest}));
    EXPECT_EQ(lanes_in(packets[1].bytes), (Lanes{-1}));
}

TEST(PlainWorker, ResendKeepsThePlainFlag) {
    PlainWorker plain({1, 2});
    (void)plain.bench.packets();
    for (const unsigned flags : {0U, unsigned{ATP_FLAG_BYPASS}}) {
        plain.bench.handle(plain.bench.nack(0, ATP_DTYPE_INT32, flags));
        const auto again = plain.bench.packets();
        ASSERT_EQ(again.size(), 1U);
        EXPECT_TRUE(again[0].has(ATP_FLAG_PLAIN));
        EXPECT_TRUE(again[0].has(ATP_FLAG_RESEND));
        EXPECT_EQ(again[0].has(ATP_FLAG_BYPASS), flags != 0);
    }
}

TEST(PlainWorker, IntegersAreDeliveredAndFloatsRefused) {
    PlainWorker plain({1, 2, 3});
    (void)plain.bench.packets();
    plain.bench.handle(plain.bench.ack(0, 666.0F));
    EXPECT_EQ(plain.bench.worker.counters().refused, 1U);
    EXPECT_EQ(plain.output, (Integers{0, 0, 0}));
    plain.bench.handle(plain.ack(1, {lowest}));
    plain.bench.handle(plain.ack(0, {10, highest}));
    EXPECT_EQ(plain.output, (Integers{10, highest, lowest})) << "results may arrive in any order";
    EXPECT_EQ(plain.bench.events().size(), 1U);
}

TEST(PlainWorker, IntegersForAScaledTensorAreRefused) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2}).has_value());
    (void)bench.packets();
    bench.handle(make_packet(bench.answer(ATP_TYPE_ACK, ATP_DTYPE_INT32, 0, ATP_FLAG_PLAIN), {666, 666}));
    EXPECT_EQ(bench.worker.counters().refused, 1U);
    EXPECT_EQ(bench.worker.counters().acks, 0U);
    bench.handle(bench.ack(0, 4));
    EXPECT_EQ(bench.outputs[0], (std::vector<float>{4, 4}));
}

TEST(PlainWorker, RequestForFloatsIsRefused) {
    PlainWorker plain({1, 2});
    (void)plain.bench.packets();
    plain.bench.handle(plain.bench.nack(0, ATP_DTYPE_FLOAT32, ATP_FLAG_BYPASS));
    EXPECT_EQ(plain.bench.worker.counters().refused, 1U);
    EXPECT_EQ(plain.bench.worker.counters().nacks, 0U);
    EXPECT_TRUE(plain.bench.packets().empty());
}

}  // namespace
}  // namespace atp::testing
