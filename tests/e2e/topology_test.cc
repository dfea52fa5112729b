// SPDX-License-Identifier: Apache-2.0
// The same jobs with every arrangement of switches, servers, memory and loss give the same bits.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "fabric.h"
#include "net/clock.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Reduction;
using comm::ServerPlace;
using numeric::ElementType;

void sum_exactly(comm::Communicator& communicator) {
    expect_sum(communicator, several_windows, 1);
    expect_sum(communicator, ElementType::int64, Reduction::sum, 500, 2, true);
    work_through(communicator);
    expect_sum(communicator, ElementType::float16, Reduction::average, 1, 3, true);
}

std::uint64_t completed_by(const switchd::SwitchNode& node) {
    std::uint64_t completed = 0;
    for (const client::ShardReport& shard : node.snapshot().shards)
        completed += shard.packets.events[ATP_EVENT_COMPLETED];
    return completed;
}

// ------------------------------------------------------------------------------------------------------ Two levels

class TwoRacks : public testing::TestWithParam<std::uint32_t> {};

TEST_P(TwoRacks, SumExactly) {
    TwoLevels fabric;
    comm::Options options = small_options();
    options.channels = 2;
    options.audit = true;
    Job(GetParam(), {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, options)
        .run([](comm::Communicator& communicator) {
            EXPECT_EQ(communicator.formation().units, 2U);
            EXPECT_EQ(communicator.formation().levels, 2U);
            sum_exactly(communicator);
        });
}

INSTANTIATE_TEST_SUITE_P(Topology, TwoRacks, testing::Values(2, 3, 5, 8));

TEST(Topology, RanksOfTheRootAndARackSumExactly) {
    TwoLevels fabric;
    const std::string leaf = address_of(*fabric.leaves[0]);
    const std::string root = address_of(*fabric.root);
    Job(4, {leaf, root}).run([](comm::Communicator& communicator) {
        EXPECT_EQ(communicator.formation().units, 3U) << "one rack, and two ranks by themselves";
        sum_exactly(communicator);
    });
}

TEST(Topology, JobOfOneRackUsesItsOwnSwitchAlone) {
    TwoLevels fabric;
    Job(3, {address_of(*fabric.leaves[1])}).run([](comm::Communicator& communicator) {
        EXPECT_EQ(communicator.formation().levels, 1U);
        sum_exactly(communicator);
    });
}

TEST(Topology, Ipv6SwitchSumsExactly) {
    switchd::SwitchNodeConfig config = small_switch();
    config.udp.local = wire::Address::loopback(wire::Family::ipv6, 0);
    const auto node = switchd::SwitchNode::start(config);
    if (!node && node.error().reason != Reason::malformed) GTEST_SKIP() << to_string(node.error());
    ASSERT_TRUE(node) << to_string(node.error());
    Job(2, {address_of(**node)}).run(sum_exactly);
}

// --------------------------------------------------------------------------------------------- Places of the server

class Servers : public testing::TestWithParam<ServerPlace> {};

TEST_P(Servers, OfOneSwitchAndOfTwoLevelsSumExactly) {
    switchd::SwitchNodeConfig server = small_switch();
    server.memory_bytes = 0;
    const auto first = start(server);
    const auto second = start(server);
    const TwoLevels fabric;
    comm::Options options = small_options();
    options.server = GetParam();
    if (GetParam() == ServerPlace::dedicated) options.dedicated_servers = {address_of(*first), address_of(*second)};
    options.channels = 3;
    const std::string leaf = address_of(*fabric.leaves[0]);
    Job(3, {leaf}, options).run(sum_exactly);
    EXPECT_TRUE(eventually([&] { return completed_by(*fabric.leaves[0]) != 0; })) << "it has aggregated nothing";
    Job(4, {leaf, address_of(*fabric.leaves[1])}, options).run(sum_exactly);
    EXPECT_TRUE(eventually([&] { return completed_by(*fabric.root) != 0; }));
}

INSTANTIATE_TEST_SUITE_P(Topology, Servers, testing::Values(ServerPlace::colocated, ServerPlace::dedicated));

// -------------------------------------------------------------------------------------------------------------- Memory

TEST(Topology, SwitchesWithoutMemoryForwardAndSumsAreExact) {
    switchd::SwitchNodeConfig config = small_switch();
    config.memory_bytes = 0;
    const TwoLevels fabric(config, config);
    Job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}).run(sum_exactly);
    EXPECT_EQ(completed_by(*fabric.root) + completed_by(*fabric.leaves[0]), 0U);
}

