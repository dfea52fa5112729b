// SPDX-License-Identifier: Apache-2.0
// The C++ header: every function, with two ranks that are threads.
#include <gtest/gtest.h>
#include <atp/atp.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
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
        ranks.all_reduce(floats);
        EXPECT_EQ(floats, (std::vector<float>{4.5F, 4}));
        const std::vector<double> doubles{0.25 * mine};
        std::array<double, 1> sum{};
        ranks.all_reduce(doubles, sum, ATP_REDUCTION_AVERAGE);
        EXPECT_EQ(sum.front(), 0.375);
        std::int32_t small = mine;
        ranks.all_reduce(atp::span(&small, 1), ATP_REDUCTION_SUM, std::chrono::seconds(20));
        EXPECT_EQ(small, 3);
        std::int64_t large[] = {std::int64_t{1} << 40U};
        ranks.all_reduce(large);
        EXPECT_EQ(large[0], std::int64_t{1} << 41U);
        long long longest[] = {1};
        ranks.all_reduce(longest);
        EXPECT_EQ(longest[0], 2);
        std::vector<atp::float16> halves{atp::float16(0.5F * static_cast<float>(mine))};
        ranks.all_reduce(halves);
        EXPECT_EQ(static_cast<float>(halves[0]), 1.5F);
        std::vector<atp::bfloat16> bfloats{atp::bfloat16(2.0F * static_cast<float>(mine))};
        ranks.all_reduce(bfloats);
        EXPECT_EQ(static_cast<float>(bfloats[0]), 6);
    });
}

TEST_F(CppApi, AllReduceHasEveryReduction) {
    on_both_ranks([](atp::Communicator& ranks) {
        const std::vector<std::int32_t> own{ranks.rank() == 0 ? 6 : 3};
        std::vector<std::int32_t> result(1);
        for (const auto& [reduction, expected] : {std::pair{ATP_REDUCTION_SUM, 9},
                                                  {ATP_REDUCTION_MINIMUM, 3},
                                                  {ATP_REDUCTION_MAXIMUM, 6},
                                                  {ATP_REDUCTION_PRODUCT, 18},
                                                  {ATP_REDUCTION_AND, 2},
                                                  {ATP_REDUCTION_OR, 7},
                                                  {ATP_REDUCTION_XOR, 5}}) {
            ranks.all_reduce(own, result, reduction);
            EXPECT_EQ(result[0], expected) << reduction;
        }
    });
}

TEST_F(CppApi, AsynchronousOperationsAreDoneAfterWait) {
    on_both_ranks([](atp::Communicator& ranks) {
        const auto mine = static_cast<float>(ranks.rank() + 1);
        const std::vector<float> in(1000, mine);
        std::vector<float> out(1000);
        std::vector<float> place(3, mine);
        std::array<float, 2> part{mine, 1};
        const std::array<std::size_t, 2> counts{999, 1};
        const std::array<std::size_t, 2> ones{1, 1};
        std::vector<float> block(counts.at(ranks.rank()));
        std::array<float, 2> blocks{};
        std::array<float, 1> first{};
        std::array<float, 1> root{mine};
        std::array<atp::Work, 7> works{
            ranks.all_reduce_async(in, out),
            ranks.all_reduce_async(place, ATP_REDUCTION_AVERAGE),
            ranks.all_reduce_group_async(std::array{atp::Buffer(part)}),
            ranks.reduce_scatter_async(in, block, counts),
            ranks.all_gather_async(atp::span(in.data(), 1), blocks, ones),
            ranks.reduce_async(atp::span(in.data(), 1), first, 1),
            ranks.broadcast_async(root, 1),
        };
        atp::Work last = ranks.barrier_async();
        last.wait();
        EXPECT_TRUE(last.done());
        for (atp::Work& work : works) work.wait();
        EXPECT_EQ(out, std::vector<float>(1000, 3));
        EXPECT_EQ(place, std::vector<float>(3, 1.5F));
        EXPECT_EQ(part, (std::array<float, 2>{3, 2}));
        EXPECT_EQ(block, std::vector<float>(block.size(), 3));
        EXPECT_EQ(blocks, (std::array<float, 2>{1, 2}));
        EXPECT_EQ(first[0], ranks.rank() == 1 ? 3.0F : 0.0F);
        EXPECT_EQ(root[0], 2);
    });
}

