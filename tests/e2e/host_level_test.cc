// SPDX-License-Identifier: Apache-2.0
// Ranks of one host that sum in shared memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
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

float value_of(std::uint32_t rank, std::size_t at) {
    switch (at % 97) {
        case 13: return rank == 1 ? 1e30F : 0.5F;
        case 50: return rank == 0 ? std::numeric_limits<float>::infinity() : 1.0F;
        case 77: return rank == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
        case 80: return 20.0F;
        default: return std::sin(static_cast<float>(at * 3 + rank)) * 1e-2F;
    }
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
    std::vector<std::uint32_t> bits(values.size());
    std::memcpy(bits.data(), values.data(), bits.size() * sizeof bits[0]);
    return bits;
}

// The result on rank 0; fails the test if another rank has other bits.
std::vector<std::uint32_t> sum_of(Job& job, std::size_t elements) {
    std::vector<std::vector<std::uint32_t>> results(job.world());
    job.run([&](Communicator& communicator) {
        std::vector<float> values(elements);
        for (std::size_t at = 0; at < elements; ++at) values[at] = value_of(communicator.rank(), at);
        const auto work =
            communicator.all_reduce({values.data(), values.data(), elements}, ElementType::float32, Reduction::sum);
        ASSERT_TRUE(succeeds(work));
        results[communicator.rank()] = bits_of(values);
    });
    for (const auto& result : results) EXPECT_EQ(result, results[0]);
    return results[0];
}

// docs/protocol.md#h48: also for floats that fit no integer, and sums beyond 32 bits.
TEST(HostLevel, H48_BitsAreThoseOfTheNetwork) {
    const auto node = start(small_switch());
    for (const std::uint32_t world : {1U, 2U, 3U, 5U}) {
        Job network(world, {address_of(*node)});
        HostJob host(world);
        for (const std::size_t elements : {1U, 1000U, 70'000U}) {
            EXPECT_EQ(sum_of(host, elements), sum_of(network, elements)) << world << " ranks, " << elements;
            ++host.options().generation;
            ++network.options().generation;
        }
    }
}

TEST(HostLevel, AllOperationsWork) {
    HostJob(3).run([](Communicator& communicator) {
        EXPECT_TRUE(communicator.formation().on_host);
        const std::uint32_t rank = communicator.rank();
        for (int round = 0; round < 20; ++round) {
            std::vector<std::int64_t> integers(70'001, (std::int64_t{1} << 40) + rank);
            const std::vector<double> halves(333, 0.5);
            std::vector<double> doubles(333);
            std::vector<std::byte> bytes(1001, rank == 2 ? std::byte{7} : std::byte{0});
            const auto a = communicator.all_reduce({integers.data(), integers.data(), integers.size()},
                                                   ElementType::int64, Reduction::sum);
            const auto b = communicator.all_reduce({halves.data(), doubles.data(), doubles.size()},
                                                   ElementType::float64, Reduction::average);
            const auto c = communicator.broadcast(bytes.data(), bytes.size(), 2);
            ASSERT_TRUE(succeeds(communicator.barrier()));
            ASSERT_TRUE(succeeds(c) && succeeds(b) && succeeds(a));
            EXPECT_EQ(integers, std::vector<std::int64_t>(70'001, 3 * (std::int64_t{1} << 40) + 3));
            EXPECT_EQ(doubles, halves);
            EXPECT_EQ(bytes, std::vector<std::byte>(1001, std::byte{7}));
        }
        const float one = 1;
        float pulled = 0;
        ASSERT_TRUE(succeeds(communicator.push(5, &one, 1, ElementType::float32)));
        ASSERT_TRUE(succeeds(communicator.pull(5, &pulled, 1, ElementType::float32)));
        EXPECT_EQ(pulled, 3.0F);
    });
}

TEST(HostLevel, CallbacksRunWithoutAWaitingCaller) {
    HostJob(2).run([](Communicator& communicator) {
        std::vector<float> values(100, 1);
        std::atomic<bool> called{false};
        const auto work = communicator.all_reduce({values.data(), values.data(), values.size()}, ElementType::float32,
                                                  Reduction::sum);
        ASSERT_TRUE(work);
        (*work)->on_done([&] { called = true; });
        EXPECT_TRUE(eventually([&] { return called.load(); }));
        EXPECT_EQ(values, std::vector<float>(100, 2));
    });
}

// docs/protocol.md#h45
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
    HostJob(3).run([](Communicator& communicator) {
        if (communicator.rank() == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            return;
        }
        const auto deadline = net::now() + std::chrono::milliseconds(50);
        const Error error = error_of(communicator.barrier(communicator.rank() == 0 ? deadline : never));
        // The first error of a host is that of all its ranks.
        EXPECT_EQ(error.reason, Reason::timed_out);
        EXPECT_EQ(error.peer, "rank 1");
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
        const auto work = communicator.all_reduce({values.data(), values.data(), values.size()}, ElementType::float32,
                                                  Reduction::sum);
        communicator.abort();
        aborted = true;
        EXPECT_EQ(error_of(work).reason, Reason::closed);
        EXPECT_EQ(error_of(communicator.barrier()).reason, Reason::closed);
    });
}

// docs/protocol.md#h41
TEST(HostLevel, H41_RanksWithTwoHostNamesUseTheNetwork) {
    const auto node = start(small_switch());
    comm::Options options = host_options();
    Job job(2, {address_of(*node)}, options);
    each(2, [&](std::uint32_t rank) {
        comm::Options own = job.options_of(rank);
        own.host_name = rank == 0 ? "a" : "b";
        const auto formed = Communicator::form(job.store(), rank, 2, own);
        ASSERT_TRUE(formed) << to_string(formed.error());
        EXPECT_FALSE((*formed)->formation().on_host);
        EXPECT_TRUE(succeeds((*formed)->barrier()));
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
            const auto one = (*a)->all_reduce({x.data(), x.data(), x.size()}, ElementType::float32, Reduction::sum);
            const auto two = (*b)->all_reduce({y.data(), y.data(), y.size()}, ElementType::float32, Reduction::sum);
            ASSERT_TRUE(succeeds(two) && succeeds(one));
            EXPECT_EQ(x[4999], 2.0F);
            EXPECT_EQ(y[49'999], 4.0F);
        }
    });
}

}  // namespace
}  // namespace atp::test
