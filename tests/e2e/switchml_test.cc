// SPDX-License-Identifier: Apache-2.0
// SwitchML over real sockets: the same jobs as with ATP, a shared pool of slots, and an error for each unsupported
// feature.
#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "fabric.h"
#include "net/clock.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Reduction;
using numeric::ElementType;
using std::chrono::milliseconds;
using std::chrono::seconds;
using switchml::Mode;

switchd::SwitchNodeConfig alone(switchd::SwitchNodeConfig config) {
    config.serves_atp = false;
    config.memory_bytes = 0;
    return config;
}

switchd::SwitchNodeConfig pool_alone(switchd::SwitchNodeConfig config = small_switch()) {
    return alone(serving_both(std::move(config)));
}

std::uint64_t packets(const switchd::SwitchNode& node, const char* name) {
    return switchml_report(node).at("packets").at(name).get<std::uint64_t>();
}

void sum_and_broadcast(comm::Communicator& communicator) {
    std::uint32_t seed = 0;
    for (const ElementType type : {ElementType::float32, ElementType::bfloat16, ElementType::int64}) {
        for (const std::size_t size : {std::size_t{1}, std::size_t{small_lanes}, several_windows}) {
            expect_sum(communicator, type, Reduction::sum, size, ++seed, true);
        }
    }
    expect_sum(communicator, ElementType::float32, Reduction::average, several_windows, ++seed, false);
    const std::uint32_t root = communicator.world() - 1;
    std::uint32_t word = communicator.rank() == root ? 0xDEADBEEF : 0;
    EXPECT_TRUE(succeeds(communicator.broadcast(&word, sizeof word, root)));
    EXPECT_EQ(word, 0xDEADBEEF);
    EXPECT_TRUE(succeeds(communicator.barrier()));
}

Error formation_error(const std::vector<std::string>& switches, const comm::Options& options, std::uint32_t world = 1) {
    const auto formed = Job(world, switches, options).form_all();
    for (const auto& rank : formed) {
        if (!rank) return rank.error();
    }
    ADD_FAILURE() << "it formed";
    return {};
}

class SwitchMlWorlds : public testing::TestWithParam<std::uint32_t> {};

TEST_P(SwitchMlWorlds, SumIsExactAndItsSlotsAreFreed) {
    const auto node = start(pool_alone());
    Job(GetParam(), {address_of(*node)}, switchml_options()).run(sum_and_broadcast);
    EXPECT_TRUE(eventually([&] {
        const auto pool = switchml_report(*node);
        return packets(*node, "completed") != 0 && pool["streams"].empty() && pool["free_slots"] == pool["slots"];
    })) << "what has ended gives its slots back";
}

INSTANTIATE_TEST_SUITE_P(SwitchMl, SwitchMlWorlds, testing::Values(1, 4, 8));

class SwitchMlModes : public testing::TestWithParam<Mode> {};

TEST_P(SwitchMlModes, SumIsExactWithoutLoss) {
    const auto node = start(pool_alone());
    // With a timeout of 1 s, workers resend nothing. SwitchML as published could mistake a resend for a packet of
    // another phase (H37, docs/protocol.md#h37).
    Job(3, {address_of(*node)}, switchml_options(GetParam(), seconds(1))).run(sum_and_broadcast);
}

INSTANTIATE_TEST_SUITE_P(SwitchMl, SwitchMlModes,
                         testing::Values(Mode::compares_offsets, Mode::faithful, Mode::lossless));

TEST(SwitchMl, SumsAreExactOverPortsThatLosePackets) {
    const auto node = start(with_ports(pool_alone(), {.loss = 0.02}));
    Job(4, {address_of(*node)}, switchml_options()).run([](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < 10; ++round) expect_sum(communicator, several_windows, round);
        EXPECT_TRUE(eventually([&] { return counters_of(communicator).resent != 0; }));
    });
    EXPECT_TRUE(eventually([&] { return packets(*node, "duplicates") != 0 && packets(*node, "answered") != 0; }))
        << to_json(node->snapshot());
}

