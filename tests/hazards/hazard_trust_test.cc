// SPDX-License-Identifier: Apache-2.0
// Hazards of restarts, crashes, forged packets and congestion marks, by their numbers in docs/spec/hazards.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "support/gradients.h"
#include "support/random.h"
#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using protocol::WorkerEvent;
using std::chrono::milliseconds;
using Values = std::vector<float>;

void submit_with_deadline(Network& network, std::size_t fragments, Time deadline) {
    for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
        Values values;
        for (std::size_t element = 0; element < fragments * elements_each; ++element) {
            values.push_back(own_value(rank, element));
        }
        network.submit(rank, values, deadline);
    }
}

TEST(Hazard, H26_RestartedServerFailsEveryWorkerAtTheDeadline) {
    for (const std::uint32_t restart_at : {2U, 12U, 30U}) {  // within the first window, and after it
        Network network(star(3));
        const Time deadline = network.now() + milliseconds(100);
        submit_with_deadline(network, 40, deadline);
        bool restarted = false;
        network.set_rule([&](Flight& flight) {
            if (!restarted && flight.is(ATP_TYPE_ACK, restart_at)) {
                restarted = true;
                network.forget(server_node);
            }
            return Network::Disposition::deliver;
        });
        EXPECT_TRUE(network.finish());
        ASSERT_TRUE(restarted);
        for (unsigned rank = 0; rank < 3; ++rank) {
            ASSERT_EQ(network.events(rank).size(), 1U);
            EXPECT_EQ(network.events(rank)[0].kind, WorkerEvent::Kind::timed_out);
            EXPECT_EQ(network.events(rank)[0].elapsed, milliseconds(100)) << "exactly at the deadline";
            EXPECT_TRUE(network.worker(rank).failed());
        }
    }
}

TEST(Hazard, H27_PacketsOfAnEarlierIncarnationAreDroppedByAllNodes) {
    for (const NetworkConfig& config : {star(3), racks(2, 2)}) {
        Network earlier(config);
        earlier.submit_all(elements_each * 20, [](unsigned, std::size_t) { return 13.0F; });
        ASSERT_TRUE(earlier.finish());

        NetworkConfig again = config;
        again.channel.token = config.channel.token + 1;
        Network network(again);
        network.submit_all(elements_each * 20, own_value);
        std::size_t next = 0;
        network.set_rule([&](Flight& flight) {
            // With each packet, also send one recorded packet of the earlier incarnation to its original destination.
            if (flight.header().token == again.channel.token && next < earlier.delivered().size()) {
                network.inject(earlier.delivered()[next++]);
            }
            return Network::Disposition::deliver;
        });
        EXPECT_TRUE(network.finish());
        EXPECT_TRUE(network.sums_are_right());
        EXPECT_GT(next, 100U);
        EXPECT_GT(network.rack(0).counters().forged, 0U);
        EXPECT_GT(network.server().counters().forged, 0U);
        EXPECT_GT(network.worker(0).counters().forged, 0U);
        EXPECT_EQ(network.server().counters().duplicates, 0U);
    }
}

TEST(Hazard, H28_DeadWorkerIsNamedAndTheSurvivorsContinueWithoutIt) {
    Network network(star(3));
    for (const unsigned rank : {0U, 1U}) {
        network.submit(rank, Values(elements_each, 1.0F), network.now() + milliseconds(50));
    }
    for (int expiry = 0; expiry < 100 && !network.worker(1).failed(); ++expiry) {
        network.run();
        ASSERT_TRUE(network.expire());
    }
    network.run();
    for (const unsigned rank : {0U, 1U}) {
        ASSERT_EQ(network.events(rank).size(), 1U);
        const WorkerEvent& event = network.events(rank)[0];
        EXPECT_EQ(event.kind, WorkerEvent::Kind::timed_out);
        EXPECT_EQ(event.elapsed, milliseconds(50));
        EXPECT_TRUE(event.answered);
        EXPECT_EQ(event.missing_units, 0x1U);
        EXPECT_EQ(event.missing_members, 0x4U) << "worker 2 is missing";
    }

    for (const unsigned members : {2U, 3U}) {  // the next incarnation without worker 2, then with worker 2 again
        NetworkConfig config = star(members);
        config.channel.token = 0x5eed + members;
        Network next(config);
        next.submit_all(elements_each * 10, own_value);
        EXPECT_TRUE(next.finish());
        EXPECT_TRUE(next.sums_are_right());
    }
}

