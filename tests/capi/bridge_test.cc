// SPDX-License-Identifier: Apache-2.0
// The functions that the Python package calls, from two ranks that are threads.
#include "capi/bridge.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

constexpr std::int32_t sum = 0;
constexpr std::int32_t average = 1;
constexpr std::int32_t scaled = 2;
constexpr std::int32_t maximum = 4;  // numeric::FoldOperation
constexpr double timeout_s = 20;

atp_bridge_call call_of(std::int32_t operation, std::int32_t type = 0, std::int32_t reduction = sum) {
    atp_bridge_call call{};
    call.operation = operation;
    call.type = type;
    call.reduction = reduction;
    call.factor = 1;
    call.timeout_s = timeout_s;
    call.count = 1;
    return call;
}

struct Rank {
    std::uint32_t rank;
    atp_communicator* communicator;

    // Begins the operation, and waits for it.
    [[nodiscard]] int call(const atp_bridge_call& call, const atp_buffer& buffer, const std::size_t* shares = nullptr) {
        atp_work* work = nullptr;
        if (atp_bridge_begin(communicator, &call, &buffer, shares, &work, &text) != 0) return 1;
        int outcome = 2;
        while (outcome == 2) outcome = atp_bridge_wait(work, 0.1, &text);
        atp_work_free(work);
        return outcome;
    }
    [[nodiscard]] int all_reduce(std::vector<float>& values, std::int32_t reduction, double factor = 1) {
        atp_bridge_call sums = call_of(ATP_OPERATION_ALL_REDUCE, ATP_ELEMENT_FLOAT32, reduction);
        sums.factor = factor;
        return call(sums, {values.data(), values.data(), values.size()});
    }

    atp_bridge_text text{};
};

std::int32_t refuse(const char* /*offered*/, atp_bridge_network* network) {
    std::strcpy(network->refusal, "no network here");
    return 1;
}

std::int32_t listen_on_loopback(const char* offered, atp_bridge_network* network) {
    std::strcpy(network->switch_address, offered);
    std::strcpy(network->listen, "127.0.0.1:0");
    return 0;
}

// Runs `body` on two ranks. `host_level`: "on" or "off", for ranks that share memory or use the network.
void run(const char* host_level, atp_bridge_find_network* find, const std::function<void(Rank&)>& body) {
    atp_store* store = nullptr;
    ASSERT_EQ(atp_store_in_memory(&store, nullptr), 0);
    const std::array options{"host_level", host_level, "lanes", ""};
    std::array<std::thread, 2> ranks;
    for (std::uint32_t number = 0; number < ranks.size(); ++number) {
        ranks.at(number) = std::thread([&, number] {
            Rank rank{number, nullptr};
            const int failed = atp_bridge_form(store, number, 2, options.data(), options.size(), 0, find, timeout_s,
                                               &rank.communicator, &rank.text);
            EXPECT_EQ(failed == 0, rank.communicator != nullptr);
            body(rank);
            atp_communicator_destroy(rank.communicator);
        });
    }
    for (std::thread& rank : ranks) rank.join();
    atp_store_destroy(store);
}

void sum_in_every_way(Rank& rank) {
    ASSERT_NE(rank.communicator, nullptr) << rank.text.text;
    const float own = rank.rank == 0 ? 1.0F : 3.0F;
    for (const auto& [reduction, factor, expected] :
         {std::tuple{sum, 1.0, 4.0F}, {average, 1.0, 2.0F}, {scaled, 0.5, 2.0F}, {maximum, 1.0, 3.0F}}) {
        std::vector<float> values(100, own);
        EXPECT_EQ(rank.all_reduce(values, reduction, factor), 0) << rank.text.text;
        EXPECT_EQ(values, std::vector<float>(100, expected)) << reduction;
    }
    EXPECT_EQ(rank.call(call_of(ATP_OPERATION_BARRIER), {}), 0) << rank.text.text;
    const float given = own;
    float taken = 0;
    EXPECT_EQ(atp_bridge_push(rank.communicator, 7, &given, 1, ATP_ELEMENT_FLOAT32, timeout_s, &rank.text), 0);
    EXPECT_EQ(atp_bridge_pull(rank.communicator, 7, &taken, 1, ATP_ELEMENT_FLOAT32, &rank.text), 0);
    EXPECT_EQ(taken, 4);
}

TEST(Bridge, RanksSumInMemory) { run("on", refuse, sum_in_every_way); }

TEST(Bridge, RanksSumOverTheNetworkThatTheyFind) { run("off", listen_on_loopback, sum_in_every_way); }

