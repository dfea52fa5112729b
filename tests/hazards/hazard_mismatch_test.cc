// SPDX-License-Identifier: Apache-2.0
// If the operations of workers differ for the same fragment, every worker gets an error, and none gets a sum. The
// length of the last fragment reveals that tensor sizes differ, so this file also tests short last fragments.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/scenes.h"
#include "support/server_bench.h"
#include "support/worker_bench.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using protocol::Unit;
using protocol::WorkerEvent;
using Values = std::vector<float>;

bool is_mismatch(const Flight& flight) {
    return flight.is(ATP_TYPE_WAIT) && flight.header().argument == ATP_WAIT_MISMATCHED;
}

void expect_error_everywhere(Network& network) {
    EXPECT_TRUE(network.finish(60));
    for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
        ASSERT_EQ(network.events(rank).size(), 1U) << rank;
        EXPECT_EQ(network.events(rank)[0].kind, WorkerEvent::Kind::mismatched) << rank;
        EXPECT_TRUE(network.worker(rank).failed());
        for (const float sum : network.output(rank)) EXPECT_EQ(sum, 0.0F);
        for (const std::int32_t sum : network.integers(rank)) EXPECT_EQ(sum, 0);
    }
    EXPECT_EQ(network.server().counters().completed, 0U);
    EXPECT_GT(network.server().counters().mismatched, 0U);
}

// Submits one operation for a rank.
using Submit = std::function<void(Network&, unsigned)>;

void usual(Network& network, unsigned rank) { network.submit(rank, Values(elements_each, 1.0F), never, 1); }

void expect_error_in_every_order(const Submit& unusual) {
    for (const NetworkConfig& config : {star(2), star(3), racks(2, 1), racks(2, 2), rack_and_direct()}) {
        const unsigned workers = config.membership.workers();
        for (unsigned odd = 0; odd < workers; ++odd) {
            for (unsigned late = 0; late < workers; ++late) {
                SCOPED_TRACE(std::to_string(workers) + " workers in " + std::to_string(config.membership.units()) +
                             " units, odd " + std::to_string(odd) + ", late " + std::to_string(late));
                Network network(config);
                for (unsigned rank = 0; rank < workers; ++rank) (rank == odd ? unusual : usual)(network, rank);
                network.hold_next([late](const Flight& flight) { return is_gradient_of(flight, late); });
                network.run();
                network.release();
                expect_error_everywhere(network);
            }
        }
    }
}

TEST(Hazard, H40_OneOtherPurposeFailsAllRanksInAnyOrder) {
    expect_error_in_every_order(
        [](Network& network, unsigned rank) { network.submit(rank, Values(elements_each, 1.0F), never, 2); });
}

TEST(Hazard, H40_OneOtherTensorSizeFailsAllRanksInAnyOrder) {
    expect_error_in_every_order(
        [](Network& network, unsigned rank) { network.submit(rank, Values(elements_each - 1, 1.0F), never, 1); });
}

TEST(Hazard, H40_OnePlainTensorAmongScaledOnesFailsAllRanksInAnyOrder) {
    expect_error_in_every_order([](Network& network, unsigned rank) {
        network.submit_integers(rank, std::vector<std::int32_t>(elements_each, 1), 1);
    });
}

TEST(Hazard, H40_FloatsOfOneOtherPurposeFailAllRanksInAnyOrder) {
    expect_error_in_every_order(
        [](Network& network, unsigned rank) { network.submit(rank, Values(elements_each, 1e30F), never, 2); });
}

TEST(Hazard, H40_GradientThatDisagreesIsNotAdded) {
    // The aggregator is free: the first packet claims it, and the second, which disagrees, is a misfit and not added.
    Network network(star(2));
    usual(network, 0);
    network.submit(1, Values(elements_each, 1.0F), never, 2);
    network.run();
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_MISFIT), 1U);
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_ADDED), 0U);
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_COMPLETED), 0U);
    expect_error_everywhere(network);
}

TEST(Hazard, H40_LostMismatchIsRepeatedAfterAProbe) {
    for (const NetworkConfig& config : {star(3), racks(2, 2), rack_and_direct()}) {
        Network network(config);
        const unsigned workers = config.membership.workers();
        for (unsigned rank = 0; rank + 1 < workers; ++rank) usual(network, rank);
        network.submit(workers - 1, Values(elements_each, 1.0F), never, 2);
        int dropped = 0;
        network.set_rule([&dropped](Flight& flight) {
            if (!is_mismatch(flight) || dropped == 12) return Network::Disposition::deliver;
            ++dropped;
            return Network::Disposition::drop;
        });
        expect_error_everywhere(network);
        EXPECT_EQ(dropped, 12);
        EXPECT_GT(network.count_delivered([](const Flight& flight) { return flight.is(ATP_TYPE_PROBE); }), 0U);
    }
}

