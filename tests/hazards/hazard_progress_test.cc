// SPDX-License-Identifier: Apache-2.0
// Hazards of loss and order: every operation completes soon and without needless packets. Numbers as in
// docs/spec/hazards.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>

#include "support/scenes.h"
#include "support/server_bench.h"
#include "support/stranger.h"

namespace atp::testing {
namespace {

using protocol::ChannelConfig;
using protocol::Membership;
using std::chrono::microseconds;
using std::chrono::milliseconds;

std::uint64_t resends(Network& network) {
    std::uint64_t count = 0;
    for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
        count += network.worker(rank).counters().resent;
    }
    return count;
}

// Of eight fragments, the gradients of the last three are lost once, those of every worker.
TEST(Hazard, H05_LossOfTheLastThreeFragmentsIsRecoveredByTheTimer) {
    Network network(star(3));
    network.submit_all(elements_each * 8, own_value);
    network.drop_next([](const Flight& flight) { return flight.is(ATP_TYPE_GRADIENT) && flight.header().seq >= 5; }, 9);
    const Time start = network.now();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_LT(network.now() - start, milliseconds(20));
    EXPECT_GT(network.worker(0).counters().probes, 0U);
    EXPECT_EQ(network.worker(0).counters().resent_newer, 0U)
        << "no newer ACK can arrive, so the timer alone detects the loss";
}

TEST(Hazard, H06_SlowWorkerCausesNoFlushAndNoResend) {
    Network network(star(4));
    for (unsigned rank = 0; rank < 3; ++rank) network.submit(rank, std::vector<float>(elements_each * 8, 1.0F));
    const Time start = network.now();
    network.run();
    while (network.now() - start < milliseconds(300)) {
        ASSERT_TRUE(network.expire());
        network.run();
    }
    EXPECT_EQ(network.rack(0).occupied(), 8U) << "the switch still holds all eight partial sums";
    EXPECT_EQ(resends(network), 0U);
    EXPECT_EQ(network.server().counters().flushes, 0U);
    EXPECT_EQ(network.bytes_into(server_node), network.count_delivered([](const Flight& flight) {
        return flight.is(ATP_TYPE_PROBE);
    }) / 2 * ATP_HEADER_BYTES)
        << "only PROBEs reach the server: each is counted twice, on the link to the switch and on the link to the "
           "server";

    network.submit(3, std::vector<float>(elements_each * 8, 2.0F));
    network.run();
    EXPECT_TRUE(network.done());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().added_here, 0U) << "the switch added all gradients";
    EXPECT_EQ(resends(network), 0U);
}

TEST(Hazard, H07_WorkerAtTheServerAndOthersAtTheSwitchCompleteWithoutATimer) {
    Network network(star(3));
    Stranger stranger(network, rack_node(0));
    const std::uint32_t index = network.worker(0).index_of(0);
    stranger.occupy(index);
    network.submit_all(elements_each, own_value);
    network.set_rule([](Flight& flight) {
        const bool later = is_gradient_of(flight, 1) || is_gradient_of(flight, 2) || flight.is(ATP_TYPE_FLUSH);
        return later ? Network::Disposition::hold : Network::Disposition::deliver;
    });
    network.run();  // the gradient of worker 0 collides; the server requests the partial sum with a FLUSH
    stranger.leave(index);
    network.clear_rule();
    network.release([](const Flight& flight) { return flight.is(ATP_TYPE_GRADIENT); });
    network.run();
    ASSERT_EQ(network.occupied(), 1U)
        << "the partial sum of {1, 2} stays in the switch: the gradient of worker 0 is at the server";
    network.release();
    network.run();
    EXPECT_TRUE(network.done());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.occupied(), 0U);
}

TEST(Hazard, H07_LostFlushIsRecoveredWithinThreeTimeouts) {
    Network network(star(3));
    Stranger stranger(network, rack_node(0));
    const std::uint32_t index = network.worker(0).index_of(0);
    stranger.occupy(index);
    network.submit_all(elements_each, own_value);  // no later fragment can bring newer ACKs
    network.set_rule([](Flight& flight) {
        if (flight.is(ATP_TYPE_FLUSH)) return Network::Disposition::drop;
        return is_gradient_of(flight, 0) ? Network::Disposition::deliver : Network::Disposition::hold;
    });
    network.run();
    stranger.leave(index);
    network.clear_rule();
    network.release();
    EXPECT_TRUE(network.finish(3));
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.occupied(), 0U);
}

