// SPDX-License-Identifier: Apache-2.0
// Layouts of racks with and without a switch: every one of them gives the same bits. The addresses of loopback stand
// for hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "fabric.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Communicator;
using comm::Reduction;
using comm::ServerPlace;
using numeric::ElementType;

// Racks of two hosts, each with one rank; the first racks have a switch without a parent.
struct Racks {
    explicit Racks(std::uint32_t racks, std::uint32_t leaves, ServerPlace place)
        : job(racks * hosts, {""}), server(place) {
        for (std::uint32_t rack = 0; rack < leaves; ++rack) switches.push_back(start(small_switch()));
    }

    [[nodiscard]] comm::Options options_of(std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        const std::uint32_t rack = rank / hosts;
        options.listen = "127.0.0." + std::to_string(2 + rank) + ":0";
        options.uplink = "r" + std::to_string(rack);
        options.server = server;
        options.uplink_rate = uplink_rate;
        options.link_rate = uplink_rate;
        if (rack < switches.size()) options.switch_address = address_of(*switches[rack]);
        return options;
    }
    void run(const std::function<void(Communicator&)>& body) {
        run_with(
            job, [this](std::uint32_t rank) { return options_of(rank); }, body);
    }

    static constexpr std::uint32_t hosts = 2;
    Job job;
    ServerPlace server;
    double uplink_rate = 0;
    std::vector<std::unique_ptr<switchd::SwitchNode>> switches;
};

bool adds(const switchd::SwitchNode& node) {
    return eventually([&] {
        return std::ranges::any_of(node.snapshot().shards, [](const client::ShardReport& shard) {
            return shard.packets.events[ATP_EVENT_COMPLETED] != 0;
        });
    });
}

// Floats that fit integers, and some that do not.
std::vector<float> values_of(std::uint32_t rank) {
    std::vector<float> values(several_windows * 2);
    for (std::size_t at = 0; at < values.size(); ++at) {
        values[at] = static_cast<float>(at % 1000) * 1e-4F + static_cast<float>(rank);
        if (at % 501 == 7) values[at] *= 1e20F;
    }
    return values;
}

class SumsOfRun {
  public:
    void take(Communicator& communicator) {
        std::vector<float> values = values_of(communicator.rank());
        for (int round = 0; round < 3; ++round) {
            std::vector<float> sum(values.size());
            ASSERT_TRUE(succeeds(communicator.all_reduce({values.data(), sum.data(), values.size()},
                                                         ElementType::float32, Reduction::sum)));
            const std::scoped_lock lock(mutex_);
            if (sum_.empty()) sum_ = sum;
            EXPECT_EQ(sum, sum_);
        }
        work_through(communicator);
    }

  private:
    std::mutex mutex_;
    std::vector<float> sum_;
};

TEST(Layouts, EveryOneGivesTheBitsOfASwitch) {
    SumsOfRun sums;
    const auto node = start(small_switch());
    Job(6, {address_of(*node)}).run([&](Communicator& communicator) { sums.take(communicator); });
    for (const ServerPlace place : {ServerPlace::hosts, ServerPlace::leaves, ServerPlace::racks}) {
        for (const std::uint32_t leaves : {0U, 1U, 3U}) {
            SCOPED_TRACE(testing::Message() << "place " << static_cast<int>(place) << ", leaves " << leaves);
            Racks racks(3, leaves, place);
            racks.run([&](Communicator& communicator) {
                EXPECT_EQ(communicator.formation().channels, 6U);
                sums.take(communicator);
            });
            for (const auto& leaf : racks.switches) {
                EXPECT_TRUE(place == ServerPlace::hosts || adds(*leaf));
            }
        }
    }
}

TEST(Layouts, AutomaticTakesOneRootIfThereIsOne) {
    TwoLevels fabric;
    Racks racks(2, 0, ServerPlace::automatic);
    each(4, [&](std::uint32_t rank) {
        comm::Options options = racks.options_of(rank);
        options.switch_address = address_of(*fabric.leaves[rank / 2]);
        const auto formed = Communicator::form(racks.job.store(), rank, 4, options);
        ASSERT_TRUE(formed) << to_string(formed.error());
        EXPECT_EQ((*formed)->formation().channels, 1U);
        EXPECT_EQ((*formed)->formation().levels, 2U);
        EXPECT_TRUE(succeeds((*formed)->barrier()));
    });
}

TEST(Layouts, AutomaticUsesTheSwitchesThatThereAre) {
    Racks racks(3, 3, ServerPlace::automatic);
    SumsOfRun sums;
    racks.run([&](Communicator& communicator) {
        EXPECT_EQ(communicator.formation().units, 3U);
        sums.take(communicator);
    });
    for (const auto& leaf : racks.switches) EXPECT_TRUE(adds(*leaf));
}

TEST(Layouts, AutomaticLetsHostsTakeTurnsBelowSlowUplinks) {
    Racks racks(3, 0, ServerPlace::automatic);
    racks.uplink_rate = 1e9;
    SumsOfRun sums;
    racks.run([&](Communicator& communicator) {
        EXPECT_EQ(communicator.formation().units, 4U) << "the two hosts of the server's rack, and two racks";
        sums.take(communicator);
    });
}

// Without a switch in the path, the servers add what it would have added.
TEST(Layouts, RacksWithASwitchInThePathJoinServersOnHosts) {
    Racks racks(2, 0, ServerPlace::leaves);
    SumsOfRun sums;
    const auto options_of = [&](std::uint32_t rank) {
        comm::Options options = racks.options_of(rank);
        options.rack = options.uplink;
        return options;
    };
    run_with(racks.job, options_of, [&](Communicator& communicator) {
        EXPECT_EQ(communicator.formation().units, 2U);
        sums.take(communicator);
    });
}

TEST(Layouts, LostPacketsChangeNoBit) {
    SumsOfRun sums;
    for (const bool lossy : {false, true}) {
        Racks racks(2, 0, ServerPlace::leaves);
        switchd::SwitchNodeConfig config = small_switch();
        if (lossy) config = with_ports(config, {.loss = 0.02});
        for (int leaf = 0; leaf < 2; ++leaf) racks.switches.push_back(start(config));
        racks.run([&](Communicator& communicator) { sums.take(communicator); });
    }
}

// With multicast, ranks refuse to use a server at an IPv6 address: no rank reaches that of rank 3.
TEST(Layouts, ServerThatIsNotReachedLeavesTheWorkToOne) {
    const auto node = start(small_switch());
    for (const bool has_root : {false, true}) {
        Racks racks(2, 0, ServerPlace::automatic);
        racks.uplink_rate = 1e9;
        SumsOfRun sums;
        const auto options_of = [&](std::uint32_t rank) {
            comm::Options options = racks.options_of(rank);
            options.multicast.requested = true;
            if (rank == 3) options.listen = "[::1]:0";
            if (has_root) options.switch_address = address_of(*node);
            return options;
        };
        run_with(racks.job, options_of, [&](Communicator& communicator) {
            EXPECT_EQ(communicator.formation().channels, 1U);
            EXPECT_EQ(communicator.formation().layout, has_root ? "switch" : "hosts");
            sums.take(communicator);
        });
    }
}

TEST(Layouts, EndOfAServerBehindASwitchNamesItsRank) {
    Racks(2, 2, ServerPlace::leaves).run([](Communicator& communicator) {
        ASSERT_TRUE(succeeds(communicator.barrier()));
        if (communicator.rank() == 3) return communicator.abort();
        const Error error = error_of(communicator.barrier());
        EXPECT_TRUE(says(error, "rank 3"));
    });
}

}  // namespace
}  // namespace atp::test