TEST(Hazard, H40_DisagreementUnderAllFaultsDeliversNoSum) {
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        NetworkConfig config = seed % 2 == 0 ? star(3) : racks(2, 2);
        config.aggregators = seed % 3 == 0 ? 1 : 1024;
        Network network(config);
        const unsigned workers = config.membership.workers();
        for (unsigned rank = 0; rank < workers; ++rank) {
            network.submit(rank, Values(elements_each * 5, 1.0F), never, rank == seed % workers ? 2 : 1);
        }
        const Faults faults{.loss = 0.05, .duplication = 0.1, .reordering = 0.5, .marking = 0.05};
        ASSERT_TRUE(network.finish_among(faults, seed)) << seed;
        for (unsigned rank = 0; rank < workers; ++rank) {
            ASSERT_EQ(network.events(rank).back().kind, WorkerEvent::Kind::mismatched) << seed;
        }
        ASSERT_EQ(network.server().counters().completed, 0U) << seed;
    }
}

TEST(Hazard, H40_OperationsBeforeTheDisagreementComplete) {
    Network network(racks(2, 2));
    network.submit_all(elements_each * 2, own_value);
    ASSERT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    for (unsigned rank = 0; rank < 4; ++rank) {
        network.submit(rank, Values(elements_each, 1.0F), never, rank == 3 ? 2 : 1);
    }
    EXPECT_TRUE(network.finish());
    for (unsigned rank = 0; rank < 4; ++rank) {
        ASSERT_EQ(network.events(rank).size(), 2U);
        EXPECT_EQ(network.events(rank)[0].kind, WorkerEvent::Kind::completed);
        EXPECT_EQ(network.events(rank)[1].kind, WorkerEvent::Kind::mismatched);
    }
}

// --- the server

Bytes with_purpose(Bytes packet, std::uint32_t purpose) {
    wire::store_u32(packet.data() + ATP_OFFSET_ARGUMENT, purpose);
    return packet;
}

Bytes with_lanes(Bytes packet, std::size_t lanes) {
    packet.resize(ATP_HEADER_BYTES + lanes * ATP_LANE_BYTES);
    return packet;
}

void expect_mismatch_answer(const ServerAnswer& answer, std::uint16_t worker) {
    EXPECT_EQ(answer.header.type, ATP_TYPE_WAIT);
    EXPECT_EQ(answer.header.argument, ATP_WAIT_MISMATCHED);
    EXPECT_EQ(answer.header.worker, worker);
}

TEST(MismatchServer, MismatchIsSentToEveryUnitAtOnce) {
    ServerBench bench(*Membership::racks(2, 2));
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(with_purpose(bench.gradient(3, 0, 1), 9));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 2U);
    expect_mismatch_answer(answers[0], ATP_WORKER_ALL);
    expect_mismatch_answer(answers[1], ATP_WORKER_ALL);
    EXPECT_EQ(answers[0].transmit.units | answers[1].transmit.units, 0x3U);
    EXPECT_EQ(bench.server.counters().mismatched, 1U);
    EXPECT_EQ(bench.server.counters().gradients, 1U);
}

TEST(MismatchServer, LateGradientOfAMismatchedFragmentGetsTheMismatchAgainAndIsNotAdded) {
    ServerBench bench(*Membership::star(3));
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(with_purpose(bench.gradient(1, 0, 1), 9));
    (void)bench.answers();
    for (std::uint16_t rank = 1; rank < 3; ++rank) {  // with the purpose of the first gradient
        bench.handle(bench.gradient(rank, 0, 1));
        const auto answers = bench.answers();
        ASSERT_EQ(answers.size(), 1U);
        expect_mismatch_answer(answers[0], ATP_WORKER_ALL);
    }
    EXPECT_EQ(bench.server.counters().completed, 0U);
    EXPECT_EQ(bench.server.counters().mismatched, 3U);
}

TEST(MismatchServer, ProbeOfAMismatchedFragmentGetsTheMismatch) {
    ServerBench bench(*Membership::star(3));
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(with_purpose(bench.gradient(1, 0, 1), 9));
    (void)bench.answers();
    for (int time = 0; time < 2; ++time) {
        for (std::uint16_t rank = 0; rank < 3; ++rank) {
            bench.handle(bench.probe(rank, 0));
            const auto answers = bench.answers();
            ASSERT_EQ(answers.size(), 1U);
            expect_mismatch_answer(answers[0], rank);
        }
    }
}

