// SPDX-License-Identifier: Apache-2.0
// Hazards of sums: mixed fragments, sets counted twice, values at the limits of their format, and the audit lane. Each
// test name begins with the number of its hazard in docs/spec/hazards.md.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using Values = std::vector<float>;

constexpr float largest_below_2_31 = 2147483520.0F;

// Worker r contributes `values[r]` in each of its elements, at scale 1.
void submit_each(Network& network, const Values& values) {
    for (unsigned rank = 0; rank < values.size(); ++rank) {
        network.submit(rank, Values(elements_each, values[rank]));
    }
}

NetworkConfig at_scale_one(NetworkConfig config) {
    config.scale = 1;
    return config;
}

TEST(Hazard, H10_PacketsOfAnEarlierTensorAddNothingToALaterOneAcrossTheWrap) {
    NetworkConfig config = star(3);
    config.channel.first_seq = 0xfffffff5U;
    Network network(config);
    for (int tensor = 0; tensor < 6; ++tensor) {
        network.submit_all(elements_each * 5, [tensor](unsigned rank, std::size_t element) {
            return own_value(rank, element) * static_cast<float>(tensor + 1);
        });
    }
    // Each gradient arrives a second time after 30 further gradients: ten of each worker.
    std::vector<Flight> late;
    std::size_t next = 0;
    network.set_rule([&](Flight& flight) {
        if (!flight.is(ATP_TYPE_GRADIENT) || flight.from.kind != Node::Kind::worker)
            return Network::Disposition::deliver;
        late.push_back(flight);
        if (late.size() > 30) network.inject(late[next++]);
        return Network::Disposition::deliver;
    });
    EXPECT_TRUE(network.finish());
    EXPECT_GT(next, 50U);
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().audit_failures, 0U);
    EXPECT_LT(network.server().base(), 100U) << "the sequence numbers have wrapped";
}

TEST(Hazard, H10_NewerFragmentWithTheSameIndexLeavesTheOlderOneInPlace) {
    NetworkConfig config = star(2);
    config.aggregators = 1;
    Network network(config);
    network.submit_all(elements_each * 2, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 1, 0); });
    network.run();
    EXPECT_EQ(network.rack(0).aggregator(0).seq, 0U) << "the aggregator still holds the partial sum of fragment 0";
    EXPECT_EQ(network.occupied(), 1U);
    EXPECT_EQ(network.server().base(), 0U);
    network.release();
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_COMPLETED), 1U);
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H15_PartialSumThenGradientsOfTheSameWorkersCountEachWorkerOnce) {
    Network network(star(3));
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 2); });
    network.run();
    network.inject({server_node, rack_node(0), flush_of(first_sending(network, 0), 0)});
    network.run();  // the server includes {0, 1}
    for (const unsigned rank : {0U, 1U}) {
        Flight single = with_flag(as_resend(first_sending(network, rank)), ATP_FLAG_BYPASS);
        network.inject(single);
    }
    network.run();
    EXPECT_EQ(network.server().counters().duplicates, 2U);
    network.release();
    network.run();
    EXPECT_TRUE(network.done());
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H15_GradientsThenAPartialSumOfTheSameWorkersCountEachWorkerOnce) {
    Network network(racks(2, 3));
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 2); });
    network.run();
    network.inject(with_flag(as_resend(first_sending(network, 0)), ATP_FLAG_BYPASS));
    network.run();  // the server includes rank 0; its FLUSH to level 1 returned the sum of rack 1
    network.inject({root_node, rack_node(0), flush_of(first_sending(network, 0), 0)});
    // {0, 1} and the included set overlap, and neither contains the other: the server sends NACK to missing workers.
    network.run();
    network.release();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().audit_failures, 0U);
}