// --- congestion marks

std::uint64_t marked_acks(Network& network, unsigned rank) { return network.worker(rank).counters().ecn_acks; }

class HazardMarks : public ::testing::TestWithParam<int> {
  protected:
    [[nodiscard]] static NetworkConfig tree() { return GetParam() == 0 ? star(3) : racks(2, 2); }
    static void mark_next(Network& network, const Network::Match& match) {
        network.set_rule([match, left = 1](Flight& flight) mutable {
            if (left > 0 && match(flight)) {
                flight.congested = true;
                --left;
            }
            return Network::Disposition::deliver;
        });
    }
    static void expect_mark_at_all_workers(Network& network) {
        EXPECT_TRUE(network.sums_are_right());
        for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
            EXPECT_EQ(marked_acks(network, rank), 1U) << "worker " << rank;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Tree, HazardMarks, ::testing::Values(0, 1),
                         [](const auto& tree) { return tree.param == 0 ? "Star" : "Racks"; });

TEST_P(HazardMarks, H31_MarkOnAnAbsorbedPacketReachesAllWorkers) {
    for (unsigned rank = 0; rank < 3; ++rank) {
        Network network(tree());
        network.submit_all(elements_each, own_value);
        mark_next(network, [rank](const Flight& flight) { return is_gradient_of(flight, rank); });
        ASSERT_TRUE(network.finish());
        expect_mark_at_all_workers(network);
    }
}

TEST_P(HazardMarks, H31_MarkOnADuplicateReachesAllWorkers) {
    Network network(tree());
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 1); });
    network.run();
    Flight duplicate = first_sending(network, 0);
    duplicate.congested = true;
    network.inject(duplicate);
    network.run();
    network.release();
    ASSERT_TRUE(network.finish());
    expect_mark_at_all_workers(network);
}

TEST_P(HazardMarks, H31_MarkOnAFlushedPartialSumReachesAllWorkers) {
    Network network(tree());
    network.submit_all(elements_each, own_value);
    network.set_rule([](Flight& flight) {
        flight.congested = is_gradient_of(flight, 0);
        return is_gradient_of(flight, 1) ? Network::Disposition::hold : Network::Disposition::deliver;
    });
    network.run();
    network.inject({network.above(rack_node(0)), rack_node(0), flush_of(first_sending(network, 0), 0)});
    network.run();
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_FLUSHED), 1U);
    network.release();
    network.clear_rule();
    ASSERT_TRUE(network.finish());
    expect_mark_at_all_workers(network);
}

TEST_P(HazardMarks, H31_MarkOnALateGradientReachesAllWorkers) {
    Network network(tree());
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 1); });
    network.run();
    const Flight first = first_sending(network, 0);
    network.inject({network.above(rack_node(0)), rack_node(0), flush_of(first, 0)});
    network.run();
    mark_next(network, [](const Flight& flight) { return flight.to == rack_node(0); });
    network.release();  // CE-marked on its link and late: its aggregator is closed
    network.set_rule([](Flight& flight) {
        flight.congested = flight.from == rack_node(0) && flight.is(ATP_TYPE_GRADIENT);
        return Network::Disposition::deliver;
    });
    ASSERT_TRUE(network.finish());
    EXPECT_EQ(events(network.rack(0), ATP_EVENT_LATE), 1U);
    expect_mark_at_all_workers(network);
}

TEST_P(HazardMarks, H32_OneMarkedDownlinkHalvesAllWindowsOnce) {
    Network network(tree());
    network.submit_all(elements_each * 60, own_value);
    mark_next(network, [](const Flight& flight) { return flight.to == worker_node(1) && flight.is(ATP_TYPE_ACK); });
    ASSERT_TRUE(network.finish());
    EXPECT_EQ(network.worker(1).counters().echoes, 1U);
    for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
        EXPECT_EQ(network.worker(rank).counters().halvings, 1U) << "worker " << rank;
        EXPECT_EQ(network.worker(rank).window_packets(), network.worker(0).window_packets());
    }
}

