// SPDX-License-Identifier: Apache-2.0
// A communicator that switches refuse ends on every rank in time, with an error that names the next step.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric.h"
#include "values.h"

namespace atp::test {
namespace {

TEST(Formation, RefusedRankReportsTheReasonToTheOthers) {
    switchd::SwitchNodeConfig one_job = small_switch();
    one_job.jobs = 1;
    const TwoLevels tree(small_switch(), one_job);
    Job first(1, {address_of(*tree.leaves[1])});
    const auto taken = first.formed();
    ASSERT_EQ(taken.size(), 1U);
    Job second(2, {address_of(*tree.leaves[0]), address_of(*tree.leaves[1])});
    const auto formed = second.form_all();
    for (const auto& rank : formed) {
        ASSERT_FALSE(rank);
        EXPECT_EQ(rank.error().reason, Reason::rejected);
        EXPECT_TRUE(says(rank.error(), "table of jobs is full (1)"));
    }
    EXPECT_EQ(formed[0].error().peer, "rank 1");
}

void expect_rejected(const Job::Formed& formed, const std::vector<std::string_view>& texts) {
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::rejected);
    for (const std::string_view text : texts) EXPECT_TRUE(says(formed.error(), text));
}

TEST(Formation, LimitOfJobsHoldsForAllThreadsOfASwitch) {
    switchd::SwitchNodeConfig config = small_switch();
    config.shards = 4;
    config.jobs = 8;
    const auto node = start(config);
    std::vector<std::unique_ptr<comm::Communicator>> all;
    for (std::uint32_t i = 0; i < config.jobs; ++i) {
        auto formed = Job(1, {address_of(*node)}).form(0);
        ASSERT_TRUE(formed) << to_string(formed.error());
        all.push_back(*std::move(formed));
    }
    expect_rejected(Job(1, {address_of(*node)}).form(0), {"table of jobs is full (8)", "--jobs"});
    all.pop_back();
    EXPECT_TRUE(eventually([&] { return Job(1, {address_of(*node)}).form(0).has_value(); }));
}

TEST(Formation, LimitOfChannelsHoldsForAllThreadsOfASwitch) {
    switchd::SwitchNodeConfig config = small_switch();
    config.shards = 4;
    config.jobs = 2;  // a job counts once, on however many threads its channels run
    config.channels = 9;
    const auto node = start(config);
    comm::Options options = small_options();
    options.channels = 8;
    const auto first = Job(1, {address_of(*node)}, options).form(0);
    ASSERT_TRUE(first) << to_string(first.error());
    options.channels = 2;
    expect_rejected(Job(1, {address_of(*node)}, options).form(0), {"table of channels is full (9)"});
    options.channels = 1;
    EXPECT_TRUE(eventually([&] { return Job(1, {address_of(*node)}, options).form(0).has_value(); }));
}

TEST(Formation, FullServerMemoryIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.server_bytes = 1000;
    const auto node = start(config);
    expect_rejected(Job(1, {address_of(*node)}).form(0), {"--server-memory"});
}

TEST(Formation, SwitchThatHostsNoServersIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.server_bytes = 0;
    const auto node = start(config);
    expect_rejected(Job(1, {address_of(*node)}).form(0), {"colocated or dedicated"});
    comm::Options options = small_options();
    options.server = comm::ServerPlace::colocated;
    Job(2, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        expect_sum(communicator, several_windows, 1);
    });
}

TEST(Formation, SilentServerTimesOutWithItsAddress) {
    const auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent);
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.server = comm::ServerPlace::dedicated;
    options.dedicated_servers = {to_string((*silent)->local())};
    options.join_timeout = std::chrono::milliseconds(500);
    const auto formed = Job(1, {address_of(*node)}, options).form(0);
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::timed_out);
    EXPECT_TRUE(says(formed.error(), "parameter server at " + options.dedicated_servers.front()));
}

}  // namespace
}  // namespace atp::test
