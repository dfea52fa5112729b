// SPDX-License-Identifier: Apache-2.0
// Jobs without a switch: each host serves a part of the sums. The addresses of loopback stand for hosts.
#include <gtest/gtest.h>

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
using numeric::ElementType;

// Rank r is on host r / ranks_per_host.
struct ServingJob {
    explicit ServingJob(std::uint32_t ranks, std::uint32_t ranks_per_host = 1)
        : job(ranks, {""}), each_host(ranks_per_host) {}

    [[nodiscard]] comm::Options options_of(std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        options.listen = "127.0.0." + std::to_string(2 + rank / each_host) + ":0";
        return options;
    }
    void run(const std::function<void(Communicator&)>& body) {
        run_with(
            job, [this](std::uint32_t rank) { return options_of(rank); }, body);
    }

    Job job;
    std::uint32_t each_host;
};

TEST(RootServers, HostsServeTheSumsOfTheirChannels) {
    for (const std::uint32_t world : {2U, 3U, 5U}) {
        ServingJob(world).run([&](Communicator& communicator) {
            EXPECT_EQ(communicator.formation().channels, world);
            for (const std::size_t elements : {std::size_t{1}, several_windows * 3}) {
                for (int round = 0; round < 5; ++round) {
                    std::vector<float> values(elements, static_cast<float>(communicator.rank() + 1));
                    ASSERT_TRUE(succeeds(communicator.all_reduce({values.data(), values.data(), elements},
                                                                 ElementType::float32, Reduction::sum)));
                    const auto sum = static_cast<float>(world * (world + 1)) / 2;
                    ASSERT_EQ(values, std::vector<float>(elements, sum));
                }
            }
            ASSERT_TRUE(succeeds(communicator.barrier()));
        });
    }
}

TEST(RootServers, OneRankOfEachHostServes) {
    ServingJob(4, 2).run([](Communicator& communicator) {
        EXPECT_EQ(communicator.formation().channels, 2U);
        EXPECT_TRUE(succeeds(communicator.barrier()));
    });
}

TEST(RootServers, BitsAreThoseOfASwitch) {
    const auto node = start(small_switch());
    std::mutex mutex;
    std::vector<std::vector<float>> sums;
    const auto body = [&](Communicator& communicator) {
        std::vector<float> values(several_windows);
        for (std::size_t at = 0; at < values.size(); ++at) {
            values[at] = static_cast<float>(at % 1000) * 1e-4F + static_cast<float>(communicator.rank());
            if (at % 501 == 7) values[at] *= 1e20F;
        }
        ASSERT_TRUE(succeeds(communicator.all_reduce({values.data(), values.data(), values.size()},
                                                     ElementType::float32, Reduction::sum)));
        const std::scoped_lock lock(mutex);
        sums.push_back(std::move(values));
    };
    ServingJob(3).run(body);
    Job(3, {address_of(*node)}).run(body);
    ASSERT_EQ(sums.size(), 6U);
    for (const auto& sum : sums) EXPECT_EQ(sum, sums.front());
}

TEST(RootServers, AddressOfNoInterfaceEndsTheFormation) {
    ServingJob job(3);
    each(3, [&](std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        if (rank == 2) options.listen = "192.0.2.1:0";
        const auto formed = Communicator::form(job.job.store(), rank, 3, options);
        EXPECT_FALSE(formed) << "no interface has this address";
    });
}

TEST(RootServers, ListenIsRefusedWithItsForms) {
    for (const std::string text : {"host", "127.0.0.1:9-8", "127.0.0.1:x", "0.0.0.0:0"}) {
        Job job(1, {""});
        comm::Options options = job.options_of(0);
        options.listen = text;
        const auto formed = Communicator::form(job.store(), 0, 1, options);
        ASSERT_FALSE(formed);
        EXPECT_EQ(formed.error().reason, Reason::malformed) << text;
    }
}

TEST(RootServers, EndOfAHostNamesItsRank) {
    ServingJob(3).run([](Communicator& communicator) {
        ASSERT_TRUE(succeeds(communicator.barrier()));
        if (communicator.rank() == 2) return communicator.abort();
        const Error error = error_of(communicator.barrier());
        EXPECT_TRUE(says(error, "rank 2"));
    });
}

}  // namespace
}  // namespace atp::test
