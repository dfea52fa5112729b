// SPDX-License-Identifier: Apache-2.0
// Hazards of aggregators that are claimed, freed and claimed again, by their numbers in docs/spec/hazards.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "support/scenes.h"
#include "support/stranger.h"

namespace atp::testing {
namespace {

using std::chrono::milliseconds;

TEST(Hazard, H01_WorkerThatClaimsAnIndexAfterACollisionIsCountedOnce) {
    Network network(star(3));
    Stranger stranger(network, rack_node(0));
    const std::uint32_t index = network.worker(0).index_of(0);
    stranger.occupy(index);
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 1); });
    network.run();  // the gradients of workers 0 and 2 collide and reach the server
    stranger.leave(index);
    network.release();
    network.run();  // the gradient of worker 1 claims the freed aggregator
    ASSERT_EQ(network.occupied(), 1U);
    network.inject(as_resend(first_sending(network, 0)));
    network.run();  // the resend of worker 0 takes the sum of {0, 1} to the server, which has {0, 2}
    EXPECT_EQ(network.server().counters().overlapping, 1U);
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.occupied(), 0U);
    EXPECT_EQ(network.server().counters().audit_failures, 0U);
}

// Each test runs in a tree of one level and in a tree of two levels.
class HazardEveryTree : public ::testing::TestWithParam<int> {
  protected:
    [[nodiscard]] static NetworkConfig tree() { return GetParam() == 0 ? star(3) : racks(2, 2); }
};
INSTANTIATE_TEST_SUITE_P(Tree, HazardEveryTree, ::testing::Values(0, 1),
                         [](const auto& tree) { return tree.param == 0 ? "Star" : "Racks"; });

TEST_P(HazardEveryTree, H02_DuplicateOfAGradientAfterItsAckClaimsNothing) {
    Network network(tree());
    network.submit_all(elements_each, own_value);
    ASSERT_TRUE(network.finish());
    const std::vector<Flight> all = network.delivered();
    for (const Flight& flight : all) {
        if (!flight.is(ATP_TYPE_GRADIENT)) continue;
        network.inject(flight);
        network.run();
        EXPECT_EQ(network.occupied(), 0U);
    }
    EXPECT_EQ(network.server().counters().acks, 1U);
    EXPECT_TRUE(network.sums_are_right());
}

TEST_P(HazardEveryTree, H03_OriginalAfterItsResendChangesNoSumAndLeavesNoAggregator) {
    Network network(tree());
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 0); });
    ASSERT_TRUE(network.finish()) << "the server sends NACK to worker 0, which resends";
    EXPECT_GE(network.worker(0).counters().resent, 1U);
    network.release();
    network.run();  // the original arrives
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.occupied(), 0U);
}

TEST_P(HazardEveryTree, H03_OriginalsAfterAResendAreForwardedToTheServer) {
    Network network(tree());
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return flight.is(ATP_TYPE_GRADIENT); }, 100);
    network.run();
    Flight resend;
    network.release([&resend](const Flight& flight) {  // copies the gradient and releases nothing
        if (is_gradient_of(flight, 0)) resend = as_resend(flight);
        return false;
    });
    network.clear_rule();
    network.inject(resend);
    network.run();  // the resend arrives first and closes the aggregators in its path
    network.release();
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.occupied(), 0U);
}

TEST(Hazard, H03_ResendOnAFreeAggregatorIsForwarded) {
    Network network(star(2));
    Stranger stranger(network, rack_node(0));
    const std::uint32_t index = network.worker(0).index_of(0);
    stranger.occupy(index);
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 0); });
    network.run();  // the gradient of worker 1 collides and reaches the server; that of worker 0 is delayed
    stranger.leave(index);
    Flight resend;
    network.release([&resend](const Flight& flight) {  // copies the gradient and releases nothing
        resend = as_resend(flight);
        return false;
    });
    network.inject(resend);
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    network.release();
    network.run();
    EXPECT_EQ(network.occupied(), 0U);
    EXPECT_TRUE(network.sums_are_right());
}

TEST_P(HazardEveryTree, H04_StaleResendAfterAckGetsOneUnicastAckPerInterval) {
    Network network(tree());
    network.submit_all(elements_each, own_value);
    ASSERT_TRUE(network.finish());
    const Flight resend = as_resend(first_sending(network, 1));
    network.forget_delivered();
    for (int copy = 0; copy < 20; ++copy) network.inject(resend);
    network.run();
    for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
        const auto acks = network.count_delivered(
            [rank](const Flight& flight) { return flight.to == worker_node(rank) && flight.is(ATP_TYPE_ACK); });
        EXPECT_EQ(acks, rank == 1 ? 1U : 0U);
    }
    EXPECT_EQ(network.occupied(), 0U);
}

