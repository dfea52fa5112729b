// SPDX-License-Identifier: Apache-2.0
// Fragments with an owner: a sum for one worker (reduce-scatter), or the lanes of one worker for all others
// (all-gather).
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/owned_tensor.h"
#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using protocol::Unit;
using protocol::WorkerEvent;

std::int32_t value_of(unsigned rank, std::size_t element) {
    return static_cast<std::int32_t>(1000 * (rank + 1) + element);
}

// One operation of all workers.
class Scene {
  public:
    explicit Scene(const NetworkConfig& config) : network(config) {}

    void add(OwnedTensor::Form form, std::size_t elements) {
        form.workers = workers();
        form.fragment = network.config().channel.payload_lanes();
        for (unsigned rank = 0; rank < workers(); ++rank) {
            std::vector<std::int32_t> input(elements);
            for (std::size_t at = 0; at < elements; ++at) input[at] = value_of(rank, at);
            tensors.push_back(std::make_unique<OwnedTensor>(form, std::move(input)));
        }
    }
    void submit(std::size_t operation, unsigned rank) { network.submit(rank, tensor(operation, rank)); }
    void submit_all(std::size_t operation) {
        for (unsigned rank = 0; rank < workers(); ++rank) submit(operation, rank);
    }
    [[nodiscard]] unsigned workers() const { return network.config().membership.workers(); }
    [[nodiscard]] OwnedTensor& tensor(std::size_t operation, unsigned rank) {
        return *tensors[operation * workers() + rank];
    }

    void expect_results(std::size_t operation, bool one_sender) {
        for (unsigned rank = 0; rank < workers(); ++rank) {
            const OwnedTensor& own = tensor(operation, rank);
            for (std::size_t at = 0; at < own.size(); ++at) {
                const unsigned owner = own.owner_at(at);
                std::int32_t expected = OwnedTensor::untouched;
                if (one_sender && owner != rank) expected = value_of(owner, at);
                if (!one_sender && owner == rank) {
                    expected = 0;
                    for (unsigned each = 0; each < workers(); ++each) expected += value_of(each, at);
                }
                ASSERT_EQ(own.output()[at], expected) << "rank " << rank << " element " << at;
            }
        }
    }

    Network network;
    std::vector<std::unique_ptr<OwnedTensor>> tensors;
};

std::vector<NetworkConfig> placements() {
    return {star(2), star(3), racks(2, 1), racks(2, 2),
            network_of(*Membership::make({Unit{.ranks = {0, 1}}, Unit{.ranks = {2}, .direct = true}}))};
}

bool is_for(const Flight& flight, unsigned rank) { return flight.to == worker_node(rank); }
bool is_ack_with_lanes(const Flight& flight) {
    return flight.is(ATP_TYPE_ACK) && flight.to.kind == Node::Kind::worker && flight.header().lanes != 0;
}

TEST(Delivery, OnlyTheOwnerGetsASum) {
    for (const NetworkConfig& config : placements()) {
        Scene scene(config);
        scene.add({.purpose = 7}, 40);
        scene.submit_all(0);
        ASSERT_TRUE(scene.network.finish(0));
        scene.expect_results(0, false);
        EXPECT_EQ(scene.network.count_delivered(is_ack_with_lanes), 14U);  // one for each fragment
        EXPECT_EQ(scene.network.occupied(), 0U);                           // ACKs without lanes free aggregators
    }
}

TEST(Delivery, TheSenderGetsNoCopyOfItsLanes) {
    for (const NetworkConfig& config : placements()) {
        Scene scene(config);
        scene.add({.one_sender = true, .purpose = 7}, 40);
        scene.submit_all(0);
        ASSERT_TRUE(scene.network.finish(0));
        scene.expect_results(0, true);
        EXPECT_EQ(scene.network.count_delivered(is_ack_with_lanes), 14U * (scene.workers() - 1));
        const auto gradients = [](const Flight& flight) {
            return flight.is(ATP_TYPE_GRADIENT) && flight.from.kind == Node::Kind::worker;
        };
        EXPECT_EQ(scene.network.count_delivered(gradients), 14U);
    }
}

TEST(Delivery, BothOperationsSurviveLossDuplicatesAndReordering) {
    for (const NetworkConfig& config : placements()) {
        for (std::uint32_t seed = 1; seed <= 40; ++seed) {
            SCOPED_TRACE(seed);
            Scene scene(config);
            scene.add({.purpose = 7}, 95);
            scene.add({.one_sender = true, .purpose = 8}, 95);
            scene.add({.purpose = 9, .first_owner = 1}, 31);
            for (std::size_t operation = 0; operation < 3; ++operation) scene.submit_all(operation);
            const Faults faults{.loss = 0.05, .duplication = 0.05, .reordering = 0.2, .marking = 0.02};
            ASSERT_TRUE(scene.network.finish_among(faults, seed));
            scene.expect_results(0, false);
            scene.expect_results(1, true);
            scene.expect_results(2, false);
        }
    }
}

TEST(Delivery, H58_OwnerThatMissesItsSumAsksForIt) {
    Scene scene(star(3));
    scene.add({}, 9);
    scene.submit_all(0);
    scene.network.drop_next([](const Flight& flight) { return flight.is(ATP_TYPE_ACK, 1) && is_for(flight, 1); }, 2);
    ASSERT_TRUE(scene.network.finish());
    scene.expect_results(0, false);
    EXPECT_GT(scene.network.worker(1).counters().probes, 0U);
}