TEST_F(CppApi, BlocksOfRanksAreScatteredAndGathered) {
    on_both_ranks([](atp::Communicator& ranks) {
        const bool is_first = ranks.rank() == 0;
        const std::array<float, 2> both{1.5F, 2.5F};
        std::array<float, 1> part{};
        ranks.reduce_scatter(both, part);
        EXPECT_EQ(part[0], is_first ? 3.0F : 5.0F);
        const std::array<std::size_t, 2> counts{2, 0};
        std::vector<float> parts(counts.at(ranks.rank()));
        ranks.reduce_scatter(both, parts, counts, ATP_REDUCTION_AVERAGE);
        EXPECT_EQ(parts, is_first ? std::vector<float>(both.begin(), both.end()) : std::vector<float>{});
        std::array<float, 2> gathered{};
        ranks.all_gather(atp::span(&both.at(ranks.rank()), 1), gathered);
        EXPECT_EQ(gathered, both);
        const std::string word = is_first ? "four" : "two";
        std::string words(7, '-');
        ranks.all_gather(word, words, std::vector<std::size_t>{4, 3});
        EXPECT_EQ(words, "fourtwo");
    });
}

TEST_F(CppApi, ReduceBroadcastGroupPushAndPullReachTheirRanks) {
    on_both_ranks([](atp::Communicator& ranks) {
        EXPECT_EQ(ranks.world(), 2U);
        std::array<char, 6> text{};
        if (ranks.rank() == 1) std::memcpy(text.data(), "hello", 6);
        ranks.broadcast(text, 1);
        EXPECT_STREQ(text.data(), "hello");
        const std::array<float, 2> both{1.5F, 2.5F};
        std::vector<float> sums(ranks.rank() == 0 ? 2 : 0);
        ranks.reduce(both, sums, 0);
        EXPECT_EQ(sums, ranks.rank() == 0 ? (std::vector<float>{3, 5}) : std::vector<float>{});
        ranks.barrier();
        std::vector<std::int32_t> small{1};
        std::vector<std::int32_t> sum(2);
        const std::vector<std::int32_t> large{2, 3};
        ranks.all_reduce_group(std::vector{atp::Buffer(small), atp::Buffer(large, sum)});
        EXPECT_EQ(small[0], 2);
        EXPECT_EQ(sum, (std::vector<std::int32_t>{4, 6}));
        const std::array<float, 1> value{static_cast<float>(ranks.rank()) + 1};
        std::array<float, 1> pulled{};
        ranks.push(7, value);
        ranks.pull(7, pulled);
        EXPECT_EQ(pulled[0], 3);
        EXPECT_GT(ranks.counters().operations, 4U);
    });
}

TEST_F(CppApi, TensorsOfWrongSizesAreRefusedBeforeTheOperation) {
    on_both_ranks([](atp::Communicator& ranks) {
        const auto refuses = [](atp_operation operation, const auto& call) {
            try {
                call();
                ADD_FAILURE() << atp_operation_name(operation) << " took tensors of wrong sizes";
            } catch (const atp::Error& error) {
                EXPECT_EQ(error.reason(), ATP_REASON_MALFORMED);
                EXPECT_EQ(error.operation(), operation);
            }
        };
        const std::vector<float> three(3);
        std::vector<float> two(2);
        refuses(ATP_OPERATION_ALL_REDUCE, [&] { ranks.all_reduce(three, two); });
        refuses(ATP_OPERATION_ALL_REDUCE, [&] { static_cast<void>(atp::Buffer(three, two)); });
        refuses(ATP_OPERATION_REDUCE_SCATTER, [&] { ranks.reduce_scatter(three, two); });
        refuses(ATP_OPERATION_ALL_GATHER, [&] { ranks.all_gather(two, two); });
        refuses(ATP_OPERATION_ALL_GATHER, [&] { ranks.all_gather(two, two, std::vector<std::size_t>{2}); });
        if (ranks.rank() == 1) refuses(ATP_OPERATION_REDUCE, [&] { ranks.reduce(three, two, 1); });
        ranks.barrier();  // the communicator still works
    });
}

TEST_F(CppApi, LogReceiverGetsLinesAndItsExceptionsAreLost) {
    const atp::Store store = atp::Store::in_memory();
    auto lines = std::make_shared<std::vector<std::string>>();
    const std::weak_ptr<std::vector<std::string>> kept = lines;
    {
        atp::Communicator alone(store, 0, 1, options_, [lines](atp_severity, std::string_view line) {
            lines->emplace_back(line);
            throw std::runtime_error("not for the library");
        });
        EXPECT_EQ(std::count(lines->begin(), lines->end(), "memory shared rank=0 ranks=1"), 1);
        lines.reset();
        atp::Communicator moved = std::move(alone);
        EXPECT_FALSE(kept.expired());
    }
    EXPECT_TRUE(kept.expired());
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
        EXPECT_EQ(error.operation(), ATP_OPERATION_OTHER);
        EXPECT_EQ(error.peer(), "nowhere");
        EXPECT_NE(error.text(), "");
        EXPECT_GE(error.elapsed().count(), 0);
        EXPECT_NE(std::string(error.what()).find("malformed"), std::string::npos) << error.what();
    }
    EXPECT_THROW(static_cast<void>(atp::Store::connect("127.0.0.1:1", std::chrono::milliseconds(1))), atp::Error);
    EXPECT_THROW(static_cast<void>(atp::Store::from_callbacks({})), atp::Error);
}

}  // namespace