TEST(SwitchMl, ChannelsOnSeveralShardsSumExactly) {
    switchd::SwitchNodeConfig config = small_switch();
    config.shards = 3;
    const auto node = start(pool_alone(config));
    comm::Options options = switchml_options();
    options.channels = 4;
    Job(2, {address_of(*node)}, options).run(sum_and_broadcast);
}

TEST(SwitchMl, JobsOfBothProtocolsShareOneSwitch) {
    const auto node = start(serving_both(small_switch()));
    std::vector<std::jthread> jobs;
    for (const comm::Options& options : {switchml_options(), small_options(), switchml_options()}) {
        jobs.emplace_back([&, options] {
            Job(3, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
                for (std::uint32_t round = 0; round < 20; ++round) expect_sum(communicator, several_windows, round);
            });
        });
    }
    jobs.clear();
    EXPECT_TRUE(eventually([&] {
        const client::ShardReport shard = node->snapshot().shards[0];
        return shard.packets.events[ATP_EVENT_COMPLETED] != 0 && packets(*node, "completed") != 0;
    }));
}

// ------------------------------------------------------------------------------------------------------------ Refusals

TEST(SwitchMl, FullPoolIsRefusedWithTheFreeSlots) {
    const auto node = start(alone(with_pool(small_switch(), small_window * 3 / 2)));
    {
        const auto first = Job(2, {address_of(*node)}, switchml_options()).formed();
        ASSERT_EQ(first.size(), 2U);
        const Error error = formation_error({address_of(*node)}, switchml_options(), 2);
        EXPECT_EQ(error.reason, Reason::rejected);
        EXPECT_TRUE(says(error, "8 of 24 slots are free"));
        EXPECT_TRUE(says(error, "--memory"));
    }
    Job(2, {address_of(*node)}, switchml_options()).run(sum_and_broadcast);
}

TEST(SwitchMl, PacketsLongerThanASlotAreRefused) {
    switchd::SwitchNodeConfig config = small_switch();
    config.lanes = small_lanes - 8;
    const auto node = start(pool_alone(config));
    const Error error = formation_error({address_of(*node)}, switchml_options());
    EXPECT_EQ(error.reason, Reason::rejected);
    EXPECT_TRUE(says(error, "56"));
    comm::Options options = switchml_options();
    options.lanes = 0;
    Job(1, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        EXPECT_EQ(communicator.formation().lanes, small_lanes - 8);
        expect_sum(communicator, several_windows, 1);
    });
}

TEST(SwitchMl, UnservedProtocolIsRefusedByName) {
    const auto atp_alone = start(small_switch());
    EXPECT_TRUE(
        says(formation_error({address_of(*atp_alone)}, switchml_options()), "does not serve the protocol switchml"));
    const auto switchml_alone = start(pool_alone());
    EXPECT_TRUE(
        says(formation_error({address_of(*switchml_alone)}, small_options()), "does not serve the protocol atp"));
}