TEST(Bridge, OperationsWithOwners) {
    run("on", refuse, [](Rank& rank) {
        ASSERT_NE(rank.communicator, nullptr) << rank.text.text;
        const std::array<std::size_t, 2> shares{3, 1};
        std::vector<std::int32_t> values{1, 2, 3, 4};
        std::vector<std::int32_t> part(shares.at(rank.rank));
        atp_bridge_call call = call_of(ATP_OPERATION_REDUCE_SCATTER, ATP_ELEMENT_INT32);
        EXPECT_EQ(rank.call(call, {values.data(), part.data(), values.size()}, shares.data()), 0) << rank.text.text;
        EXPECT_EQ(part.front(), rank.rank == 0 ? 2 : 8);

        call.operation = ATP_OPERATION_REDUCE;
        call.root = 1;
        std::vector<std::int32_t> total(values.size());
        EXPECT_EQ(rank.call(call, {values.data(), total.data(), values.size()}), 0) << rank.text.text;
        EXPECT_EQ(total.back(), rank.rank == 1 ? 8 : 0);

        call.operation = ATP_OPERATION_BROADCAST;
        std::uint8_t byte = rank.rank == 1 ? 9 : 0;
        EXPECT_EQ(rank.call(call, {nullptr, &byte, 1}), 0) << rank.text.text;
        EXPECT_EQ(byte, 9);

        call.operation = ATP_OPERATION_ALL_GATHER;
        const std::string own = rank.rank == 0 ? "abc" : "d";
        std::string all(4, ' ');
        EXPECT_EQ(rank.call(call, {own.data(), all.data(), own.size()}, shares.data()), 0) << rank.text.text;
        EXPECT_EQ(all, "abcd");

        // An average of integers is a sum, which the caller divides.
        call.operation = ATP_OPERATION_ALL_REDUCE;
        call.reduction = average;
        EXPECT_EQ(rank.call(call, {values.data(), values.data(), values.size()}), 0) << rank.text.text;
        EXPECT_EQ(values, (std::vector<std::int32_t>{2, 4, 6, 8}));
    });
}

TEST(Bridge, RefusalOfTheNetworkReachesEveryRank) {
    run("off", refuse, [](Rank& rank) {
        ASSERT_EQ(rank.communicator, nullptr);
        EXPECT_NE(std::string(rank.text.text).find("no network here"), std::string::npos) << rank.text.text;
        atp_bridge_failure failure{};
        EXPECT_EQ(atp_bridge_failure_of(rank.text.text, &failure), 1);
        EXPECT_STREQ(failure.operation, "rendezvous");
        EXPECT_EQ(atp_bridge_failure_of("another text", &failure), 0);
    });
}

TEST(Bridge, UnknownOptionIsNamed) {
    atp_store* store = nullptr;
    ASSERT_EQ(atp_store_in_memory(&store, nullptr), 0);
    const std::array options{"lanes", "many"};
    atp_communicator* communicator = nullptr;
    atp_bridge_text text{};
    EXPECT_EQ(atp_bridge_form(store, 0, 1, options.data(), options.size(), 0, refuse, 1, &communicator, &text), 1);
    EXPECT_NE(std::string(text.text).find("many"), std::string::npos) << text.text;
    atp_store_destroy(store);
}

TEST(Bridge, SwitchStartsAndIsReached) {
    atp_bridge_switch* node = nullptr;
    atp_bridge_text text{};
    ASSERT_EQ(atp_bridge_switch_start("127.0.0.1:0", "", &node, &text), 0) << text.text;
    const std::string address = text.text;
    EXPECT_EQ(atp_bridge_address_towards(address.c_str(), &text), 0);
    EXPECT_STREQ(text.text, "127.0.0.1");
    atp_bridge_switch* second = nullptr;
    EXPECT_EQ(atp_bridge_switch_start(address.c_str(), "", &second, &text), 1);
    EXPECT_EQ(second, nullptr);
    EXPECT_EQ(atp_bridge_address_towards("no address", &text), 1);
    atp_bridge_switch_stop(node);
}

TEST(Bridge, WaitThatEndsEarlyNamesTheOperation) {
    std::promise<void> looked;
    run("on", refuse, [&](Rank& rank) {
        ASSERT_NE(rank.communicator, nullptr) << rank.text.text;
        const atp_bridge_call barrier = call_of(ATP_OPERATION_BARRIER);
        if (rank.rank == 1) {
            EXPECT_EQ(looked.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
            EXPECT_EQ(rank.call(barrier, {}), 0) << rank.text.text;
            return;
        }
        atp_work* work = nullptr;
        EXPECT_EQ(atp_bridge_begin(rank.communicator, &barrier, nullptr, nullptr, &work, &rank.text), 0);
        EXPECT_EQ(atp_bridge_wait(work, 0.001, &rank.text), 2);
        atp_bridge_give_up(work, 1, &rank.text);
        EXPECT_NE(std::string(rank.text.text).find("barrier"), std::string::npos) << rank.text.text;
        EXPECT_NE(std::string(rank.text.text).find("timeout of 1 ms"), std::string::npos) << rank.text.text;
        looked.set_value();
        EXPECT_EQ(atp_bridge_wait(work, timeout_s, &rank.text), 0) << rank.text.text;
        atp_work_free(work);
    });
}

TEST(Bridge, LinesOfTheLogEndWithClose) {
    run("off", listen_on_loopback, [](Rank& rank) { EXPECT_NE(rank.communicator, nullptr) << rank.text.text; });
    atp_bridge_close_log_lines();
    atp_bridge_text line{};
    int lines = 0;
    while (atp_bridge_take_log_line(&line) != 0) ++lines;
    EXPECT_GT(lines, 0);
    EXPECT_GT(atp_bridge_elements_of_cell(), 0U);
    EXPECT_GT(atp_bridge_longest_fold(), 0U);
}

}  // namespace
