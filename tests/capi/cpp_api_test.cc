// SPDX-License-Identifier: Apache-2.0
// The C++ header: every function, with two ranks that are threads.
#include <gtest/gtest.h>
#include <atp/atp.hpp>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "c_api_switch.h"

namespace {

static_assert(std::is_move_constructible_v<atp::Communicator> && !std::is_copy_constructible_v<atp::Communicator>);
static_assert(std::is_move_assignable_v<atp::Store> && !std::is_copy_assignable_v<atp::Store>);

class CppApi : public testing::Test {
  protected:
    void SetUp() override {
        const char* const address = start_test_switch();
        ASSERT_NE(address, nullptr);
        options_.switch_address = address;
        options_.join_timeout_ms = options_.timeout_ms = 20'000;
        options_.socket_buffer_bytes = 1U << 20U;
    }
    void TearDown() override { stop_test_switch(); }

    // Runs `body` on both ranks of a communicator, and reports any exception.
    void on_both_ranks(const std::function<void(atp::Communicator&)>& body) {
        const atp::Store store = atp::Store::in_memory();
        std::array<std::string, 2> failures;
        std::vector<std::thread> threads;
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            threads.emplace_back([&, rank] {
                try {
                    atp::Communicator ranks(store, rank, 2, options_);
                    body(ranks);
                } catch (const std::exception& error) {
                    failures[rank] = error.what();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(failures, (std::array<std::string, 2>{}));
    }

    atp::Options options_;
};

TEST_F(CppApi, AllReduceSumsEachElementType) {
    on_both_ranks([](atp::Communicator& ranks) {
        const auto mine = static_cast<int>(ranks.rank() + 1);
        std::vector<float> floats{1.5F * static_cast<float>(mine), 2};
        ranks.all_reduce(floats.data(), floats.size());
        EXPECT_EQ(floats, (std::vector<float>{4.5F, 4}));
        const std::vector<double> doubles{0.25 * mine};
        std::vector<double> sum(1);
        ranks.all_reduce(doubles.data(), sum.data(), 1, ATP_REDUCTION_AVERAGE);
        EXPECT_EQ(sum.front(), 0.375);
        std::int32_t small = mine;
        ranks.all_reduce(&small, 1, ATP_REDUCTION_SUM, std::chrono::seconds(20));
        EXPECT_EQ(small, 3);
        std::int64_t large = std::int64_t{1} << 40U;
        ranks.all_reduce(&large, 1);
        EXPECT_EQ(large, std::int64_t{1} << 41U);
    });
}

TEST_F(CppApi, AsynchronousSumIsDoneAfterWait) {
    on_both_ranks([](atp::Communicator& ranks) {
        const std::vector<float> in(1000, 1);
        std::vector<float> out(1000);
        atp::Work work = ranks.all_reduce_async(in.data(), out.data(), in.size());
        work.wait();
        EXPECT_TRUE(work.done());
        EXPECT_EQ(out, std::vector<float>(1000, 2));
    });
}

TEST_F(CppApi, BroadcastBarrierPushAndPullReachBothRanks) {
    on_both_ranks([](atp::Communicator& ranks) {
        EXPECT_EQ(ranks.world(), 2U);
        std::array<char, 6> text{};
        if (ranks.rank() == 1) std::memcpy(text.data(), "hello", 6);
        ranks.broadcast(text.data(), text.size(), 1);
        EXPECT_STREQ(text.data(), "hello");
        const std::array<std::size_t, 2> counts{1, 1};
        const std::array<std::size_t, 2> bytes{4, 4};
        const std::array<float, 2> both{1.5F, 2.5F};
        std::array<float, 2> parts{};
        ranks.reduce_scatter(both.data(), parts.data(), counts.data());
        EXPECT_EQ(parts[0], ranks.rank() == 0 ? 3.0F : 5.0F);
        ranks.all_gather(&both[ranks.rank()], parts.data(), bytes.data());
        EXPECT_EQ(parts, both);
        ranks.reduce(both.data(), parts.data(), 2, 0);
        EXPECT_EQ(parts[1], ranks.rank() == 0 ? 5.0F : 2.5F);
        ranks.barrier();
        const float value = static_cast<float>(ranks.rank()) + 1;
        float sum = 0;
        ranks.push(7, &value, 1);
        ranks.pull(7, &sum, 1);
        EXPECT_EQ(sum, 3);
    });
}

TEST_F(CppApi, AbortedCommunicatorThrowsClosed) {
    on_both_ranks([](atp::Communicator& ranks) {
        ranks.barrier();
        ranks.abort();
        try {
            ranks.barrier();
            ADD_FAILURE() << "a barrier after abort() succeeded";
        } catch (const atp::Error& error) {
            EXPECT_EQ(error.reason(), ATP_REASON_CLOSED);
        }
    });
}

TEST_F(CppApi, StoreServerServesConnectedStores) {
    const atp::StoreServer server("127.0.0.1:0");
    atp::Store store = atp::Store::connect(server.address());
    const atp::Store moved = std::move(store);
    const atp::Communicator alone(moved, 0, 1, options_);
    EXPECT_EQ(alone.world(), 1U);
}

TEST(CppApiWithoutSwitch, ErrorCarriesTheReasonAndTheText) {
    try {
        const atp::StoreServer server("nowhere");
        FAIL() << "a server listens at an address without a port";
    } catch (const atp::Error& error) {
        EXPECT_EQ(error.reason(), ATP_REASON_MALFORMED);
        EXPECT_EQ(error.details().reason, ATP_REASON_MALFORMED);
        EXPECT_NE(std::string(error.what()).find("malformed"), std::string::npos) << error.what();
    }
    EXPECT_THROW(static_cast<void>(atp::Store::connect("127.0.0.1:1", std::chrono::milliseconds(1))), atp::Error);
    EXPECT_THROW(static_cast<void>(atp::Store::from_callbacks({})), atp::Error);
}

}  // namespace