TEST(Hazard, H21_SumsAtTheLimitsOfInt32CauseNoNack) {
    for (const auto& [first, second] :
         {std::pair{largest_below_2_31, 127.0F}, {-largest_below_2_31, -127.0F}, {-largest_below_2_31, -128.0F}}) {
        for (const NetworkConfig& config : {star(4), racks(2, 2)}) {
            Network network(at_scale_one(config));
            submit_each(network, {first, second, 0, 0});
            network.run();
            EXPECT_TRUE(network.done());
            EXPECT_TRUE(network.sums_are_right());
            EXPECT_EQ(network.server().counters().nacks, 0U) << first << " + " << second;
        }
    }
}

TEST(Hazard, H21_LimitsOfInt32AsOperandsOfLevelOneCauseNoNack) {
    Network network(at_scale_one(racks(2, 2)));
    submit_each(network, {largest_below_2_31, 127, -largest_below_2_31, -128});  // level 1 adds INT32_MAX and INT32_MIN
    network.run();
    EXPECT_TRUE(network.done());
    EXPECT_EQ(network.output(0)[0], -1.0F);
    EXPECT_EQ(network.server().counters().nacks, 0U);
}

TEST(Hazard, H21_SumOneBeyondALimitOfInt32IsFetchedUnaggregated) {
    for (const auto& [first, second] : {std::pair{largest_below_2_31, 128.0F}, {-largest_below_2_31, -129.0F}}) {
        Network network(at_scale_one(star(2)));
        submit_each(network, {first, second});
        EXPECT_TRUE(network.finish());
        EXPECT_TRUE(network.sums_are_right());
        EXPECT_EQ(network.server().counters().overflowed, 1U);
        EXPECT_EQ(network.server().counters().nacks, 1U) << "exactly one NACK: all workers resend once";
        EXPECT_EQ(network.occupied(), 0U);
    }
}

TEST(Hazard, H22_OverflowAtLevelZeroIsReportedEvenIfLevelOneReturnsIntoRange) {
    Network network(at_scale_one(racks(2, 2)));
    submit_each(network, {2e9F, 2e9F, -1e9F, -1e9F});
    EXPECT_TRUE(network.finish());
    EXPECT_EQ(network.output(0)[0], 2e9F);
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().overflowed, 1U);
}

TEST(Hazard, H22_OverflowIsReportedAfterAFlushOfLevelOne) {
    Network network(at_scale_one(racks(3, 2)));
    submit_each(network, {2e9F, 2e9F, -1e9F, -1e9F, 5, 5});
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 4); });
    network.run();
    network.inject({server_node, root_node, flush_of(first_sending(network, 0), 1)});
    network.run();
    EXPECT_EQ(network.server().counters().overflowed, 1U)
        << "the FLUSH returned the sum of racks 0 and 1 as one gradient";
    network.release();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H23_PartialSumsAreMergedBeyond32Bits) {
    NetworkConfig config = at_scale_one(racks(3, 2));
    config.root_aggregates = false;
    Network network(config);
    submit_each(network, {1e9F, 1e9F, 1e9F, 1e9F, 1e9F, 1e9F});
    network.run();
    EXPECT_TRUE(network.done());
    EXPECT_EQ(network.output(0)[0], 6e9F);
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().nacks, 0U);
}

TEST(Hazard, H24_IntegersAndFloatsOfOneFragmentSumInAnyOrder) {
    const Values values{0.5F, 1e30F, 0.25F, -1e30F};
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        Network network(seed % 2 == 0 ? star(4) : racks(2, 2));
        for (unsigned rank = 0; rank < 4; ++rank) network.submit(rank, Values(elements_each * 4, values[rank]));
        ASSERT_TRUE(network.finish_among({.loss = 0.05, .duplication = 0.1, .reordering = 0.7}, seed)) << seed;
        for (const float sum : network.output(3)) ASSERT_EQ(sum, 0.75F) << seed;
        for (unsigned rank = 0; rank < 4; ++rank) ASSERT_EQ(network.output(rank), network.output(0)) << seed;
    }
}

