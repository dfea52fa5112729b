// SPDX-License-Identifier: Apache-2.0
// A reduce-scatter whose owners add their own numbers at home. The bits are those of an all-reduce.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "support/owned_floats.h"
#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using protocol::Unit;
using protocol::WorkerEvent;

constexpr float too_large = 3e9F;   // has no integer at scale 1
constexpr float near_limit = 2e9F;  // two of them leave 32 bits

// A reduce-scatter of all workers, and what an all-reduce of the same numbers gives.
class HomeScene {
  public:
    explicit HomeScene(const NetworkConfig& config) : network(config), inputs(config.membership.workers()) {}

    [[nodiscard]] unsigned workers() const { return network.config().membership.workers(); }
    [[nodiscard]] std::size_t fragment() const { return network.config().channel.payload_lanes(); }

    void fill(std::size_t fragments) {
        for (unsigned rank = 0; rank < workers(); ++rank) {
            for (std::size_t at = 0; at < fragments * fragment(); ++at) {
                inputs[rank].push_back(static_cast<float>(rank + 1) * 1000 + static_cast<float>(at));
            }
        }
    }
    void submit(const OwnedFloats::Form& form = {}) {
        for (unsigned rank = 0; rank < workers(); ++rank) submit_rank(rank, form);
    }
    void submit_rank(unsigned rank, OwnedFloats::Form form) {
        form.workers = workers();
        form.fragment = fragment();
        form.scale = static_cast<float>(network.config().scale);
        tensors.push_back(std::make_unique<OwnedFloats>(form, inputs[rank]));
        network.submit(rank, *tensors.back());
    }
    void expect_bits_of_all_reduce() {
        Network other(network.config());
        for (unsigned rank = 0; rank < workers(); ++rank) other.submit(rank, inputs[rank]);
        ASSERT_TRUE(other.finish());
        for (unsigned rank = 0; rank < workers(); ++rank) {
            const OwnedFloats& own = *tensors[rank];
            for (std::size_t at = 0; at < own.size(); ++at) {
                if (own.owner_at(at) != rank) continue;
                ASSERT_EQ(std::bit_cast<std::uint32_t>(own.output()[at]),
                          std::bit_cast<std::uint32_t>(other.output(rank)[at]))
                    << "rank " << rank << " element " << at << ": " << own.output()[at] << " and "
                    << other.output(rank)[at];
            }
        }
    }
    // Gradients that worker `rank` sent for fragments that it owns.
    [[nodiscard]] std::uint64_t own_gradients(unsigned rank) const {
        return network.count_delivered([rank](const Flight& flight) {
            return flight.is(ATP_TYPE_GRADIENT) && flight.from == worker_node(rank) && flight.header().peer == rank;
        });
    }

    Network network;
    std::vector<std::vector<float>> inputs;
    std::vector<std::unique_ptr<OwnedFloats>> tensors;
};

std::vector<NetworkConfig> home_placements() {
    std::vector<NetworkConfig> all{
        star(2), star(3), racks(2, 1), racks(2, 2),
        network_of(*Membership::make({Unit{.ranks = {0, 1}}, Unit{.ranks = {2}, .direct = true}}))};
    for (NetworkConfig& config : all) config.scale = 1;
    return all;
}

TEST(Home, OwnersSendOneFragmentOfEachOperationAndSwitchesAddAllOthers) {
    for (const NetworkConfig& config : home_placements()) {
        HomeScene scene(config);
        scene.fill(5U * scene.workers());
        scene.submit();
        ASSERT_TRUE(scene.network.finish(0));
        scene.expect_bits_of_all_reduce();
        for (unsigned rank = 0; rank < scene.workers(); ++rank) EXPECT_EQ(scene.own_gradients(rank), 1U);
        EXPECT_EQ(scene.network.server().counters().flushes, 0U);
        EXPECT_EQ(scene.network.server().counters().added_here, scene.workers());  // the fragments that owners sent
        EXPECT_EQ(scene.network.occupied(), 0U);
    }
}

TEST(Home, SumsMayReplaceTheInput) {
    HomeScene scene(home_placements()[1]);
    scene.fill(12);
    scene.submit({.in_place = true});
    ASSERT_TRUE(scene.network.finish(0));
    scene.expect_bits_of_all_reduce();
}

TEST(Home, BitsAreThoseOfAnAllReduceWhateverTheNumbersAndTheNetwork) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> odd{too_large, -too_large, infinity, NAN, near_limit, -near_limit, -0.0F, 1e-40F};
    for (const NetworkConfig& config : home_placements()) {
        for (std::uint32_t seed = 1; seed <= 30; ++seed) {
            SCOPED_TRACE(seed);
            HomeScene scene(config);
            scene.fill(30);
            for (std::uint32_t at = 0; at < seed; ++at) {
                std::vector<float>& input = scene.inputs[(seed + at) % scene.workers()];
                input[(at * 7 + seed) % input.size()] = odd[(at + seed) % odd.size()];
            }
            scene.submit();
            const Faults faults{.loss = 0.05, .duplication = 0.05, .reordering = 0.2, .marking = 0.02};
            ASSERT_TRUE(scene.network.finish_among(faults, seed));
            scene.expect_bits_of_all_reduce();
        }
    }
}

