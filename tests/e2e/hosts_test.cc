// SPDX-License-Identifier: Apache-2.0
// Jobs with several ranks on each of several hosts. Names of hosts keep the ranks of this test apart.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fabric.h"
#include "numeric/half.h"
#include "tensor/span_scales.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Communicator;
using comm::Reduction;
using numeric::ElementType;

// The host of each rank.
using Placement = std::vector<unsigned>;

Placement placed(std::uint32_t hosts, std::uint32_t ranks_each) {
    Placement hosts_of_ranks;
    for (std::uint32_t rank = 0; rank < hosts * ranks_each; ++rank) hosts_of_ranks.push_back(rank / ranks_each);
    return hosts_of_ranks;
}

struct HostsJob {
    HostsJob(Placement placement_, std::vector<std::string> switches_, comm::Options options = small_options())
        : placement(std::move(placement_)),
          switches(std::move(switches_)),
          job(static_cast<std::uint32_t>(placement.size()), switches, with_host_level(std::move(options))) {}

    static comm::Options with_host_level(comm::Options options) {
        options.host_level = true;
        return options;
    }
    // Hosts take the switches in turn. Without one, the addresses of loopback stand for hosts.
    [[nodiscard]] comm::Options options_of(std::uint32_t rank) const {
        comm::Options options = job.options_of(rank);
        const unsigned host = placement[rank];
        options.host_name = "host" + std::to_string(host);
        options.switch_address = switches[host % switches.size()];
        if (options.switch_address.empty()) options.listen = "127.0.0." + std::to_string(2 + host) + ":0";
        return options;
    }
    void run(const std::function<void(Communicator&)>& body) {
        run_with(
            job, [this](std::uint32_t rank) { return options_of(rank); }, body);
        ++job.options().generation;
    }

    Placement placement;
    std::vector<std::string> switches;
    Job job;
};

// Small numbers, and in some packets a number that fits no integer, or whose sum does not.
float value_of(std::uint32_t rank, std::size_t at, bool only_integers) {
    if (!only_integers && at / 1000 % 3 == 1) {
        switch (at % 97) {
            case 13: return rank == 1 ? 1e30F : 0.5F;
            case 50: return rank == 0 ? std::numeric_limits<float>::infinity() : 1.0F;
            case 77: return rank == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
            case 80: return 20.0F;
            case 81: return rank % 2 == 0 ? 20.0F : -20.0F;
            default: break;
        }
    }
    return std::sin(static_cast<float>(at * 3 + rank)) * 1e-2F;
}

// The bits of the sum, equal on all ranks.
std::vector<std::uint32_t> bits_of_sum(HostsJob& job, std::size_t elements, bool only_integers = false) {
    std::mutex mutex;
    std::vector<std::vector<std::uint32_t>> results;
    job.run([&](Communicator& communicator) {
        std::vector<float> values(elements);
        for (std::size_t at = 0; at < elements; ++at) values[at] = value_of(communicator.rank(), at, only_integers);
        ASSERT_TRUE(succeeds(
            communicator.all_reduce({values.data(), values.data(), elements}, ElementType::float32, Reduction::sum)));
        std::vector<std::uint32_t> bits(elements);
        std::memcpy(bits.data(), values.data(), elements * sizeof bits[0]);
        const std::scoped_lock lock(mutex);
        results.push_back(std::move(bits));
    });
    if (results.empty()) return {};
    for (const auto& result : results) EXPECT_EQ(result, results[0]);
    return results[0];
}

// docs/spec/hazards.md#h47, #h48
TEST(Hosts, H47_BitsDoNotDependOnThePlacementOfRanks) {
    const auto node = start(small_switch());
    const std::vector<std::string> one_switch{address_of(*node)};
    for (const std::size_t elements : {std::size_t{1}, several_windows * 2}) {
        HostsJob apart(placed(6, 1), one_switch);
        const std::vector<std::uint32_t> expected = bits_of_sum(apart, elements);
        for (const Placement& placement :
             {placed(3, 2), placed(2, 3), Placement{0, 0, 0, 0, 1, 2}, Placement{0, 1, 0, 1, 0, 1}, placed(1, 6)}) {
            HostsJob job(placement, one_switch);
            EXPECT_EQ(bits_of_sum(job, elements), expected) << testing::PrintToString(placement);
        }
        HostsJob no_switch(placed(3, 2), {""});
        EXPECT_EQ(bits_of_sum(no_switch, elements), expected) << "no switch";
    }
}