class Sharing : public testing::TestWithParam<std::pair<std::uint32_t, std::uint32_t>> {};

TEST_P(Sharing, JobsWithTooFewAggregatorsSumExactly) {
    const auto [jobs, share] = GetParam();
    switchd::SwitchNodeConfig config = small_switch();
    config.lanes = small_lanes;
    config.memory_bytes = memory_for(std::max(1U, jobs * small_window / share), config);
    const auto node = start(config);
    each(jobs, [&](std::uint32_t number) {
        comm::Options options = small_options();
        options.audit = true;
        Job(2, {address_of(*node)}, options).run([number](comm::Communicator& communicator) {
            for (std::uint32_t round = 0; round < 4; ++round) {
                expect_sum(communicator, several_windows, number * 100 + round);
            }
        });
    });
}

INSTANTIATE_TEST_SUITE_P(Topology, Sharing,
                         testing::Values(std::pair(2U, 2U), std::pair(2U, 16U), std::pair(8U, 2U), std::pair(8U, 16U)),
                         [](const auto& sharing) {
                             return std::to_string(sharing.param.first) + "JobsWithOneOf" +
                                    std::to_string(sharing.param.second);
                         });

TEST(Topology, ChannelsOfManyJobsSpreadOverShards) {
    switchd::SwitchNodeConfig config = small_switch();
    config.shards = 4;
    const auto node = start(config);
    each(3, [&](std::uint32_t number) {
        comm::Options options = small_options();
        options.channels = 3;
        options.audit = true;
        Job(2, {address_of(*node)}, options).run([number](comm::Communicator& communicator) {
            for (std::uint32_t round = 0; round < 3; ++round) {
                expect_sum(communicator, several_windows, number * 100 + round);
            }
        });
    });
    EXPECT_TRUE(eventually([&] {
        std::size_t shards_used = 0;
        for (const client::ShardReport& shard : node->snapshot().shards) shards_used += shard.tree.joins == 0 ? 0 : 1;
        return shards_used > 1;
    }));
}

// H19, docs/spec/hazards.md#h19: packets of many channels and jobs, JOINs, LEAVEs and reports on all shards at once.
// Aggregators are few, so their owners change often. ThreadSanitizer and the audit lane detect errors.
TEST(Topology, ConcurrentJobsAndReportsOnAllShardsKeepSumsExact) {
    switchd::SwitchNodeConfig config = small_switch();
    config.shards = 4;
    config.lanes = small_lanes;
    config.memory_bytes = memory_for(3, config);
    config.ageing = std::chrono::milliseconds(5);
    const auto node = start(config);
    std::atomic<bool> over{false};
    std::jthread reader([&] {
        while (!over) {
            EXPECT_FALSE(to_json(node->snapshot()).empty());
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    each(4, [&](std::uint32_t number) {
        for (std::uint32_t incarnation = 0; incarnation < 3; ++incarnation) {
            comm::Options options = small_options();
            options.channels = 3;
            options.audit = true;
            Job(2, {address_of(*node)}, options).run([&](comm::Communicator& communicator) {
                for (std::uint32_t round = 0; round < 2; ++round) {
                    expect_sum(communicator, several_windows, number * 100 + incarnation * 10 + round);
                }
            });
        }
    });
    over = true;
}

// ---------------------------------------------------------------------------------------------------------------- Loss

switchd::SwitchNodeConfig lossy_switch(double loss) { return with_ports(small_switch(), {.loss = loss}); }

TEST(Topology, LossDelaysSumsAndChangesNone) {
    const auto node = start(lossy_switch(0.01));
    comm::Options options = small_options();
    options.audit = true;
    Job(4, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < 5; ++round) expect_sum(communicator, several_windows, round);
        if (communicator.rank() == 0) {
            EXPECT_TRUE(eventually([&] { return counters_of(communicator).resent != 0; })) << "nothing was lost";
        }
    });
}

TEST(Topology, LossInTwoLevelsDelaysSumsAndChangesNone) {
    TwoLevels fabric(lossy_switch(0.02), lossy_switch(0.02));
    Job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}).run([](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < 3; ++round) expect_sum(communicator, several_windows, round);
    });
}

