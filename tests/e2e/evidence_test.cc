// SPDX-License-Identifier: Apache-2.0
// Rows of docs/operate/runbook.md: each rank names what failed, whatever the timeouts of its operations.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fabric.h"
#include "net/clock.h"
#include "own_network.h"
#include "values.h"

namespace atp::test {
namespace {

using std::chrono::seconds;

// Longer than any of these faults needs to be found.
constexpr Duration long_timeout = std::chrono::minutes(30);

// Sums until an operation fails, and returns its error. `summed`: called after each sum.
Error first_error(comm::Communicator& communicator, const std::function<void()>& summed = {}) {
    while (true) {
        std::vector<float> values(several_windows, 1.0F);
        auto work = sum_in_place(communicator, values, net::now() + long_timeout);
        if (!work) return work.error();
        if (auto done = (*work)->wait(); !done) return done.error();
        if (summed) summed();
    }
}

TEST(Evidence, EndedSwitchIsNamedByEveryRank) {
    auto node = start(small_switch());
    const std::string address = address_of(*node);
    const auto ranks = Job(3, {address}).formed();
    ASSERT_EQ(ranks.size(), 3U);
    std::atomic<unsigned> sums{0};
    each(4, [&](std::uint32_t rank) {
        if (rank == 3) {
            EXPECT_TRUE(eventually([&] { return sums > 30; }));
            node.reset();
            return;
        }
        const Error error = first_error(*ranks[rank], [&] { ++sums; });
        EXPECT_EQ(error.operation, Operation::all_reduce);
        EXPECT_EQ(error.reason, Reason::refused) << to_string(error);
        EXPECT_EQ(error.peer, address);
        EXPECT_TRUE(says(error, "the process of the switch at " + address + " ended"));
    });
}

TEST(Evidence, EndedLeafIsNamedByItsOwnRank) {
    TwoLevels fabric;
    const std::string leaf = address_of(*fabric.leaves[1]);
    const auto ranks = Job(2, {address_of(*fabric.leaves[0]), leaf}).formed();
    ASSERT_EQ(ranks.size(), 2U);
    fabric.leaves[1].reset();
    const Error error = first_error(*ranks[1]);
    EXPECT_EQ(error.reason, Reason::refused) << to_string(error);
    EXPECT_EQ(error.peer, leaf);
}

TEST(Evidence, RankWhoseProcessRanTheSwitchIsNamed) {
    auto node = start(small_switch());
    const std::string address = address_of(*node);
    Job job(3, {address});
    std::vector<std::unique_ptr<comm::Communicator>> ranks(3);
    each(3, [&](std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        options.hosts_switch = rank == 2;
        auto formed = comm::Communicator::form(job.store(), rank, 3, options);
        ASSERT_TRUE(formed) << to_string(formed.error());
        ranks[rank] = *std::move(formed);
    });
    node.reset();
    each(2, [&](std::uint32_t rank) {
        const Error error = first_error(*ranks[rank]);
        EXPECT_EQ(error.reason, Reason::refused) << to_string(error);
        EXPECT_EQ(error.peer, "rank 2 (switch at " + address + ")");
        EXPECT_TRUE(says(error, "rank 2's process exited and took the switch at"));
    });
}

TEST(Evidence, IdleJobSurvivesARestartedLeaf) {
    TwoLevels fabric;
    const auto ranks = Job(2, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}).formed();
    ASSERT_EQ(ranks.size(), 2U);
    switchd::SwitchNodeConfig again = fabric.leaves[0]->config();
    again.udp.local = fabric.leaves[0]->address();
    fabric.leaves[0].reset();
    std::this_thread::sleep_for(seconds(2));  // several JOINs find no process
    fabric.leaves[0] = start(again);
    ASSERT_NE(fabric.leaves[0], nullptr);
    std::this_thread::sleep_for(seconds(1));
    each(2, [&](std::uint32_t rank) { expect_sum(*ranks[rank], several_windows, 3); });
}

// Its sockets are open, so no message reports that it does not run: this takes the hold time.
TEST(Evidence, H77_SilentSwitchIsNamedByEveryRank) {
    const auto node = start(small_switch());
    const auto ranks = Job(2, {address_of(*node)}).formed();
    ASSERT_EQ(ranks.size(), 2U);
    node->stop();
    each(2, [&](std::uint32_t rank) {
        const Error error = first_error(*ranks[rank]);
        EXPECT_EQ(error.operation, Operation::all_reduce);
        EXPECT_EQ(error.reason, Reason::unreachable) << to_string(error);
        EXPECT_EQ(error.peer, address_of(*node));
        EXPECT_TRUE(says(error, "no answer from the switch at " + address_of(*node) + " for 3."));
    });
}

std::string narrow_path_after_forming() {
    const auto node = start(small_switch());
    const auto ranks = Job(2, {address_of(*node)}).formed();
    if (ranks.size() != 2) return "the job did not form";
    if (!set_loopback_mtu(300)) return "the MTU cannot be lowered";
    std::string problem;
    std::mutex mutex;
    each(2, [&](std::uint32_t rank) {
        const Error error = first_error(*ranks[rank]);
        // The first rank that finds it may tell the others before they do.
        const bool names = says(error, "path MTU of rank ") && says(error, "to the switch at " + address_of(*node)) &&
                           says(error, "is 300 bytes");
        const std::scoped_lock lock(mutex);
        if (error.reason != Reason::too_large || !names) {
            problem += to_string(error) + "; ";
        }
    });
    return problem;
}

TEST(Evidence, LoweredMtuIsNamedByEveryRank) {
    const auto found = run_in_own_network(1500, narrow_path_after_forming);
    if (!found) GTEST_SKIP() << "this host allows no network namespace";
    EXPECT_EQ(*found, "");
}

}  // namespace
}  // namespace atp::test