TEST(Hazard, H08_ResultLostToOneWorkerIsRepeatedAfterNewerAcks) {
    Network network(star(3));
    network.submit_all(elements_each * 40, own_value);
    std::uint32_t ahead = 0;
    bool lost = false;
    network.set_rule([&](Flight& flight) {
        if (flight.to == worker_node(1) && flight.is(ATP_TYPE_ACK, 4) && !lost) {
            lost = true;
            return Network::Disposition::drop;
        }
        ahead = std::max(ahead, network.worker(0).next_seq() - network.worker(1).expected());
        return Network::Disposition::deliver;
    });
    network.run();
    EXPECT_TRUE(network.done()) << "newer ACKs caused a PROBE: no timer was needed";
    EXPECT_TRUE(lost);
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().acks, 40U);
    EXPECT_EQ(network.server().counters().reacks, 1U);
    EXPECT_LE(ahead, 2U * 8U) << "the other workers are at most two windows of eight fragments ahead";
}

TEST(Hazard, H105_LostGradientIsAskedOfItsSenderOnlyWithoutATimer) {
    for (const NetworkConfig& config : {star(4), racks(2, 2)}) {
        Network network(config);
        network.submit_all(elements_each * 40, own_value);
        network.drop_next(
            [](const Flight& flight) { return flight.from == worker_node(2) && flight.is(ATP_TYPE_GRADIENT, 4); });
        network.run();
        EXPECT_TRUE(network.done()) << "no timer was needed";
        EXPECT_TRUE(network.sums_are_right());
        for (unsigned rank = 0; rank < 4; ++rank) {
            EXPECT_EQ(network.worker(rank).counters().resent, rank == 2 ? 1U : 0U) << rank;
        }
    }
}

TEST(Hazard, H08_LastResultLostToOneWorkerIsProbedByItsTimer) {
    Network network(racks(2, 2));
    network.submit_all(elements_each, own_value);
    network.drop_next([](const Flight& flight) { return flight.to == worker_node(3) && flight.is(ATP_TYPE_ACK); });
    EXPECT_TRUE(network.finish(2));
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(resends(network), 0U) << "a PROBE was enough: no worker resent";
}

// fragment -> indices that its gradients named
std::map<std::uint32_t, std::set<std::uint32_t>> indices_by_fragment(const Network& network) {
    std::map<std::uint32_t, std::set<std::uint32_t>> indices;
    for (const Flight& flight : network.delivered()) {
        if (flight.is(ATP_TYPE_GRADIENT)) indices[flight.header().seq].insert(flight.header().index);
    }
    return indices;
}

TEST(Hazard, H11_NewIndexThatReachesOneWorkerLateSplitsNoFragment) {
    Network network(star(2));
    Stranger stranger(network, rack_node(0));
    const std::uint32_t taken = network.worker(0).index_of(2);
    stranger.occupy(taken);  // slot 2 collides with each fragment until its index changes
    network.submit_all(elements_each * 8 * 6, own_value);
    int lost = 0;
    network.set_rule([&](Flight& flight) {
        const bool remaps = flight.is(ATP_TYPE_ACK) && flight.header().argument != flight.header().index;
        if (!remaps || flight.to != worker_node(1) || lost == 2) return Network::Disposition::deliver;
        ++lost;  // the ACK and its first repetition are lost
        return Network::Disposition::drop;
    });
    EXPECT_TRUE(network.finish());
    EXPECT_EQ(lost, 2);
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.server().counters().remapped, 1U);
    EXPECT_EQ(network.worker(0).index_of(2), network.worker(1).index_of(2));
    EXPECT_NE(network.worker(0).index_of(2), taken);
    for (const auto& [seq, indices] : indices_by_fragment(network)) EXPECT_EQ(indices.size(), 1U) << seq;
    stranger.leave(taken);
    EXPECT_EQ(network.occupied(), 0U);
}

// Two jobs have one slot each, with the same index. Every fragment of both jobs collides. Returns the number of
// fragments after which the indices differ.
int rounds_until_they_part(std::uint32_t first_job, std::uint32_t second_job, std::uint32_t aggregators) {
    const auto bench_of = [aggregators](std::uint32_t job) {
        ChannelConfig channel = ServerBench::default_channel();
        channel.job = job;
        channel.window_log2 = 0;  // one slot
        channel.aggregators = aggregators;
        return channel;
    };
    ServerBench first(*Membership::star(2), bench_of(first_job));
    ServerBench second(*Membership::star(2), bench_of(second_job));
    const auto next_index = [](ServerBench& bench, std::uint32_t seq) {
        for (std::uint16_t rank = 0; rank < 2; ++rank) bench.handle(bench.gradient(rank, seq, 1, ATP_FLAG_COLLISION));
        return bench.answers().at(0).header.argument;
    };
    for (std::uint32_t round = 0; round < 100; ++round) {
        if (next_index(first, round) != next_index(second, round)) return static_cast<int>(round);
    }
    return 100;
}