// A rank that hosts a server stays until the other ranks have their last result.
TEST(Topology, LossWithServersBesideWorkersDelaysSumsAndChangesNone) {
    const auto node = start(lossy_switch(0.05));
    comm::Options options = small_options();
    options.server = ServerPlace::colocated;
    options.channels = 2;
    for (std::uint32_t incarnation = 0; incarnation < 3; ++incarnation) {
        Job(3, {address_of(*node)}, options).run([=](comm::Communicator& communicator) {
            expect_sum(communicator, several_windows, incarnation);
        });
    }
}

// A rank that is done leaves at once; a rank that lost the last result still gets it.
TEST(Topology, LostLastResultReachesItsRackAfterTheOtherRackLeft) {
    TwoLevels fabric(small_switch(), lossy_switch(0.1));
    for (std::uint32_t round = 0; round < 5; ++round) {
        Job(2, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])})
            .run([round](comm::Communicator& communicator) { expect_sum(communicator, small_lanes * 3, round); });
    }
}

TEST(Topology, MarksOfShortQueuesHalveWindows) {
    const auto node =
        start(with_ports(small_switch(), {.rate_bits_per_s = 50'000'000, .queue_bytes = 3000, .ecn_bytes = 900}));
    Job(3, {address_of(*node)}).run([](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < 3; ++round) expect_sum(communicator, several_windows, round);
        EXPECT_TRUE(eventually([&] { return counters_of(communicator).ecn_acks != 0; }));
        EXPECT_TRUE(eventually([&] { return counters_of(communicator).halvings != 0; }));
    });
}

// ------------------------------------------------------------------------------------------------------- Same bits

// Some values do not fit integers, and some are too large for a sum in a switch, so the server uses each of its modes.
Bytes mixed_numbers(std::uint32_t rank) {
    Bytes bytes = tensor_of(ElementType::float32, rank, several_windows, 7);
    for (std::size_t at = 0; at < several_windows; at += 331) {
        const float value = at % 2 == 0 ? 1e25F / static_cast<float>(at + 1) : 15.0F + static_cast<float>(rank);
        std::memcpy(bytes.data() + at * 4, &value, 4);
    }
    return bytes;
}

Bytes sum_of_mixed_numbers(const std::vector<std::string>& switches, std::uint32_t channels) {
    comm::Options options = small_options();
    options.channels = channels;
    std::vector<Bytes> sums(4);
    Job(4, switches, options).run([&](comm::Communicator& communicator) {
        Bytes& values = sums[communicator.rank()] = mixed_numbers(communicator.rank());
        EXPECT_TRUE(succeeds(communicator.all_reduce({values.data(), values.data(), several_windows},
                                                     ElementType::float32, Reduction::sum)));
    });
    for (const Bytes& sum : sums) EXPECT_EQ(difference(sums[0], sum, 4), "") << "ranks differ";
    return sums[0];
}

TEST(Topology, SameInputsGiveTheSameBitsOverEveryNetwork) {
    const auto plain = start(small_switch());
    const Bytes expected = sum_of_mixed_numbers({address_of(*plain)}, 1);
    const auto lossy = start(lossy_switch(0.03));
    EXPECT_EQ(difference(expected, sum_of_mixed_numbers({address_of(*lossy)}, 1), 4), "") << "with loss";
    switchd::SwitchNodeConfig tiny = small_switch();
    tiny.memory_bytes = memory_for(5, tiny);
    const auto little = start(tiny);
    EXPECT_EQ(difference(expected, sum_of_mixed_numbers({address_of(*little)}, 1), 4), "") << "with little memory";
    tiny.memory_bytes = 0;
    const auto none = start(tiny);
    EXPECT_EQ(difference(expected, sum_of_mixed_numbers({address_of(*none)}, 1), 4), "") << "with none";
    TwoLevels fabric;
    EXPECT_EQ(difference(expected,
                         sum_of_mixed_numbers({address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, 1), 4),
              "")
        << "in two levels";
}

}  // namespace
}  // namespace atp::test
