// SPDX-License-Identifier: Apache-2.0
// Jobs of SwitchML over real sockets: the ranks are threads, the switch is on loopback.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "emulation/emulated_transport.h"
#include "net/clock.h"
#include "store/memory_store.h"
#include "support/fails.h"
#include "switchml_net/rank_group.h"
#include "switchml_net/switch_node.h"

namespace atp::switchml_net {
namespace {

using numeric::ElementType;
using std::chrono::milliseconds;
using std::chrono::seconds;
using switchml::Mode;

constexpr std::uint32_t small_lanes = 64;
constexpr std::uint32_t small_window = 16;
constexpr std::size_t several_windows = std::size_t{small_lanes} * small_window * 5 + 3;  // elements

switchd::SwitchNodeConfig small_switch() {
    switchd::SwitchNodeConfig config;
    config.udp.local = wire::Address::loopback(wire::Family::ipv4, 0);
    config.memory_bytes = 4'000'000;
    return config;
}

std::unique_ptr<SwitchNode> start(const switchd::SwitchNodeConfig& config) {
    auto node = SwitchNode::start(config);
    EXPECT_TRUE(node) << (node ? std::string() : to_string(node.error()));
    return node ? *std::move(node) : nullptr;
}

nlohmann::json report_of(const SwitchNode& node) {
    const client::SwitchReport report = node.snapshot();
    for (const client::ReportPart& part : report.shards[0].parts) {
        if (part.name == "switchml") return nlohmann::json::parse(part.json);
    }
    return {};
}

bool eventually(const std::function<bool()>& condition) {
    for (const Time until = net::now() + seconds(20); net::now() < until;) {
        if (condition()) return true;
        std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
}

GroupConfig small_group(const SwitchNode& node, Mode mode = Mode::compares_offsets,
                        Duration resend_after = milliseconds(1)) {
    GroupConfig config{.options = {}, .mode = mode, .resend_after = resend_after};
    config.options.switch_address = to_string(node.address());
    config.options.lanes = small_lanes;
    config.options.window = small_window;
    config.options.join_timeout = config.options.timeout = seconds(20);
    config.options.socket_buffer_bytes = 1U << 20U;
    config.options.scaling = tensor::Scaling::fixed;
    config.options.scale = 1e3;
    return config;
}

using Formed = Result<std::unique_ptr<RankGroup>>;

// Each rank forms and runs `body` in a thread of its own.
void run(std::uint32_t world, const GroupConfig& config,
         const std::function<void(std::uint32_t rank, const Formed& formed)>& body) {
    store::MemoryStore store;
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        threads.emplace_back([&, rank] {
            store::Rendezvous rendezvous(store, {.prefix = "test", .rank = rank, .world = world});
            const Formed formed = RankGroup::form(rendezvous, config);
            body(rank, formed);
        });
    }
}

template <class Element>
void expect_sum(RankGroup& group, std::uint32_t rank, std::uint32_t world, ElementType type, std::size_t elements) {
    std::vector<Element> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<Element>(i % 97 + rank);
    const auto done = group.all_reduce(values.data(), values.data(), elements, type);
    ASSERT_TRUE(done) << to_string(done.error());
    const std::uint32_t sum_of_ranks = world * (world - 1) / 2;
    for (std::size_t i = 0; i < elements; ++i) {
        const auto expected = static_cast<Element>(world * (i % 97) + sum_of_ranks);
        ASSERT_EQ(values[i], expected) << i;
    }
}

void expect_sums(std::uint32_t world, const GroupConfig& config, int rounds = 1) {
    run(world, config, [&](std::uint32_t rank, const Formed& group) {
        ASSERT_TRUE(group) << to_string(group.error());
        for (int round = 0; round < rounds; ++round) {
            for (const std::size_t size : {std::size_t{1}, std::size_t{small_lanes}, several_windows}) {
                expect_sum<float>(**group, rank, world, ElementType::float32, size);
                expect_sum<std::int64_t>(**group, rank, world, ElementType::int64, size);
            }
            EXPECT_TRUE((*group)->barrier());
        }
        EXPECT_TRUE((*group)->close());
    });
}

class Worlds : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Worlds, SumIsExactAndItsSlotsAreFreed) {
    const auto node = start(small_switch());
    expect_sums(GetParam(), small_group(*node));
    EXPECT_TRUE(eventually([&] {
        const auto pool = report_of(*node);
        return pool["packets"]["completed"] != 0 && pool["streams"].empty() && pool["free_slots"] == pool["slots"];
    })) << "what has ended gives its slots back";
}

INSTANTIATE_TEST_SUITE_P(SwitchMl, Worlds, testing::Values(1, 4, 8));

class Modes : public testing::TestWithParam<Mode> {};

TEST_P(Modes, SumIsExactWithoutLoss) {
    const auto node = start(small_switch());
    // With a timeout of 1 s, workers resend nothing. SwitchML as published could mistake a resend for a packet of
    // another phase (H37, docs/spec/hazards.md#h37).
    expect_sums(3, small_group(*node, GetParam(), seconds(1)));
}

INSTANTIATE_TEST_SUITE_P(SwitchMl, Modes, testing::Values(Mode::compares_offsets, Mode::faithful, Mode::lossless));

TEST(SwitchMl, SumsAreExactOverPortsThatLosePackets) {
    switchd::SwitchNodeConfig config = small_switch();
    config.open_transport = [](const net::UdpConfig& udp, std::uint32_t shard) {
        return emulation::EmulatedTransport::open(
            udp, {.ports = {.in = {.loss = 0.02}, .out = {.loss = 0.02}}, .number = shard});
    };
    const auto node = start(config);
    expect_sums(4, small_group(*node), 5);
    EXPECT_TRUE(eventually([&] {
        const auto packets = report_of(*node)["packets"];
        return packets["duplicates"] != 0 && packets["answered"] != 0;
    }));
}

TEST(SwitchMl, PacketsFitTheSlotsUnlessAskedOtherwise) {
    switchd::SwitchNodeConfig config = small_switch();
    config.lanes = small_lanes - 8;
    const auto node = start(config);
    run(1, small_group(*node), [](std::uint32_t, const Formed& group) {
        EXPECT_TRUE(fails(group, {.reason = Reason::rejected, .text = ::testing::HasSubstr("56")}));
    });
    GroupConfig group = small_group(*node);
    group.options.lanes = 0;
    run(1, group, [](std::uint32_t rank, const Formed& formed) {
        ASSERT_TRUE(formed) << to_string(formed.error());
        EXPECT_EQ((*formed)->config().job.lanes, small_lanes - 8);
        expect_sum<float>(**formed, rank, 1, ElementType::float32, several_windows);
    });
}

TEST(SwitchMl, WhatSwitchMlLacksIsRefusedBeforeAnythingIsSent) {
    const auto node = start(small_switch());
    const std::vector<std::pair<void (*)(GroupConfig&), const char*>> changes{
        {[](GroupConfig& group) { group.options.audit = true; }, "audit"},
        {[](GroupConfig& group) { group.options.channels = 2; }, "channels"},
        {[](GroupConfig& group) { group.options.scaling = tensor::Scaling::dynamic; }, "one scale"},
        {[](GroupConfig& group) { group.options.lane_type = tensor::LaneType::int16; }, "int32 lanes"},
        {[](GroupConfig& group) { group.options.server = comm::ServerPlace::colocated; }, "parameter servers"},
        {[](GroupConfig& group) { group.options.rack = "r0"; }, "a rack"},
        {[](GroupConfig& group) { group.options.multicast.requested = true; }, "multicast"},
        {[](GroupConfig& group) { group.resend_after = Duration::zero(); }, "above 0"}};
    for (const auto& [change, text] : changes) {
        GroupConfig group = small_group(*node);
        change(group);
        EXPECT_NE(objection_to(group, 2).value_or("").find(text), std::string::npos) << text;
    }
    EXPECT_EQ(objection_to(small_group(*node), 2), std::nullopt);
    EXPECT_NE(objection_to(small_group(*node), 33), std::nullopt);
}

TEST(SwitchMl, SumsBeyond32BitsEndOnEveryRankAndNanToo) {
    for (const float value : {1e6F, std::numeric_limits<float>::quiet_NaN()}) {
        const auto node = start(small_switch());
        run(3, small_group(*node), [value](std::uint32_t rank, const Formed& group) {
            ASSERT_TRUE(group) << to_string(group.error());
            std::vector<float> values(several_windows, 1.0F);
            if (!std::isnan(value) || rank == 1) values[several_windows / 2] = value;  // 3 * 1e6 * 1e3 exceeds 2^31
            const auto done = (*group)->all_reduce(values.data(), values.data(), values.size(), ElementType::float32);
            EXPECT_TRUE(fails(done, {.reason = Reason::too_large}));
        });
    }
}

TEST(SwitchMl, LateRankFailsTheOthersByTheirDeadline) {
    const auto node = start(small_switch());
    GroupConfig config = small_group(*node);
    config.options.timeout = milliseconds(500);
    run(2, config, [](std::uint32_t rank, const Formed& group) {
        ASSERT_TRUE(group) << to_string(group.error());
        if (rank == 1) return std::this_thread::sleep_for(milliseconds(600));
        std::vector<float> values(several_windows, 1.0F);
        const auto done = (*group)->all_reduce(values.data(), values.data(), values.size(), ElementType::float32);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().reason, Reason::timed_out);
        EXPECT_NE(done.error().text.find("nothing was received from the switch"), std::string::npos);
        EXPECT_GE(done.error().elapsed, milliseconds(450));
        EXPECT_FALSE((*group)->barrier()) << "the group has ended";
    });
}

TEST(SwitchMl, AbortEndsAnOperation) {
    const auto node = start(small_switch());
    run(2, small_group(*node), [](std::uint32_t rank, const Formed& group) {
        ASSERT_TRUE(group) << to_string(group.error());
        if (rank == 1) return;
        std::jthread aborts([&] {
            std::this_thread::sleep_for(milliseconds(20));
            (*group)->abort();
        });
        std::vector<float> values(several_windows, 1.0F);
        EXPECT_FALSE((*group)->all_reduce(values.data(), values.data(), values.size(), ElementType::float32));
    });
}

}  // namespace
}  // namespace atp::switchml_net