TEST(Hazard, H12_JobsThatCollideInLockStepGetDifferentIndicesWithinFiveFragments) {
    constexpr std::uint32_t aggregators = 64;
    int pairs = 0;
    int most = 0;
    for (std::uint32_t job = 2; job < 2000; ++job) {
        const auto index_of = [](std::uint32_t of) {
            return protocol::aggregator_index(protocol::index_seed(of, ServerBench::default_channel().token, 2), 0, 0,
                                              aggregators);
        };
        if (index_of(job) != index_of(1)) continue;
        ++pairs;
        most = std::max(most, rounds_until_they_part(1, job, aggregators));
    }
    EXPECT_GT(pairs, 10);
    EXPECT_LE(most, 5);
}

TEST(Hazard, H13_TableOfOneAggregatorCompletesEveryTensor) {
    for (NetworkConfig config : {star(3), racks(2, 2)}) {
        config.aggregators = 1;
        Network network(config);
        network.submit_all(elements_each * 100, own_value);
        EXPECT_TRUE(network.finish());
        EXPECT_TRUE(network.sums_are_right());
        EXPECT_GT(network.server().counters().collided, 0U);
        EXPECT_GT(events(network.rack(0), ATP_EVENT_COMPLETED), 0U)
            << "the aggregator completes one fragment at a time";
    }
}

TEST(Hazard, H14_CollisionInOneRackCausesNoResendOfACompleteRack) {
    Network network(racks(2, 2));
    Stranger stranger(network, rack_node(0));
    stranger.occupy(network.worker(0).index_of(0));
    network.submit_all(elements_each, own_value);
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(events(network.root(), ATP_EVENT_FLUSHED), 1U);
    EXPECT_EQ(resends(network), 0U);
    EXPECT_EQ(network.root().occupied(), 0U);
}

TEST(Hazard, H14_CollisionAtLevelOneCausesNoResend) {
    Network network(racks(3, 2));
    Stranger stranger(network, root_node);
    const std::uint32_t index = network.worker(0).index_of(0);
    stranger.occupy(index);
    network.submit_all(elements_each, own_value);
    bool left = false;
    network.set_rule([&](Flight& flight) {
        if (flight.from == root_node && flight.has(ATP_FLAG_COLLISION) && !left) {
            stranger.leave(index);  // the sum of the next rack claims the aggregator
            left = true;
        }
        return Network::Disposition::deliver;
    });
    network.run();
    EXPECT_TRUE(left);
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(resends(network), 0U);
    EXPECT_EQ(network.occupied(), 0U);
}

// In every fragment, a sum with the number of worker 0 could leave 32 bits. Its gradients therefore pass the switches,
// which hold the sums of all others.
float large_of_first(unsigned rank, std::size_t element) {
    return rank == 0 && element % elements_each == 0 ? 15.0F : own_value(rank, element);
}

TEST(Hazard, H91_AWorkerThatPassesTheSwitchesNeedsNoTimer) {
    for (NetworkConfig config : {star(3), racks(2, 2), rack_and_direct()}) {
        for (const bool loses_first : {false, true}) {
            config.bounded = true;
            Network network(config);
            if (loses_first) {
                network.drop_next([](const Flight& flight) { return is_gradient_of(flight, 0, 1); }, 1);
            }
            network.submit_all(elements_each * 40, large_of_first);
            network.run();
            EXPECT_TRUE(network.done()) << "no timer was needed";
            EXPECT_TRUE(network.sums_are_right());
            EXPECT_EQ(network.worker(0).counters().bypassed, 40U);
            EXPECT_EQ(resends(network), loses_first ? 1U : 0U);
            EXPECT_EQ(network.occupied(), 0U);
        }
    }
}

