// SPDX-License-Identifier: Apache-2.0
// Runs the state machines in the network of figure 9 of the ATP paper: three racks of two workers, and the server in
// the third rack.
#include <gtest/gtest.h>

#include <vector>

#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using protocol::Unit;

constexpr std::size_t fragments = 50;

// ATP: the switch in front of the server adds the sums of the two other racks and the gradients of its own two workers.
NetworkConfig atp_of_figure_9() {
    return network_of(*Membership::make({Unit{.ranks = {0, 1}}, Unit{.ranks = {2, 3}},
                                         Unit{.ranks = {4}, .direct = true}, Unit{.ranks = {5}, .direct = true}}));
}

// Rack-scale aggregation: each switch adds the gradients of its own rack only. The switch in front of the server
// forwards the sums of the other racks.
NetworkConfig rack_scale_of_figure_9() {
    NetworkConfig config = racks(3, 2);
    config.root_aggregates = false;
    return config;
}

struct Load {
    std::size_t packets = 0;
    std::size_t bytes = 0;
};

Load load_of_the_server(const NetworkConfig& config) {
    Network network(config);
    network.submit_all(elements_each * fragments, own_value);
    network.run();
    EXPECT_TRUE(network.done());
    EXPECT_TRUE(network.sums_are_right());
    return {network.count_delivered([](const Flight& flight) { return flight.to == server_node; }),
            network.bytes_into(server_node)};
}

TEST(Figure9, RackScaleAggregationSendsTheServerThreeTimesTheBytesOfAtp) {
    const Load atp = load_of_the_server(atp_of_figure_9());
    const Load rack_scale = load_of_the_server(rack_scale_of_figure_9());
    EXPECT_EQ(atp.packets, fragments);
    EXPECT_EQ(rack_scale.packets, 3 * atp.packets);
    EXPECT_EQ(rack_scale.bytes, 3 * atp.bytes);
}

TEST(Figure9, WithoutAggregationTheServerReceivesSixTimesTheBytesOfAtp) {
    NetworkConfig config = rack_scale_of_figure_9();
    config.racks_aggregate = false;
    EXPECT_EQ(load_of_the_server(config).bytes, 6 * load_of_the_server(atp_of_figure_9()).bytes);
}

TEST(Figure9, BothSystemsGiveTheSameBits) {
    std::vector<std::vector<std::uint32_t>> results;
    for (const NetworkConfig& config : {atp_of_figure_9(), rack_scale_of_figure_9()}) {
        Network network(config);
        network.submit_all(elements_each * fragments, own_value);
        EXPECT_TRUE(network.finish());
        results.push_back(network.result_bits());
    }
    EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace atp::testing