TEST(Delivery, H59_OwnerIgnoresAnAckWithoutLanes) {
    Scene scene(star(2));
    scene.add({}, 3);
    scene.submit_all(0);
    scene.network.hold_next([](const Flight& flight) {
        return flight.is(ATP_TYPE_ACK, 0) && is_for(flight, 0) && flight.header().lanes != 0;
    });
    scene.network.run();
    EXPECT_EQ(scene.network.worker(0).counters().acks, 0U);
    EXPECT_EQ(scene.network.worker(0).counters().refused, 0U);
    scene.network.release();
    ASSERT_TRUE(scene.network.finish(0));
    scene.expect_results(0, false);
}

TEST(Delivery, H59_OtherWorkersRefuseLanes) {
    Scene scene(star(2));
    scene.add({}, 3);
    scene.submit_all(0);
    scene.network.set_rule([](Flight& flight) {
        if (!flight.is(ATP_TYPE_ACK) || flight.to.kind != Node::Kind::worker) return Network::Disposition::deliver;
        if (flight.header().lanes == 0) return Network::Disposition::drop;
        flight.to = worker_node(1);
        return Network::Disposition::deliver;
    });
    scene.network.run();
    EXPECT_EQ(scene.network.worker(1).counters().acks, 0U);
    EXPECT_EQ(scene.network.worker(1).counters().refused, 1U);
    scene.network.clear_rule();
    ASSERT_TRUE(scene.network.finish());
    scene.expect_results(0, false);
}

// Two workers name different owners of a fragment, in every placement.
TEST(Delivery, H59_DifferentOwnersAreAMismatch) {
    for (const bool one_sender : {false, true}) {
        for (const NetworkConfig& config : placements()) {
            Scene scene(config);
            scene.add({.one_sender = one_sender}, 9);
            scene.add({.one_sender = one_sender, .first_owner = 1}, 9);
            for (unsigned rank = 0; rank < scene.workers(); ++rank) scene.submit(rank == 0 ? 1 : 0, rank);
            ASSERT_TRUE(scene.network.finish(60));
            for (unsigned rank = 0; rank < scene.workers(); ++rank) {
                ASSERT_EQ(scene.network.events(rank).size(), 1U);
                EXPECT_EQ(scene.network.events(rank)[0].kind, WorkerEvent::Kind::mismatched) << rank;
            }
        }
    }
}

TEST(Delivery, H59_AReceiverThatExpectsAnotherLengthEndsAsMismatched) {
    Scene scene(star(2));
    scene.add({.one_sender = true}, 2);
    scene.add({.one_sender = true}, 3);
    scene.submit(0, 0);
    scene.submit(1, 1);
    scene.network.run();
    EXPECT_TRUE(scene.network.worker(1).failed());
    ASSERT_EQ(scene.network.events(1).size(), 1U);
    EXPECT_EQ(scene.network.events(1)[0].kind, WorkerEvent::Kind::mismatched);
}

TEST(Delivery, H60_NothingCompletesBeforeEveryWorkerTakesIt) {
    Scene scene(star(3));
    scene.add({.one_sender = true}, 60);
    scene.submit(0, 0);
    scene.submit(0, 1);
    scene.network.run();
    for (int expiry = 0; expiry < 5; ++expiry) {
        ASSERT_TRUE(scene.network.expire());
        scene.network.run();
    }
    EXPECT_EQ(scene.network.server().counters().completed, 0U);
    const auto names_late_worker = [](const Flight& flight) {
        return flight.is(ATP_TYPE_WAIT) && flight.header().bitmap0 == 1U << 2U;
    };
    EXPECT_GT(scene.network.count_delivered(names_late_worker), 0U);
    scene.submit(0, 2);
    ASSERT_TRUE(scene.network.finish());
    scene.expect_results(0, true);
}

TEST(Delivery, H60_ALostReadyIsRepeated) {
    Scene scene(star(2));
    scene.add({.one_sender = true}, 9);
    scene.submit_all(0);
    scene.network.drop_next([](const Flight& flight) { return flight.is(ATP_TYPE_READY); }, 3);
    ASSERT_TRUE(scene.network.finish());
    scene.expect_results(0, true);
}

// The copies of one result are lost. The worker that missed it can still ask when the others are two windows ahead.
TEST(Delivery, H60_ALateReceiverStillGetsItsResult) {
    Scene scene(star(3));
    scene.add({.one_sender = true}, 3 * 40);
    scene.submit_all(0);
    scene.network.set_rule([&, lost = 0](const Flight& flight) mutable {
        const bool loses = flight.is(ATP_TYPE_ACK, 4) && is_for(flight, 2) && lost < 3;
        lost += loses ? 1 : 0;
        return loses ? Network::Disposition::drop : Network::Disposition::deliver;
    });
    ASSERT_TRUE(scene.network.finish());
    scene.expect_results(0, true);
}

TEST(Delivery, AnAllGatherBesideAnAllReduceIsAMismatch) {
    for (const NetworkConfig& config : placements()) {
        Scene scene(config);
        scene.add({.one_sender = true}, 9);
        for (unsigned rank = 1; rank < scene.workers(); ++rank) scene.submit(0, rank);
        scene.network.submit_integers(0, std::vector<std::int32_t>(9, 1));
        ASSERT_TRUE(scene.network.finish(60));
        for (unsigned rank = 0; rank < scene.workers(); ++rank) {
            ASSERT_EQ(scene.network.events(rank).size(), 1U);
            EXPECT_EQ(scene.network.events(rank)[0].kind, WorkerEvent::Kind::mismatched) << rank;
        }
    }
}

}  // namespace
}  // namespace atp::testing
