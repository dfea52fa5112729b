// SPDX-License-Identifier: Apache-2.0
// Ranks of one host that sum in shared memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "fabric.h"

namespace atp::test {
namespace {

using comm::Communicator;
using comm::Reduction;
using numeric::ElementType;

comm::Options host_options() {
    comm::Options options = small_options();
    options.host_level = true;
    return options;
}

// No address of a switch: these ranks need none.
struct HostJob : Job {
    explicit HostJob(std::uint32_t world, comm::Options options = host_options())
        : Job(world, {""}, std::move(options)) {}
};

TEST(HostLevel, CallbacksRunWithoutAWaitingCaller) {
    HostJob(2).run([](Communicator& communicator) {
        std::vector<float> values(100, 1);
        std::atomic<bool> called{false};
        const auto work = sum_in_place(communicator, values);
        ASSERT_TRUE(work);
        (*work)->on_done([&] { called = true; });
        EXPECT_TRUE(eventually([&] { return called.load(); }));
        EXPECT_EQ(values, std::vector<float>(100, 2));
    });
}

// docs/spec/hazards.md#h45
TEST(HostLevel, H45_DifferentOperationsEndWithBothNames) {
    HostJob(2).run([](Communicator& communicator) {
        std::vector<float> values(10, 1);
        const std::size_t elements = communicator.rank() == 0 ? 10 : 9;
        const Error error = error_of(
            communicator.all_reduce({values.data(), values.data(), elements}, ElementType::float32, Reduction::sum));
        EXPECT_EQ(error.reason, Reason::mismatched);
        EXPECT_TRUE(says(error, "all_reduce of 10 float32 (sum)"));
        EXPECT_TRUE(says(error, "all_reduce of 9 float32 (sum)"));
        EXPECT_EQ(values[0], 1.0F);
    });
}

TEST(HostLevel, RankThatLeftIsNamed) {
    HostJob(3).run([](Communicator& communicator) {
        ASSERT_TRUE(succeeds(communicator.barrier()));
        if (communicator.rank() == 2) return;
        const Error error = error_of(communicator.barrier());
        EXPECT_EQ(error.reason, Reason::closed);
        EXPECT_EQ(error.peer, "rank 2");
    });
}

TEST(HostLevel, MissingRankIsNamedAtTheDeadline) {
    std::atomic<unsigned> ended{0};
    HostJob(3).run([&](Communicator& communicator) {
        if (communicator.rank() == 1) {
            EXPECT_TRUE(eventually([&] { return ended == 2; }));
            return;
        }
        const auto deadline = net::now() + std::chrono::milliseconds(50);
        const Error error = error_of(communicator.barrier(communicator.rank() == 0 ? deadline : never));
        // The first error of a host is that of all its ranks.
        EXPECT_EQ(error.reason, Reason::timed_out);
        EXPECT_EQ(error.peer, "rank 1");
        ++ended;
    });
}

TEST(HostLevel, WaitEndsAtItsOwnTimeAndTheWorkGoesOn) {
    std::atomic<bool> waited{false};
    HostJob(2).run([&](Communicator& communicator) {
        if (communicator.rank() == 1) {
            EXPECT_TRUE(eventually([&] { return waited.load(); }));
            EXPECT_TRUE(succeeds(communicator.barrier()));
            return;
        }
        const auto work = communicator.barrier();
        ASSERT_TRUE(work);
        EXPECT_FALSE((*work)->wait_until(net::now() + std::chrono::milliseconds(5)));
        waited = true;
        EXPECT_TRUE(succeeds(work));
    });
}

TEST(HostLevel, AbortEndsWorksUnderWay) {
    std::atomic<bool> aborted{false};
    HostJob(2).run([&](Communicator& communicator) {
        if (communicator.rank() == 1) {
            EXPECT_TRUE(eventually([&] { return aborted.load(); }));
            EXPECT_EQ(error_of(communicator.barrier()).peer, "rank 0");
            return;
        }
        std::vector<float> values(200'000, 1);
        const auto work = sum_in_place(communicator, values);
        communicator.abort();
        aborted = true;
        EXPECT_EQ(error_of(work).reason, Reason::closed);
        EXPECT_EQ(error_of(communicator.barrier()).reason, Reason::closed);
    });
}

TEST(HostLevel, TwoCommunicatorsShareTheirRanks) {
    HostJob first(2);
    comm::Options options = host_options();
    options.name = "second";
    HostJob second(2, options);
    each(2, [&](std::uint32_t rank) {
        const auto a = first.form(rank);
        const auto b = second.form(rank);
        ASSERT_TRUE(a && b);
        for (int round = 0; round < 50; ++round) {
            std::vector<float> x(5000, 1);
            std::vector<float> y(50'000, 2);
            const auto one = sum_in_place(**a, x);
            const auto two = sum_in_place(**b, y);
            ASSERT_TRUE(succeeds(two) && succeeds(one));
            EXPECT_EQ(x[4999], 2.0F);
            EXPECT_EQ(y[49'999], 4.0F);
        }
    });
}

}  // namespace
}  // namespace atp::test