// docs/spec/hazards.md#h47
TEST(Hosts, H47_BitsAreTheSameWithEightRanksOfAHost) {
    const auto node = start(with_ports(small_switch(), {.loss = 0.01}));
    HostsJob apart(placed(10, 1), {address_of(*node)});
    const std::vector<std::uint32_t> expected = bits_of_sum(apart, several_windows);
    const Placement eight_and_two{0, 0, 1, 0, 0, 0, 0, 0, 1, 0};
    HostsJob together(eight_and_two, {address_of(*node)});
    EXPECT_EQ(bits_of_sum(together, several_windows), expected);
    HostsJob no_switch(eight_and_two, {""});
    EXPECT_EQ(bits_of_sum(no_switch, several_windows), expected);
}

TEST(Hosts, BitsAreTheSameInRacks) {
    const TwoLevels racks;
    const std::vector<std::string> leaves{address_of(*racks.leaves[0]), address_of(*racks.leaves[1])};
    HostsJob apart(placed(8, 1), leaves);
    HostsJob together(placed(4, 2), leaves);
    EXPECT_EQ(bits_of_sum(apart, several_windows), bits_of_sum(together, several_windows));
}

// docs/spec/hazards.md#h48
TEST(Hosts, H48_FloatsOfRanksOfOneHostSurviveLosses) {
    const auto node = start(with_ports(small_switch(), {.loss = 0.02}));
    HostsJob apart(placed(4, 1), {address_of(*node)});
    HostsJob together(placed(2, 2), {address_of(*node)});
    EXPECT_EQ(bits_of_sum(together, several_windows * 3), bits_of_sum(apart, several_windows * 3));
}

// Sums of float32, bfloat16 and float16 tensors whose magnitude changes from round to round, equal on all ranks.
constexpr std::size_t span_elements = tensor::span_elements(ATP_DTYPE_INT32);
constexpr std::size_t several_spans = span_elements + 1000;

float value_of_round(std::uint32_t rank, std::size_t at, int round) {
    constexpr std::array magnitudes{1e-12F, 1e-9F, 1.0F, 3.0F, 0.0F, 1e4F, 65536e4F, 1e6F, 1e-12F, 1.0F, 1e-30F};
    const float spread = at / span_elements % 2 == 0 ? 1.0F : 1e-3F;
    return value_of(rank, at, round % 3 != 0) * spread * magnitudes.at(static_cast<std::size_t>(round));
}

// The cells of a span have numbers of different magnitude.
float value_in_cell(float value, std::size_t at) {
    constexpr std::array spread{1.0F, 0.4F, 0.0F, 1e-3F};
    return value * spread.at(at / tensor::cell_elements(ATP_DTYPE_INT16) % spread.size());
}

std::vector<std::uint32_t> bits_of_rounds(HostsJob& job) {
    constexpr int rounds = 11;
    std::mutex mutex;
    std::vector<std::vector<std::uint32_t>> results;
    job.run([&](Communicator& communicator) {
        std::vector<std::uint32_t> bits;
        for (int round = 0; round < rounds; ++round) {
            std::vector<float> values(several_spans);
            for (std::size_t at = 0; at < values.size(); ++at) {
                values[at] = value_of_round(communicator.rank(), at, round);
            }
            std::vector<float> cells(values.size());
            for (std::size_t at = 0; at < cells.size(); ++at) cells[at] = value_in_cell(values[at], at);
            std::vector<std::uint16_t> shorts(values.size());
            std::vector<std::uint16_t> halves(values.size());
            numeric::floats_to_bfloats(cells.data(), cells.size(), shorts.data());
            numeric::floats_to_halves(cells.data(), cells.size(), halves.data());
            const auto first = sum_in_place(communicator, values);
            const auto second = communicator.all_reduce({shorts.data(), shorts.data(), shorts.size()},
                                                        ElementType::bfloat16, Reduction::average);
            ASSERT_TRUE(succeeds(first));
            const auto third = communicator.all_reduce({halves.data(), halves.data(), halves.size()},
                                                       ElementType::float16, Reduction::sum);
            ASSERT_TRUE(succeeds(second));
            ASSERT_TRUE(succeeds(third));
            // Far below the numbers of the round before: docs/spec/hazards.md#h52.
            if (round == 8 || round == 10) {
                EXPECT_NE(values[5], 0) << round;
            }
            for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
            bits.insert(bits.end(), shorts.begin(), shorts.end());
            bits.insert(bits.end(), halves.begin(), halves.end());
        }
        const std::scoped_lock lock(mutex);
        results.push_back(std::move(bits));
    });
    if (results.empty()) return {};
    for (const auto& result : results) EXPECT_TRUE(result == results[0]);
    return results[0];
}

comm::Options dynamic_options(std::uint32_t lanes, std::uint32_t channels) {
    comm::Options options = small_options();
    options.scaling = tensor::Scaling::dynamic;
    options.lanes = lanes;
    options.channels = channels;
    return options;
}