TEST(MismatchServer, ProbeOfTheNextFragmentGetsAnOrdinaryWait) {
    ServerBench bench(*Membership::star(3));
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(with_purpose(bench.gradient(1, 0, 1), 9));
    bench.handle(bench.gradient(0, 1, 1));
    (void)bench.answers();
    bench.handle(bench.probe(0, 1));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_WAIT);
    EXPECT_EQ(answers[0].header.argument, 0U);
}

TEST(MismatchServer, AckHasTheLanesOfItsFragmentIfTheRecordIsReused) {
    protocol::ChannelConfig channel = ServerBench::default_channel();
    channel.lanes = 5;
    ServerBench bench(*Membership::star(2), channel);
    for (std::uint32_t seq = 0; seq < 40; ++seq) {  // uses each of the eight records five times
        const std::size_t lanes = 1 + seq % 5;
        for (std::uint16_t rank = 0; rank < 2; ++rank) {
            bench.handle(with_lanes(bench.gradient(rank, seq, static_cast<std::int32_t>(seq + 1)), lanes));
        }
        const auto answers = bench.answers();
        ASSERT_EQ(answers.size(), 1U);
        ASSERT_EQ(answers[0].sums.size(), lanes);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const auto sum = 2 * static_cast<float>(seq + 1);
            EXPECT_EQ(answers[0].sums[lane], lane % 2 == 0 ? sum : -sum);
        }
    }
}

TEST(MismatchServer, ShortFloatFragmentAfterALongOneHasItsOwnSum) {
    protocol::ChannelConfig channel = ServerBench::default_channel();
    channel.lanes = 4;
    ServerBench bench(*Membership::star(2), channel);
    const std::uint32_t records = 2 * channel.window();
    for (std::uint32_t seq = 0; seq <= records; ++seq) {
        const std::size_t lanes = seq == records ? 1 : 4;
        for (std::uint16_t rank = 0; rank < 2; ++rank) bench.handle(with_lanes(bench.floats(rank, seq, 1e30F), lanes));
        bool acknowledged = false;
        for (const ServerAnswer& answer : bench.answers()) {
            if (answer.header.type != ATP_TYPE_ACK) continue;
            acknowledged = true;
            EXPECT_EQ(answer.sums, Values(lanes, 2e30F));
        }
        EXPECT_TRUE(acknowledged) << seq;
    }
}

TEST(MismatchServer, AuditLaneOfAShortAckIsItsOwnAfterALongerFragment) {
    protocol::ChannelConfig channel = ServerBench::default_channel();
    channel.lanes = 4;
    channel.audit = true;
    ServerBench bench(*Membership::star(1), channel);
    const std::uint32_t records = 2 * channel.window();
    for (std::uint32_t seq = 0; seq <= records; ++seq) {
        const std::size_t lanes = seq == records ? 2 : 4;
        Bytes packet = with_lanes(bench.gradient(0, seq, 7, ATP_FLAG_AUDIT), lanes);
        wire::store_u32(packet.data() + packet.size() - ATP_LANE_BYTES, channel.audit_of(seq, 0));
        bench.handle(packet);
        const auto answers = bench.answers();
        ASSERT_EQ(answers.size(), 1U);
        EXPECT_EQ(answers[0].sums.size(), lanes);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(answers[0].sums.back()), channel.result_audit_of(seq, 0));
    }
    bench.handle(with_lanes(bench.gradient(0, records + 1, 7, ATP_FLAG_AUDIT), 1));
    EXPECT_EQ(bench.server.counters().refused, 1U) << "a gradient with an audit lane and no element";
}

// --- the worker

TEST(MismatchWorker, MismatchFailsEveryTensorAtOnce) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2, 3}).has_value());
    ASSERT_TRUE(bench.submit({4}).has_value());
    (void)bench.packets();
    bench.handle(bench.mismatch(1));
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 2U);
    for (const WorkerEvent& event : events) EXPECT_EQ(event.kind, WorkerEvent::Kind::mismatched);
    EXPECT_TRUE(bench.worker.failed());
    EXPECT_TRUE(bench.packets().empty());
    EXPECT_EQ(bench.worker.poll_timeout(), never);
    EXPECT_FALSE(bench.submit({5}).has_value());
}