TEST(Hazard, H91_AnAggregatorOfAnotherJobAtThatTimeNeedsNoTimer) {
    NetworkConfig config = star(3);
    config.bounded = true;
    Network network(config);
    Stranger stranger(network, rack_node(0));
    const std::uint32_t index = network.worker(0).index_of(0);
    stranger.occupy(index);
    network.set_rule([](const Flight& flight) {
        const bool later = is_gradient_of(flight, 1) || is_gradient_of(flight, 2);
        return later ? Network::Disposition::hold : Network::Disposition::deliver;
    });
    network.submit_all(elements_each, large_of_first);
    network.run();  // the FLUSH for worker 0 finds the aggregator of the other job
    network.hold_next([](const Flight& flight) { return flight.is(ATP_TYPE_FLUSH); });
    network.release([](const Flight& flight) { return is_gradient_of(flight, 1); });
    network.run();  // worker 1 collides
    stranger.leave(index);
    network.release([](const Flight& flight) { return is_gradient_of(flight, 2); });
    network.run();
    EXPECT_EQ(network.occupied(), 1U) << "worker 2 claims it";
    network.release();
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed";
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(network.occupied(), 0U);
}

// A timer brings the lost gradient back, directly or by the FLUSH that it causes.
TEST(Hazard, H92_AResultAfterATimerSaysSoToAllWorkers) {
    for (const NetworkConfig& config : {star(3), racks(2, 2), rack_and_direct()}) {
        for (unsigned lost = 0; lost < config.membership.workers(); ++lost) {
            Network network(config);
            network.drop_next([lost](const Flight& flight) { return is_gradient_of(flight, lost); });
            network.submit_all(elements_each, own_value);
            ASSERT_TRUE(network.finish());
            EXPECT_TRUE(network.sums_are_right());
            EXPECT_EQ(network.count_delivered(is_ack_of_a_first_sending), 0U)
                << config.membership.units() << " units, rank " << lost;
        }
    }
}

TEST(Hazard, H20_ReorderedAndDuplicatedPacketsCountOnce) {
    const NetworkConfig direct =
        network_of(*Membership::make({protocol::Unit{.ranks = {0, 1, 2}}, protocol::Unit{.ranks = {3}, .direct = true},
                                      protocol::Unit{.ranks = {4}, .direct = true}}));
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        for (NetworkConfig config : {star(3), racks(3, 2), direct}) {
            config.aggregators = seed % 3 == 0 ? 4 : 1024;
            Network network(config);
            network.submit_all(elements_each * 30, own_value);
            ASSERT_TRUE(network.finish_among({.loss = 0, .duplication = 0.2, .reordering = 0.5}, seed)) << seed;
            ASSERT_TRUE(network.sums_are_right()) << seed;
            ASSERT_EQ(network.server().counters().audit_failures, 0U) << seed;
        }
    }
}

TEST(Hazard, H33_SprayingCausesAtMostOneSpuriousResendPerFragmentAndWorker) {
    constexpr std::size_t fragments = 100;
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        Network network(star(4));
        network.submit_all(elements_each * fragments, own_value);
        ASSERT_TRUE(network.finish_among({.loss = 0, .duplication = 0, .reordering = 0.3}, seed));
        EXPECT_TRUE(network.sums_are_right());
        for (unsigned rank = 0; rank < 4; ++rank) {
            EXPECT_LE(network.worker(rank).counters().resent_newer, fragments);
        }
    }
}

// Worker 1 assumes another table size. In its first window, its gradients therefore name other aggregators than those
// of the other workers.
TEST(Hazard, H34_WorkerWithAnotherTableSizeMissesAggregationForOneWindow) {
    Network network(star(3));
    network.submit_all(elements_each * 24, own_value);
    network.set_rule([](Flight& flight) {
        if (is_gradient_of(flight, 1) && flight.header().seq < 8) {
            wire::store_u32(&flight.bytes[ATP_OFFSET_INDEX], 900 + flight.header().seq);
        }
        return Network::Disposition::deliver;
    });
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_COMPLETED), 16U)
        << "ACKs correct the index after the first window of eight: 16 of 24 fragments are aggregated";
}

// The queue in front of the server forwards at most ten packets per 500 us and drops the others.
TEST(Progress, AllOf32WorkersFinishBehindAShortQueue) {
    Network network(star(32));
    network.submit_all(elements_each, own_value);
    network.drop_next([](const Flight& flight) { return flight.is(ATP_TYPE_GRADIENT); }, 32);
    network.run();
    std::map<std::int64_t, int> arrivals;
    network.set_rule([&](Flight& flight) {
        if (flight.from != rack_node(0) || flight.to != server_node) return Network::Disposition::deliver;
        const auto interval = network.now().time_since_epoch() / microseconds(500);
        return ++arrivals[interval] <= 10 ? Network::Disposition::deliver : Network::Disposition::drop;
    });
    EXPECT_TRUE(network.finish(32 * 100));
    EXPECT_TRUE(network.sums_are_right());
}

}  // namespace
}  // namespace atp::testing
