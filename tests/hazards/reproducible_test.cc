// SPDX-License-Identifier: Apache-2.0
// The same inputs give the same bits for every tree, window, table size, loss pattern and packet order.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using Values = std::vector<float>;

struct Case {
    const char* name;
    float (*value_of)(unsigned rank, std::size_t element);
};

float ordinary(unsigned rank, std::size_t element) {
    return std::sin(static_cast<float>(element * 31 + rank * 7)) * 3.0F;
}
float overflowing(unsigned rank, std::size_t element) {
    // 20 * 1e8 fits in int32, the sum of two such values does not
    return (element % 5 == 0 ? 20.0F : 1.0F) + ordinary(rank, element) / 10;
}
float mixed(unsigned rank, std::size_t element) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::size_t kind = element % 29;
    if (kind == 3 && rank == 1) return 1e30F;
    if (kind == 5 && rank == 2) return -infinity;
    if (kind == 7) return rank == 0 ? infinity : -infinity;
    if (kind == 11 && rank == 3) return std::bit_cast<float>(0x7fc12345U);
    if (kind == 13) return rank % 2 == 0 ? 3e30F : -3e30F;
    if (kind == 17) return std::bit_cast<float>(rank + 1U);  // denormal
    if (kind == 19) return -0.0F;
    if (kind == 23 && rank == 0) return 1e20F;
    return overflowing(rank, element);
}

float at_the_bound(unsigned rank, std::size_t element) {
    // 6 * 3.5 * 1e8 fits in int32. Every 41st sum does not.
    if (element % 41 == 40) return 20.0F - static_cast<float>(rank);
    return element % 2 == 0 ? 3.5F : -3.5F;
}

class Reproducible : public ::testing::TestWithParam<Case> {
  protected:
    static constexpr std::size_t elements = elements_each * 40;

    [[nodiscard]] static std::vector<std::uint32_t> undisturbed() {
        NetworkConfig config = star(6);
        config.racks_aggregate = false;
        Network network(config);
        network.submit_all(elements, GetParam().value_of);
        EXPECT_TRUE(network.finish());
        return network.result_bits();
    }
    // The seed chooses the tree, the levels that aggregate, the table size and the window.
    [[nodiscard]] static NetworkConfig some_tree(std::uint32_t seed) {
        const std::vector<NetworkConfig> trees{
            star(6), racks(3, 2), racks(2, 3), racks(6, 1),
            network_of(*Membership::make(
                {{.ranks = {0, 1, 2, 3}}, {.ranks = {4}, .direct = true}, {.ranks = {5}, .direct = true}}))};
        NetworkConfig config = trees[seed % trees.size()];
        config.aggregators = std::vector<std::uint32_t>{1, 3, 8, 1024}[seed / 5 % 4];
        config.racks_aggregate = seed % 7 != 0;
        config.root_aggregates = seed % 3 != 0;
        config.channel.window_log2 = static_cast<std::uint8_t>(seed % 5);
        config.channel.audit = true;
        return config;
    }
};
INSTANTIATE_TEST_SUITE_P(Values, Reproducible,
                         ::testing::Values(Case{"Ordinary", ordinary}, Case{"Overflowing", overflowing},
                                           Case{"Mixed", mixed}, Case{"AtTheBound", at_the_bound}),
                         [](const auto& values) { return std::string(values.param.name); });

TEST_P(Reproducible, ResultBitsDependOnlyOnTheInputs) {
    const std::vector<std::uint32_t> expected = undisturbed();
    for (std::uint32_t seed = 1; seed <= 150; ++seed) {
        Network network(some_tree(seed));
        network.submit_all(elements, GetParam().value_of);
        const Faults faults{.loss = seed % 4 * 0.02, .duplication = seed % 3 * 0.05, .reordering = seed % 5 * 0.2};
        ASSERT_TRUE(network.finish_among(faults, seed)) << seed;
        for (unsigned rank = 0; rank < 6; ++rank) ASSERT_EQ(network.output(rank).size(), elements);
        ASSERT_EQ(network.result_bits(), expected) << seed;
    }
}

// A pipeline adds modulo 2^32 and reports no overflow. Each switch of the tree may be one.
TEST_P(Reproducible, BoundedJobsHaveTheSameBitsThroughPipelines) {
    const std::vector<std::uint32_t> expected = undisturbed();
    for (std::uint32_t seed = 1; seed <= 150; ++seed) {
        NetworkConfig config = some_tree(seed);
        config.bounded = true;
        config.pipelines = seed * 2654435761U >> 20U;
        config.root_is_pipeline = seed % 2 == 0;
        Network network(config);
        network.submit_all(elements, GetParam().value_of);
        ASSERT_TRUE(network.finish_among({.loss = 0.05, .duplication = 0.05, .reordering = 0.3, .marking = 0.05}, seed))
            << seed;
        ASSERT_EQ(network.result_bits(), expected) << seed;
    }
}

TEST(Sums, PipelineAddsBoundedJobs) {
    NetworkConfig config = racks(2, 3);
    config.bounded = true;
    config.pipelines = 0b11;
    config.root_is_pipeline = true;
    Network network(config);
    network.submit_all(elements_each * 20, own_value);
    EXPECT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    // One gradient of each fragment reaches the server.
    EXPECT_EQ(network.count_delivered(
                  [](const Flight& flight) { return flight.to == server_node && flight.is(ATP_TYPE_GRADIENT); }),
              20U);
}

// H22: without the bound a sum wraps, and nothing shows it.
TEST(Hazard, H22_UnboundedJobIsWrongBehindAPipeline) {
    NetworkConfig config = racks(1, 6);
    config.pipelines = 1;
    for (const bool bounded : {false, true}) {
        config.bounded = bounded;
        Network network(config);
        network.submit_all(elements_each, overflowing);
        EXPECT_TRUE(network.finish());
        EXPECT_EQ(network.sums_are_right(), bounded);
    }
}

TEST(Sums, NanAndInfinityFollowIeee) {
    Network network(star(3));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<Values> inputs{{infinity, infinity, nan}, {1, -infinity, 1}, {2, 0, 2}};
    for (unsigned rank = 0; rank < 3; ++rank) network.submit(rank, inputs[rank]);
    EXPECT_TRUE(network.finish());
    for (unsigned rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(network.output(rank)[0], infinity);
        EXPECT_TRUE(std::isnan(network.output(rank)[1]));
        EXPECT_TRUE(std::isnan(network.output(rank)[2]));
    }
}

}  // namespace
}  // namespace atp::testing