TEST(SwitchMl, SecondSwitchIsRefused) {
    const switchd::SwitchNodeConfig config = serving_both(small_switch());
    TwoLevels fabric(config, config);
    const Error error =
        formation_error({address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, switchml_options(), 2);
    EXPECT_EQ(error.reason, Reason::unsupported);
    EXPECT_TRUE(says(error, "one switch"));
    Job(2, {address_of(*fabric.leaves[0])}, switchml_options()).run(sum_and_broadcast);
}

TEST(SwitchMl, OptionsThatSwitchMlLacksAreRefused) {
    const auto refused = [](std::uint32_t world, auto change) {
        store::MemoryStore store;
        comm::Options options = switchml_options();
        options.switch_address = "127.0.0.1:1";
        change(options);
        const auto formed = comm::Communicator::form(store, 0, world, options);
        return !formed && formed.error().reason == Reason::malformed;
    };
    EXPECT_TRUE(refused(33, [](comm::Options&) {}));
    EXPECT_TRUE(refused(1, [](comm::Options& options) { options.audit = true; }));
    EXPECT_TRUE(refused(1, [](comm::Options& options) { options.server = comm::ServerPlace::colocated; }));
    EXPECT_TRUE(refused(1, [](comm::Options& options) { options.scaling = tensor::Scaling::dynamic; }));
    EXPECT_TRUE(refused(1, [](comm::Options& options) { options.lane_type = tensor::LaneType::int16; }));
    EXPECT_TRUE(refused(1, [](comm::Options& options) { options = switchml_options(Mode::compares_offsets, {}); }));
}

// ------------------------------------------------------------------------------------------- Values that it cannot sum

// Every rank gets the error, and later operations are refused.
template <class Value>
void expect_overflow(ElementType type, const std::vector<std::vector<Value>>& inputs) {
    const auto node = start(pool_alone());
    const auto ranks = Job(static_cast<std::uint32_t>(inputs.size()), {address_of(*node)}, switchml_options()).formed();
    ASSERT_EQ(ranks.size(), inputs.size());
    each(static_cast<std::uint32_t>(inputs.size()), [&](std::uint32_t rank) {
        std::vector<Value> values = inputs[rank];
        const auto sum = [&] {
            return ranks[rank]->all_reduce({values.data(), values.data(), values.size()}, type, Reduction::sum);
        };
        const Error error = error_of(sum());
        EXPECT_EQ(error.reason, Reason::too_large) << "rank " << rank << ": " << to_string(error);
        EXPECT_TRUE(says(error, "32 bits"));
        EXPECT_EQ(error_of(sum()).reason, Reason::closed);
    });
}

TEST(SwitchMl, SumsBeyond32BitsFail) {
    // Each value times the scale fits an int32, but the sum does not: 3 * 20 * 1e8 > 2^31.
    expect_overflow(ElementType::float32, std::vector(3, std::vector<float>(several_windows, 20.0F)));
    expect_overflow(ElementType::int32, std::vector(2, std::vector<std::int32_t>{1, 1 << 30, 1}));
}

TEST(SwitchMl, NumbersOutsideTheScaleFail) {
    std::vector<std::vector<float>> inputs(2, std::vector<float>(several_windows, 0.5F));
    inputs[1][several_windows / 2] = std::numeric_limits<float>::quiet_NaN();
    expect_overflow(ElementType::float32, inputs);
    inputs[1][several_windows / 2] = 1e20F;
    expect_overflow(ElementType::float32, inputs);
}

// ---------------------------------------------------------------------------------------------------------- Departures

TEST(SwitchMl, DepartureOfARankFailsTheOthersWithItsNumber) {
    const auto node = start(pool_alone());
    Job job(3, {address_of(*node)}, switchml_options());
    expect_departure_named(job);
}

TEST(SwitchMl, LateRankFailsTheOthersByTheirDeadline) {
    const auto node = start(pool_alone());
    const auto ranks = Job(2, {address_of(*node)}, switchml_options()).formed();
    ASSERT_EQ(ranks.size(), 2U);
    std::vector<float> values(several_windows, 1.0F);
    const Error error =
        error_of(ranks[0]->all_reduce({values.data(), values.data(), values.size()}, ElementType::float32,
                                      Reduction::sum, net::now() + milliseconds(500)));
    EXPECT_EQ(error.reason, Reason::timed_out);
    EXPECT_TRUE(says(error, "nothing was received from the switch"));
    EXPECT_GE(error.elapsed, milliseconds(450));
}

TEST(SwitchMl, RestartedSwitchRequestsReforming) {
    auto node = start(pool_alone());
    Job job(2, {address_of(*node)}, switchml_options());
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    std::vector<float> values(several_windows, 1.0F);
    const auto pending =
        ranks[0]->all_reduce({values.data(), values.data(), values.size()}, ElementType::float32, Reduction::sum);
    switchd::SwitchNodeConfig again = node->config();
    again.udp.local = node->address();
    node.reset();
    node = start(again);
    ASSERT_NE(node, nullptr);
    const Error error = error_of(pending);
    EXPECT_EQ(error.reason, Reason::rejected) << to_string(error);
    EXPECT_TRUE(says(error, "this switch no longer has the sums of this job"));
    ranks.clear();
    job.options().generation = 1;
    job.run(sum_and_broadcast);
}

}  // namespace
}  // namespace atp::test