TEST(Hazard, H09_AggregatorThatMissedItsAckIsSupersededOneWindowLater) {
    Network network(star(2));
    network.submit_all(elements_each * 9, own_value);
    // The ACK of 0 reaches the workers by a path that does not pass their switch.
    network.set_rule([&network](Flight& flight) {
        if (flight.from != server_node || !flight.is(ATP_TYPE_ACK, 0)) return Network::Disposition::deliver;
        for (unsigned rank = 0; rank < 2; ++rank) network.inject({rack_node(0), worker_node(rank), flight.bytes});
        return Network::Disposition::drop;
    });
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_SUPERSEDED), 1U);
    EXPECT_EQ(network.server().counters().added_here, 0U) << "the switches added all gradients";
    EXPECT_EQ(network.occupied(), 0U);
}

TEST(Hazard, H16_LevelZeroResultAfterAFlushOfLevelOneIsForwarded) {
    Network network(racks(2, 2));
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return flight.from == rack_node(0) && flight.to == root_node; });
    network.run();
    ASSERT_EQ(network.root().occupied(), 1U) << "rack 1 waits for rack 0";
    network.inject({server_node, root_node, flush_of(first_sending(network, 0), 1)});
    network.run();
    ASSERT_EQ(network.root().occupied(), 0U);
    network.release();
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_EQ(events(network.root(), ATP_EVENT_LATE), 1U);
    EXPECT_EQ(network.occupied(), 0U);
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H17_PartialSumLostAfterAResendIsRecovered) {
    Network network(star(3));
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 2); });
    network.run();
    ASSERT_EQ(network.occupied(), 1U);
    network.drop_next([](const Flight& flight) { return flight.from == rack_node(0) && flight.is(ATP_TYPE_GRADIENT); });
    network.inject(as_resend(first_sending(network, 0)));
    network.run();  // the partial sum of {0, 1} left the switch and was lost
    EXPECT_EQ(network.occupied(), 0U);
    network.release();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.occupied(), 0U);
}

TEST(Hazard, H17_PartialSumLostAfterAFlushIsRecovered) {
    Network network(racks(2, 2));
    Stranger stranger(network, rack_node(0));
    stranger.occupy(network.worker(0).index_of(0));
    network.submit_all(elements_each, own_value);
    network.drop_next([](const Flight& flight) { return flight.from == root_node && flight.has(ATP_FLAG_WHOLE); });
    network.run();  // rack 0 collided, a FLUSH reached level 1, and the partial sum of rack 1 was lost
    ASSERT_FALSE(network.done());
    EXPECT_EQ(events(network.root(), ATP_EVENT_FLUSHED), 1U);
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H29_AggregatorsOfADeadJobAreTakenOverAfterTheAgeingTime) {
    NetworkConfig config = star(2);
    config.aggregators = 16;
    Network network(config);
    Stranger stranger(network, rack_node(0));
    for (std::uint32_t index = 0; index < 16; ++index) stranger.occupy(index);
    network.submit_all(elements_each * 8, own_value);
    ASSERT_TRUE(network.finish()) << "the server adds all gradients if the table is full";
    EXPECT_EQ(network.rack(0).counters().events[ATP_EVENT_COMPLETED], 0U);
    EXPECT_EQ(network.occupied(), 16U);

    network.wait(config.ageing + milliseconds(1));
    network.submit_all(elements_each * 8, own_value);
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_GT(events(network.rack(0), ATP_EVENT_TAKEN_OVER), 0U);
    EXPECT_GT(events(network.rack(0), ATP_EVENT_COMPLETED), 0U);
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H30_LivePartialSumThatAgesOutDelaysItsSumAndChangesNoBit) {
    NetworkConfig config = star(3);
    config.ageing = milliseconds(5);
    Network network(config);
    Stranger stranger(network, rack_node(0));
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 2); });
    network.run();
    network.wait(milliseconds(6));
    stranger.occupy(network.worker(0).index_of(0));  // takes the aggregator over, so the partial sum of {0, 1} is lost
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_TAKEN_OVER), 1U);
    network.release();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
}

TEST(Hazard, H30_AckThatExpiresALivePartialSumDelaysItsSumAndChangesNoBit) {
    NetworkConfig config = star(3);
    config.ageing = milliseconds(5);
    config.aggregators = 1;  // all slots share one aggregator
    Network network(config);
    network.submit_all(elements_each * 8, own_value);
    network.set_rule([](Flight& flight) {
        return is_gradient_of(flight, 2) && flight.header().seq == 0 ? Network::Disposition::hold
                                                                     : Network::Disposition::deliver;
    });
    network.run();
    network.wait(milliseconds(6));
    network.clear_rule();
    network.release();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
}

TEST_P(HazardEveryTree, H36_SwitchesThatRestartEmptyDelaySumsAndChangeNoBit) {
    Network network(tree());
    network.submit_all(elements_each * 20, own_value);
    int restarts = 0;
    int seen = 0;
    network.set_rule([&](Flight& flight) {
        if (is_gradient_of(flight, 0) && ++seen % 7 == 0) {
            for (unsigned unit = 0; unit < network.config().membership.units(); ++unit) network.forget(rack_node(unit));
            if (network.config().membership.units() > 1) network.forget(root_node);
            ++restarts;
        }
        return Network::Disposition::deliver;
    });
    EXPECT_TRUE(network.finish());
    EXPECT_GE(restarts, 2);
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().audit_failures, 0U);
}

}  // namespace
}  // namespace atp::testing
