// SPDX-License-Identifier: Apache-2.0
// Results by multicast on loopback: the same sums, and unicast copies for a rank that does not receive the group.
#include <gtest/gtest.h>

#include "fabric.h"
#include "values.h"

namespace atp::test {
namespace {

constexpr std::size_t many_windows = std::size_t{small_lanes} * small_window * 20 + 3;

comm::Options by_multicast() {
    comm::Options options = small_options();
    options.audit = true;
    options.multicast = control::parse_multicast("on").value();
    return options;
}

std::uint64_t sent_to_groups(const switchd::SwitchNode& node) {
    std::uint64_t sent = 0;
    for (const client::ShardReport& shard : node.snapshot().shards) sent += shard.shard.grouped;
    return sent;
}

// Sums until one result has come by the group, and then once more.
void sum_by_group(comm::Communicator& communicator) {
    for (std::uint32_t round = 0; round < 50; ++round) expect_sum(communicator, many_windows, round);
    EXPECT_TRUE(eventually([&] { return communicator.results_by_group(); }));
    EXPECT_TRUE(communicator.missing_features().empty());
}

TEST(Multicast, ResultsOfAllChannelsGoToTheGroup) {
    const auto node = start(small_switch());
    comm::Options options = by_multicast();
    options.channels = 2;
    Job(3, {address_of(*node)}, options).run(sum_by_group);
    EXPECT_GT(sent_to_groups(*node), 0U);
}

TEST(Multicast, ResultsOfAServerBesideAWorkerGoToTheGroup) {
    const auto node = start(small_switch());
    comm::Options options = by_multicast();
    options.server = comm::ServerPlace::colocated;
    Job(3, {address_of(*node)}, options).run(sum_by_group);
    EXPECT_GT(sent_to_groups(*node), 0U);
}

TEST(Multicast, RacksWithSwitchesGetCopies) {
    TwoLevels fabric;
    Job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, by_multicast())
        .run([](comm::Communicator& communicator) {
            for (std::uint32_t round = 0; round < 10; ++round) expect_sum(communicator, many_windows, round);
            EXPECT_FALSE(communicator.results_by_group());
        });
    EXPECT_EQ(sent_to_groups(*fabric.root), 0U);
}

TEST(Multicast, EmulatedPortsGetCopies) {
    const auto node = start(with_ports(small_switch(), {.rate_bits_per_s = 10'000'000'000}));
    Job(2, {address_of(*node)}, by_multicast()).run([](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < 50; ++round) expect_sum(communicator, many_windows, round);
        EXPECT_FALSE(communicator.results_by_group());
    });
    EXPECT_EQ(sent_to_groups(*node), 0U);
}

}  // namespace
}  // namespace atp::test