// The server cannot complete the second fragment of worker 0 until its floats arrive, whatever READY says.
TEST(Home, H60_NoReadyPassesAFragmentThatItsOwnerHasToSend) {
    HomeScene scene(home_placements()[1]);
    scene.fill(9);
    scene.inputs[0][scene.fragment()] = too_large;
    scene.network.set_rule([](const Flight& flight) {
        const bool floats = flight.is(ATP_TYPE_GRADIENT, 1) && flight.from == worker_node(0);
        return floats ? Network::Disposition::drop : Network::Disposition::deliver;
    });
    scene.submit({.one_owner = true});
    scene.network.run();
    const auto passes = [](const Flight& flight) { return flight.is(ATP_TYPE_READY) && flight.header().argument > 1; };
    EXPECT_EQ(scene.network.count_delivered(passes), 0U);
    EXPECT_FALSE(scene.network.server().has_result(1));
    EXPECT_TRUE(scene.network.server().has_result(2));  // its owner sends it too
    scene.network.clear_rule();
    ASSERT_TRUE(scene.network.finish());
    scene.expect_bits_of_all_reduce();
}

TEST(Home, H60_ALostReadyOrALostFirstFragmentCostsTimeOnly) {
    for (const atp_type type : {ATP_TYPE_READY, ATP_TYPE_GRADIENT}) {
        HomeScene scene(home_placements()[0]);
        scene.fill(8);
        scene.network.drop_next(
            [type](const Flight& flight) { return flight.is(type) && flight.from == worker_node(0); }, 3);
        scene.submit();
        ASSERT_TRUE(scene.network.finish());
        scene.expect_bits_of_all_reduce();
    }
}

Network::Disposition loses_readies_of_the_first(const Flight& flight) {
    const bool lost = flight.is(ATP_TYPE_READY) && flight.from == worker_node(0);
    return lost ? Network::Disposition::drop : Network::Disposition::deliver;
}

// As in hazard_progress_test, for sums with owners.
TEST(Home, H91_AWorkerThatPassesTheSwitchesNeedsNoTimer) {
    for (NetworkConfig config : home_placements()) {
        config.bounded = true;
        HomeScene scene(config);
        scene.fill(30);
        for (float& value : scene.inputs[0]) value = near_limit;
        scene.submit();
        ASSERT_TRUE(scene.network.finish(0));
        EXPECT_GT(scene.network.worker(0).counters().bypassed, 0U);
        scene.expect_bits_of_all_reduce();
        EXPECT_EQ(scene.network.occupied(), 0U);
    }
}

// A timer repeats the lost READYs.
TEST(Home, H92_AResultAfterATimerSaysSoToAllWorkers) {
    for (const NetworkConfig& config : home_placements()) {
        HomeScene scene(config);
        scene.fill(3U * scene.workers());
        scene.network.set_rule(loses_readies_of_the_first);
        scene.submit();
        scene.network.run();
        ASSERT_FALSE(scene.network.done());
        scene.network.clear_rule();
        scene.network.forget_delivered();
        ASSERT_TRUE(scene.network.finish());
        scene.expect_bits_of_all_reduce();
        EXPECT_EQ(scene.network.count_delivered(is_ack_of_a_first_sending), 0U);
    }
}

// Sums of the other owners complete. Those of worker 0 wait for its READY, and nothing is lost.
TEST(Home, H61_ALateReadyIsNoLossAndNoCongestion) {
    for (const NetworkConfig& config : home_placements()) {
        HomeScene scene(config);
        if (scene.workers() < 3) continue;
        scene.fill(5U * scene.workers());
        scene.network.set_rule(loses_readies_of_the_first);
        scene.submit();
        scene.network.run();
        EXPECT_TRUE(scene.network.server().has_result(2));
        for (unsigned rank = 0; rank < scene.workers(); ++rank) {
            const protocol::WorkerCounters& counters = scene.network.worker(rank).counters();
            EXPECT_GT(counters.acks, 3U);
            EXPECT_EQ(counters.resent + counters.probes, 0U) << rank;
            EXPECT_EQ(counters.halvings, 0U) << rank;
        }
        scene.network.clear_rule();
        ASSERT_TRUE(scene.network.finish());
        scene.expect_bits_of_all_reduce();
    }
}

TEST(Home, SumOfAllOthersBeyond32BitsNeedsTheOwner) {
    for (const NetworkConfig& config : home_placements()) {
        HomeScene scene(config);
        if (scene.workers() < 3) continue;
        scene.fill(9);
        for (unsigned rank = 1; rank < 3; ++rank) scene.inputs[rank][2 * scene.fragment()] = near_limit;
        scene.submit({.one_owner = true});
        ASSERT_TRUE(scene.network.finish());
        scene.expect_bits_of_all_reduce();
        EXPECT_GE(scene.own_gradients(0), 2U);  // the first of the operation, and this one
        EXPECT_EQ(scene.network.server().counters().float_fragments, 0U);
    }
}

// Only its first own fragment shows what the owner of all sums runs.
TEST(Home, H40_OwnerThatRunsAnotherOperationIsAMismatch) {
    for (const NetworkConfig& config : home_placements()) {
        HomeScene scene(config);
        scene.fill(6);
        for (unsigned rank = 0; rank < scene.workers(); ++rank) {
            scene.submit_rank(rank, {.one_owner = true, .purpose = static_cast<std::uint16_t>(rank == 0 ? 5 : 6)});
        }
        ASSERT_TRUE(scene.network.finish(60));
        for (unsigned rank = 0; rank < scene.workers(); ++rank) {
            ASSERT_EQ(scene.network.events(rank).size(), 1U);
            EXPECT_EQ(scene.network.events(rank)[0].kind, WorkerEvent::Kind::mismatched) << rank;
        }
    }
}

}  // namespace
}  // namespace atp::testing