// docs/spec/hazards.md#h50: scales follow from sums, which depend neither on time nor on the path of a packet. The
// reference is a job in the memory of one host.
std::vector<std::uint32_t> bits_in_memory() {
    HostsJob one_host(placed(1, 4), {""}, dynamic_options(small_lanes, 1));
    return bits_of_rounds(one_host);
}

TEST(Hosts, H50_ScalesDoNotDependOnLanesAndChannels) {
    const auto node = start(small_switch());
    const std::vector<std::uint32_t> expected = bits_in_memory();
    ASSERT_FALSE(expected.empty());
    for (const auto& [lanes, channels] : {std::pair{small_lanes, 1U}, std::pair{33U, 3U}, std::pair{64U, 3U}}) {
        HostsJob job(placed(4, 1), {address_of(*node)}, dynamic_options(lanes, channels));
        EXPECT_TRUE(bits_of_rounds(job) == expected) << lanes << " lanes, " << channels << " channels";
    }
}

TEST(Hosts, H50_ScalesDoNotDependOnThePlacementOfRanks) {
    const auto node = start(small_switch());
    const std::vector<std::uint32_t> expected = bits_in_memory();
    ASSERT_FALSE(expected.empty());
    for (const Placement& placement : {placed(2, 2), Placement{0, 0, 1, 2}, Placement{0, 1, 0, 1}}) {
        HostsJob job(placement, {address_of(*node)}, dynamic_options(small_lanes, 2));
        EXPECT_TRUE(bits_of_rounds(job) == expected) << testing::PrintToString(placement);
    }
}

TEST(Hosts, H50_ScalesDoNotDependOnLossesAndSwitches) {
    const auto lossy = start(with_ports(small_switch(), {.loss = 0.01}));
    const std::vector<std::uint32_t> expected = bits_in_memory();
    ASSERT_FALSE(expected.empty());
    for (const std::string& address : {address_of(*lossy), std::string()}) {
        HostsJob job(placed(2, 2), {address}, dynamic_options(small_lanes, 1));
        EXPECT_TRUE(bits_of_rounds(job) == expected) << (address.empty() ? "no switch" : "losses");
    }
}

TEST(Hosts, AllOperationsWork) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.channels = 3;
    HostsJob({0, 0, 1, 1, 2}, {address_of(*node)}, options).run(work_through);
}

// docs/spec/hazards.md#h45
TEST(Hosts, DifferentOperationsOfTwoHostsEndOnAllRanks) {
    const auto node = start(small_switch());
    HostsJob(placed(2, 2), {address_of(*node)}).run([](Communicator& communicator) {
        std::vector<float> values(100, 1);
        const std::size_t elements = communicator.rank() < 2 ? 100 : 99;
        const Error error = error_of(
            communicator.all_reduce({values.data(), values.data(), elements}, ElementType::float32, Reduction::sum));
        EXPECT_EQ(error.reason, Reason::mismatched) << to_string(error);
        EXPECT_EQ(values[0], 1.0F);
    });
}

// docs/spec/hazards.md#h46
TEST(Hosts, H46_MissingRankIsNamedAmongThoseOfItsHost) {
    const auto node = start(small_switch());
    HostsJob(placed(2, 2), {address_of(*node)}).run([](Communicator& communicator) {
        const auto deadline = net::now() + std::chrono::milliseconds(200);
        if (communicator.rank() == 3) {
            std::this_thread::sleep_for(std::chrono::milliseconds(800));
            return;
        }
        const Error error = error_of(communicator.barrier(deadline));
        EXPECT_TRUE(error.reason == Reason::timed_out || error.reason == Reason::closed ||
                    error.reason == Reason::unreachable)
            << to_string(error);
        if (communicator.rank() == 2) {
            EXPECT_EQ(error.peer, "rank 3") << to_string(error);
        } else {
            EXPECT_EQ(error.peer, "ranks 2, 3") << to_string(error);
        }
    });
}

TEST(Hosts, RankThatLeavesEndsTheOthersOfTheJob) {
    const auto node = start(small_switch());
    HostsJob(placed(2, 2), {address_of(*node)}).run([](Communicator& communicator) {
        ASSERT_TRUE(succeeds(communicator.barrier()));
        if (communicator.rank() == 1) return;
        const Error error = error_of(communicator.barrier());
        EXPECT_NE(error.reason, Reason::timed_out) << to_string(error);
        EXPECT_EQ(error.peer, communicator.rank() == 0 ? "rank 1" : "ranks 0, 1") << to_string(error);
    });
}

}  // namespace
}  // namespace atp::test