TEST(Hazard, H25_LostFloatRequestIsRepeated) {
    Network network(star(3));
    for (unsigned rank = 0; rank < 3; ++rank) network.submit(rank, Values(elements_each, rank == 0 ? 1e30F : 0.5F));
    network.drop_next([](const Flight& flight) { return flight.to == worker_node(2) && flight.is(ATP_TYPE_NACK); });
    EXPECT_TRUE(network.finish(5));
    for (unsigned rank = 0; rank < 3; ++rank) EXPECT_EQ(network.output(rank), Values(elements_each, 1e30F));
    EXPECT_EQ(network.occupied(), 0U) << "the aggregator of the integers is free";
}

TEST(Hazard, H25_LostFloatsAreRequestedAgain) {
    Network network(star(3));
    for (unsigned rank = 0; rank < 3; ++rank) network.submit(rank, Values(elements_each, rank == 0 ? 1e30F : 0.5F));
    network.drop_next(
        [](const Flight& flight) { return flight.is(ATP_TYPE_GRADIENT) && flight.header().lanes == ATP_FLOAT32_LANES; },
        2);
    EXPECT_TRUE(network.finish(10));
    EXPECT_EQ(network.output(1), Values(elements_each, 1e30F));
}

// A switch damages one packet in an unforeseen way: the audit lane must detect it, and a resend must correct the sum.
void expect_audit_notices(const std::function<void(Flight&)>& damage) {
    Network network(star(3));
    network.submit_all(elements_each * 2, own_value);
    bool damaged = false;
    network.set_rule([&](Flight& flight) {
        if (flight.from == rack_node(0) && flight.is(ATP_TYPE_GRADIENT) && !damaged) {
            damage(flight);
            damaged = true;
        }
        return Network::Disposition::deliver;
    });
    network.run();
    EXPECT_TRUE(damaged);
    EXPECT_EQ(network.server().counters().audit_failures, 1U);
    EXPECT_EQ(network.server().base(), 0U) << "the server sent no ACK of the wrong sum";
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
}

void add_to_audit_lane(Flight& flight, std::uint32_t addend) {
    std::byte* audit = flight.bytes.data() + flight.bytes.size() - ATP_LANE_BYTES;
    wire::store_u32(audit, wire::load_u32(audit) + addend);
}

TEST(Hazard, H39_AuditDropsASumThatLacksAWorker) {
    const protocol::ChannelConfig channel = NetworkConfig{}.channel;
    expect_audit_notices([&](Flight& flight) { add_to_audit_lane(flight, 0U - channel.audit_of(0, 1)); });
}

TEST(Hazard, H39_AuditDropsASumThatCountsAWorkerTwice) {
    const protocol::ChannelConfig channel = NetworkConfig{}.channel;
    expect_audit_notices([&](Flight& flight) { add_to_audit_lane(flight, channel.audit_of(0, 1)); });
}

TEST(Hazard, H39_AuditDropsASumOfAnotherFragment) {
    expect_audit_notices([](Flight& flight) { wire::store_u32(&flight.bytes[ATP_OFFSET_SEQ], 1); });
}

// A server that counts a worker as there, or a switch that adds to results.
TEST(Hazard, H39_AuditDropsAResultThatLacksAWorker) {
    const protocol::ChannelConfig channel = NetworkConfig{}.channel;
    Network network(star(3));
    network.submit_all(elements_each * 2, own_value);
    bool damaged = false;
    network.set_rule([&](Flight& flight) {
        if (flight.is(ATP_TYPE_ACK) && !damaged) {
            add_to_audit_lane(flight, 0U - channel.result_audit_of(0, 1));
            damaged = true;
        }
        return Network::Disposition::deliver;
    });
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(damaged);
    std::uint64_t failures = 0;
    for (unsigned worker = 0; worker < 3; ++worker) failures += network.worker(worker).counters().audit_failures;
    EXPECT_GE(failures, 1U);
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H39_AuditDropsASumWithAWrongBitmap) {
    expect_audit_notices([](Flight& flight) { wire::store_u32(&flight.bytes[ATP_OFFSET_BITMAP0], 0x3); });
}

}  // namespace
}  // namespace atp::testing
