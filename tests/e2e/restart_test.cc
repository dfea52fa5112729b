// SPDX-License-Identifier: Apache-2.0
// A switch that restarts delays sums and changes none. If the sums are lost, or a rank is, a new communicator forms.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fabric.h"
#include "values.h"

namespace atp::test {
namespace {

using std::chrono::milliseconds;

// Restarts a switch at the same address.
std::unique_ptr<switchd::SwitchNode> restart(std::unique_ptr<switchd::SwitchNode> node) {
    switchd::SwitchNodeConfig config = node->config();
    config.udp.local = node->address();
    node.reset();
    return start(config);
}

class LeafRestart : public testing::TestWithParam<std::uint32_t> {};

TEST_P(LeafRestart, DelaysSumsAndChangesNone) {
    switchd::SwitchNodeConfig leaf = small_switch();
    leaf.shards = GetParam();
    TwoLevels fabric(small_switch(), leaf);
    comm::Options options = small_options();
    options.channels = GetParam();
    Job job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, options);
    std::atomic<std::uint32_t> rounds{0};
    std::atomic<bool> back{false};
    std::jthread operator_of_switches([&] {
        // Wait until members repeat their JOINs at the slow rate only.
        std::this_thread::sleep_for(milliseconds(200));
        if (!eventually([&] { return rounds > 40; })) return;
        fabric.leaves[1] = restart(std::move(fabric.leaves[1]));
        back = true;
    });
    std::atomic<std::uint32_t> last{~0U};
    job.run([&](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < last; ++round) {
            expect_sum(communicator, several_windows, round);
            ++rounds;
            // All ranks must stop after the same round: rank 0 chooses a round that no rank has reached.
            if (communicator.rank() == 0 && back && last == ~0U) last = round + 20;
            if (testing::Test::HasFailure()) return;
        }
    });
    EXPECT_TRUE(back);
}

// Also with several threads, which use other ports after the restart.
INSTANTIATE_TEST_SUITE_P(Failure, LeafRestart, testing::Values(1, 3));

TEST(Reforming, IsRequestedAfterARestartOfTheServers) {
    for (const bool two_levels : {false, true}) {
        TwoLevels fabric;
        const std::vector<std::string> switches =
            two_levels ? std::vector{address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}
                       : std::vector{address_of(*fabric.root)};
        Job job(2, switches);
        auto ranks = job.formed();
        ASSERT_EQ(ranks.size(), 2U);
        each(2, [&](std::uint32_t rank) {
            std::vector<float> values(10, 1.0F);
            EXPECT_TRUE(succeeds(sum_in_place(*ranks[rank], values)));
        });
        std::vector<float> pending(several_windows, 1.0F);
        const auto work = sum_in_place(*ranks[0], pending);
        fabric.root = restart(std::move(fabric.root));
        ASSERT_NE(fabric.root, nullptr);
        const Error error = error_of(work);
        EXPECT_EQ(error.reason, Reason::rejected) << to_string(error);
        EXPECT_TRUE(says(error, "form again"));
        // The other rank may know of the failure before it submits.
        std::vector<float> late(several_windows, 1.0F);
        EXPECT_TRUE(says(error_of(sum_in_place(*ranks[1], late)), "form again"));
        ranks.clear();
        job.options().generation = 1;
        job.run([](comm::Communicator& communicator) { expect_sum(communicator, several_windows, 5); });
    }
}

TEST(Reforming, WithoutALostRankFormsASmallerWorld) {
    const auto node = start(small_switch());
    Job job(3, {address_of(*node)});
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    ranks[2].reset();
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(10, 1.0F);
        EXPECT_TRUE(says(error_of(sum_in_place(*ranks[rank], values)), "rank 2"));
    });
    ranks.clear();
    each(2, [&](std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        options.generation = 1;
        const auto formed = comm::Communicator::form(job.store(), rank, 2, options);
        ASSERT_TRUE(formed) << to_string(formed.error());
        expect_sum(**formed, several_windows, 9);
    });
}

}  // namespace
}  // namespace atp::test