TEST_P(HazardMarks, H32_MarkedLinkIntoARackHalvesAllWindowsEqually) {
    Network network(tree());
    network.submit_all(elements_each * 60, own_value);
    mark_next(network, [](const Flight& flight) { return flight.to == rack_node(0) && flight.is(ATP_TYPE_ACK); });
    ASSERT_TRUE(network.finish());
    for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
        EXPECT_GE(network.worker(rank).counters().halvings, 1U) << "worker " << rank;
        EXPECT_EQ(network.worker(rank).counters().halvings, network.worker(0).counters().halvings);
        EXPECT_EQ(network.worker(rank).window_packets(), network.worker(0).window_packets());
    }
}

// --- packets that do not belong to the job

// A random gradient, PROBE or answer that is valid except for its token.
Bytes forged(const NetworkConfig& config, Random& random) {
    atp_header header = gradient_of(config.channel, config.membership, random.below16(3), random.below(40));
    header.token ^= 1U + random.below(1000);
    header.type = static_cast<std::uint8_t>(1 + random.below(ATP_TYPE_LAST));
    const bool lanes = header.type <= ATP_TYPE_ACK;
    const std::uint8_t integers = header.type <= ATP_TYPE_NACK ? ATP_DTYPE_INT32 : ATP_DTYPE_NONE;
    header.lanes = lanes_field(header.type, header.type == ATP_TYPE_ACK ? std::uint8_t{ATP_DTYPE_FLOAT32} : integers);
    header.flags = static_cast<std::uint16_t>(random.chance(0.5) ? ATP_FLAG_BYPASS : 0);
    return make_packet(header, Lanes(lanes ? config.channel.lanes : 0U, 666));
}

Bytes noise(Random& random) {
    Bytes bytes(random.below(100));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
    if (!bytes.empty() && random.chance(0.5)) bytes[0] = std::byte{ATP_VERSION};
    return bytes;
}

TEST(Hazard, H35_ForgedAndRandomPacketsOnEveryPortChangeNoSum) {
    const std::vector<Node> ports{worker_node(0), worker_node(3), rack_node(0), rack_node(1), root_node, server_node};
    Network network(racks(2, 2));
    network.submit_all(elements_each * 40, own_value);
    Random random(7);
    std::uint64_t attacks = 0;
    bool attacking = false;
    network.set_rule([&](Flight&) {
        if (attacking || attacks == 5000) return Network::Disposition::deliver;
        attacking = true;
        for (const Node port : ports) {
            // A rank takes packets from the address of its switch only, so the attacker forges that too.
            const bool as_root = port == server_node && random.chance(0.8);
            const Node from = port.kind == Node::Kind::worker ? network.above(port)
                              : as_root                       ? root_node
                                                              : worker_node(9);
            network.inject({from, port, forged(network.config(), random)});
            network.inject({from, port, noise(random)});
            ++attacks;
        }
        attacking = false;
        return Network::Disposition::deliver;
    });
    network.run();
    EXPECT_TRUE(network.done()) << "no timer was needed: the forged packets disturbed nothing";
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_GT(attacks, 1000U);
    EXPECT_GT(network.server().counters().forged, 100U);
    EXPECT_GT(network.machine(server_node).strays(), 100U);
    EXPECT_GT(network.worker(3).counters().forged, 100U);
    EXPECT_GT(network.root().counters().forged, 100U);
    EXPECT_EQ(network.server().counters().audit_failures, 0U);
    EXPECT_EQ(network.occupied(), 0U);
}

TEST(Hazard, H35_ForgedResultOfTheRightFragmentIsDropped) {
    Network network(star(2));
    network.submit_all(elements_each, own_value);
    network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 1); });
    network.run();
    atp_header ack = first_sending(network, 0).header();
    ack.type = ATP_TYPE_ACK;
    ack.lanes = ATP_FLOAT32_LANES;
    ack.worker = ATP_WORKER_ALL;
    for (const std::uint64_t token : {0x5eecULL, 0x5eefULL, 0x100005eedULL, ~0ULL}) {
        ack.token = token;
        network.inject({rack_node(0), worker_node(0), make_packet(ack, {666, 666, 666, 666})});
    }
    network.run();
    EXPECT_EQ(network.worker(0).counters().forged, 4U);
    EXPECT_EQ(network.output(0), Values(elements_each, 0.0F));
    network.release();
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
}

}  // namespace
}  // namespace atp::testing