TEST(MismatchWorker, MismatchOfAFragmentNotInFlightIsIgnored) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2, 3, 4, 5, 6}).has_value());
    (void)bench.packets();
    bench.handle(bench.ack(1));
    for (const std::uint32_t seq : {1U, 3U, 0xFFFFFFFFU}) bench.handle(bench.mismatch(seq));
    Bytes other = bench.mismatch(0);
    wire::store_u64(other.data() + ATP_OFFSET_TOKEN, 9);
    bench.handle(other);
    Bytes unknown = bench.mismatch(0);
    wire::store_u32(unknown.data() + ATP_OFFSET_ARGUMENT, 2);
    bench.handle(unknown);
    EXPECT_FALSE(bench.worker.failed());
    EXPECT_TRUE(bench.events().empty());
    bench.handle(bench.ack(0));
    bench.handle(bench.ack(2));
    EXPECT_EQ(bench.events().size(), 1U);
}

TEST(MismatchWorker, ResultOfAnotherLengthIsRefused) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit({1, 2, 3}).has_value());
    (void)bench.packets();
    const atp_header last = bench.answer(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32, 1);
    bench.handle(make_float_packet(last, {666, 666}));
    EXPECT_EQ(bench.worker.counters().refused, 1U);
    EXPECT_EQ(bench.outputs[0], Values(3, 0.0F));
    bench.handle(make_float_packet(last, {9}));
    EXPECT_EQ(bench.outputs[0], (Values{0, 0, 9}));
}

// --- the network

TEST(ShortFragments, TensorsOf1To29ElementsAreSummedThroughOneAggregator) {
    for (const NetworkConfig& like : {star(3), racks(2, 2), rack_and_direct()}) {
        for (const bool audit : {true, false}) {
            NetworkConfig config = like;
            config.aggregators = 1;
            config.channel.audit = audit;
            Network network(config);
            for (std::size_t elements = 1; elements < 30; ++elements) network.submit_all(elements, own_value);
            EXPECT_TRUE(network.finish());
            EXPECT_TRUE(network.sums_are_right());
            EXPECT_EQ(network.server().counters().mismatched, 0U);
            EXPECT_EQ(network.server().counters().audit_failures, 0U);
        }
    }
}

TEST(ShortFragments, FloatsAndIntegersAreSummedUnderAllFaults) {
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        NetworkConfig config = seed % 2 == 0 ? star(4) : racks(2, 2);
        config.aggregators = seed % 3 == 0 ? 2 : 1024;
        Network network(config);
        for (std::size_t elements = 1; elements < 8; ++elements) {
            network.submit_all(elements, own_value);
            for (unsigned rank = 0; rank < 4; ++rank) {
                network.submit_integers(rank, std::vector<std::int32_t>(elements, static_cast<std::int32_t>(rank)));
            }
        }
        const Faults faults{.loss = 0.05, .duplication = 0.1, .reordering = 0.5, .marking = 0.05};
        ASSERT_TRUE(network.finish_among(faults, seed)) << seed;
        ASSERT_TRUE(network.sums_are_right()) << seed;
        ASSERT_EQ(network.server().counters().mismatched, 0U) << seed;
    }
}

TEST(ShortFragments, OverflowOrInfinityInAShortFragmentGivesTheRightSum) {
    for (const NetworkConfig& config : {star(3), racks(2, 2)}) {
        const unsigned workers = config.membership.workers();
        const auto sum_of = [&](float value) {
            Network network(config);
            for (unsigned rank = 0; rank < workers; ++rank) {
                Values values(elements_each + 1, 1.0F);
                values.back() = value;
                network.submit(rank, values);
            }
            EXPECT_TRUE(network.finish());
            return network.output(0).back();
        };
        EXPECT_EQ(sum_of(20.0F), 20.0F * static_cast<float>(workers)) << "each value fits in int32, the sum does not";
        EXPECT_EQ(sum_of(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
    }
}

TEST(ShortFragments, LastFragmentIsShortOnEveryLink) {
    Network network(racks(2, 2));
    network.submit_all(elements_each + 1, own_value);
    EXPECT_TRUE(network.finish());
    std::size_t short_ones = 0;
    for (const Flight& flight : network.delivered()) {
        const std::size_t lanes = (flight.bytes.size() - ATP_HEADER_BYTES) / ATP_LANE_BYTES;
        EXPECT_EQ(lanes, flight.header().seq == 0 ? 4U : 2U)
            << "fragment 0 has three elements and the audit lane, fragment 1 one element and the audit lane";
        short_ones += lanes == 2 ? 1 : 0;
    }
    EXPECT_GT(short_ones, 8U);
}

}  // namespace
}  // namespace atp::testing
