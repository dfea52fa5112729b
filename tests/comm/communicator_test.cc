// SPDX-License-Identifier: Apache-2.0
// What a communicator refuses, and its operations in memory and on channels. tests/e2e compares sums bit by bit.
#include "comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fabric.h"
#include "support/fails.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Buffer;
using comm::Communicator;
using comm::Reduction;
using numeric::ElementType;
using numeric::FoldOperation;
using numeric::FoldType;
using testing::HasSubstr;
using Sizes = std::vector<std::size_t>;

comm::Options in_memory() {
    comm::Options options = small_options();
    options.host_level = true;
    return options;
}

class OneRank : public ::testing::Test {
  protected:
    void SetUp() override {
        auto formed = job.form(0);
        ASSERT_TRUE(formed) << to_string(formed.error());
        communicator = *std::move(formed);
    }

    Job job{1, {""}, in_memory()};
    std::unique_ptr<Communicator> communicator;
    std::vector<float> values = std::vector<float>(4, 1.0F);
};

TEST_F(OneRank, WrongArgumentsAreRefusedWithTheReason) {
    Communicator& one = *communicator;
    float* const some = values.data();
    const auto scatter = [&](const void* in, void* out, const Sizes& counts, ElementType type, Reduction reduction) {
        return one.reduce_scatter(in, out, counts, type, reduction);
    };
    constexpr auto sum = Reduction::sum;
    constexpr auto average = Reduction::average;
    constexpr auto floats = ElementType::float32;
    const std::string null = "a buffer is NULL, but its size is above 0";
    const std::string no_average = "elements of type int32 have no average: use a sum, and divide the result";
    const std::string no_root = "root 1 is out of range; a world of 1 ranks counts from 0";
    const auto fold = [&](const Buffer& buffer, FoldType type, FoldOperation operation) {
        return one.all_reduce(std::span(&buffer, 1), type, operation);
    };
    struct Row {
        Result<comm::Handle> work;
        Operation operation;
        Reason reason;
        std::string text;
    };
    const std::vector<Row> rows{
        {one.all_reduce({some, some, 4}, ElementType::int32, average), Operation::all_reduce, Reason::unsupported,
         no_average},
        {one.all_reduce({nullptr, some, 4}, floats, sum), Operation::all_reduce, Reason::malformed, null},
        {one.all_reduce({some, nullptr, 4}, floats, sum), Operation::all_reduce, Reason::malformed, null},
        {one.all_reduce({some, some, 4}, ElementType::int32, comm::Summing::scaled_by(2)), Operation::all_reduce,
         Reason::unsupported, no_average},
        {fold({some, some, 4}, FoldType::float32, FoldOperation::bit_or), Operation::all_reduce, Reason::unsupported,
         "elements of type float32 have no bitwise or: use a type of integers"},
        {fold({nullptr, some, 4}, FoldType::float32, FoldOperation::maximum), Operation::all_reduce, Reason::malformed,
         null},
        {fold({some, some, 8193}, FoldType::float64, FoldOperation::product), Operation::all_reduce, Reason::too_large,
         "the product of 8193 float64 exceeds 65536 bytes: split it into several operations"},
        {one.broadcast(some, 4, 1), Operation::broadcast, Reason::malformed, no_root},
        {one.broadcast(nullptr, 4, 0), Operation::broadcast, Reason::malformed, null},
        {scatter(some, some, {4}, ElementType::int32, average), Operation::reduce_scatter, Reason::unsupported,
         no_average},
        {scatter(some, some, {2, 2}, floats, sum), Operation::reduce_scatter, Reason::malformed,
         "2 counts for 1 ranks: pass one for each rank"},
        {scatter(nullptr, some, {4}, floats, sum), Operation::reduce_scatter, Reason::malformed, null},
        {scatter(some, nullptr, {4}, floats, sum), Operation::reduce_scatter, Reason::malformed, null},
        {one.all_gather(some, some, Sizes{}), Operation::all_gather, Reason::malformed,
         "0 sizes for 1 ranks: pass one for each rank"},
        {one.all_gather(nullptr, some, Sizes{4}), Operation::all_gather, Reason::malformed, null},
        {one.all_gather(some, nullptr, Sizes{4}), Operation::all_gather, Reason::malformed, null},
        {one.reduce({some, some, 4}, ElementType::int32, average, 0), Operation::reduce, Reason::unsupported,
         no_average},
        {one.reduce({some, some, 4}, floats, sum, 1), Operation::reduce, Reason::malformed, no_root},
        {one.reduce({some, nullptr, 4}, floats, sum, 0), Operation::reduce, Reason::malformed, null},
        {one.reduce({nullptr, some, 4}, floats, sum, 0), Operation::reduce, Reason::malformed, null},
    };
    for (std::size_t number = 0; number < rows.size(); ++number) {
        const Row& row = rows[number];
        EXPECT_TRUE(fails(row.work, {.operation = row.operation, .reason = row.reason, .text = row.text}))
            << "row " << number;
    }
}

TEST_F(OneRank, OperationsWithoutElementsAreDoneAtOnce) {
    Communicator& one = *communicator;
    for (const auto& work : {one.all_reduce(std::span<const Buffer>{}, ElementType::float32, Reduction::sum),
                             one.all_reduce(std::span<const Buffer>{}, FoldType::int8, FoldOperation::maximum),
                             one.all_reduce({nullptr, nullptr, 0}, ElementType::float32, Reduction::sum),
                             one.broadcast(nullptr, 0, 0), one.all_gather(nullptr, nullptr, Sizes{0}),
                             one.reduce_scatter(nullptr, nullptr, Sizes{0}, ElementType::float32, Reduction::sum),
                             one.reduce({nullptr, nullptr, 0}, ElementType::float32, Reduction::sum, 0)}) {
        ASSERT_TRUE(work) << to_string(work.error());
        EXPECT_TRUE((*work)->done());
    }
}

TEST_F(OneRank, KeysKeepTheirSizeAndTypeAndArePushedBeforeThePull) {
    Communicator& one = *communicator;
    const auto refused = [](const Result<void>& done, Operation operation, Reason reason, const std::string& text) {
        EXPECT_TRUE(fails(done, {.operation = operation, .reason = reason, .text = HasSubstr(text)}));
    };
    const auto push = [&](std::uint64_t key, std::size_t elements, ElementType type) {
        return one.push(key, values.data(), elements, type);
    };
    const auto pull = [&](std::uint64_t key, std::size_t elements, ElementType type) {
        return one.pull(key, values.data(), elements, type);
    };
    refused(push(7, 0, ElementType::float32), Operation::push, Reason::malformed, "no elements");
    refused(pull(7, 4, ElementType::float32), Operation::pull, Reason::malformed, "has not pushed key 7: push it");
    ASSERT_TRUE(push(7, 4, ElementType::float32));
    refused(push(7, 3, ElementType::float32), Operation::push, Reason::mismatched,
            "key 7 has 4 elements of type float32, but the push has 3 of type float32: keep both constant per key");
    refused(push(7, 4, ElementType::int32), Operation::push, Reason::mismatched, "but the push has 4 of type int32");
    refused(pull(7, 3, ElementType::float32), Operation::pull, Reason::mismatched, "pull the same number and type");
    refused(pull(7, 4, ElementType::int32), Operation::pull, Reason::mismatched,
            "key 7 has 4 elements of type float32");
    values.assign(4, 0.0F);
    ASSERT_TRUE(pull(7, 4, ElementType::float32));
    EXPECT_EQ(values, std::vector<float>(4, 1.0F));
}

TEST_F(OneRank, CallsAfterAnAbortAreClosedWithTheirOperation) {
    communicator->abort();
    const Error error = error_of(communicator->barrier());
    EXPECT_EQ(error.operation, Operation::barrier);
    EXPECT_EQ(error.reason, Reason::closed);
    EXPECT_FALSE(communicator->push(1, values.data(), 4, ElementType::float32) &&
                 communicator->pull(1, values.data(), 4, ElementType::float32));
}

TEST_F(OneRank, WakerOutlivesItsCommunicator) {
    const auto feed = communicator->feed();
    feed->fail({.operation = Operation::all_reduce, .reason = Reason::failed, .text = "the device was lost"});
    EXPECT_TRUE(says(error_of(communicator->barrier()), "the device was lost"));
    communicator.reset();
    feed->advance();
    feed->fail({});
}

// ---------------------------------------------------------------------------------------- Sums in memory, on channels

TEST(Communicator, EveryOperationOfRanksInOneMemory) {
    for (const auto scaling : {tensor::Scaling::fixed, tensor::Scaling::dynamic}) {
        comm::Options options = in_memory();
        options.scaling = scaling;
        Job(3, {""}, options).run([](Communicator& communicator) {
            EXPECT_TRUE(communicator.formation().on_host);
            work_through(communicator);
        });
    }
}

TEST(Communicator, EveryOperationOfRanksOnTwoChannels) {
    const auto node = start(small_switch());
    for (const auto scaling : {tensor::Scaling::fixed, tensor::Scaling::dynamic}) {
        comm::Options options = small_options();
        options.channels = 2;
        options.scaling = scaling;
        Job(3, {address_of(*node)}, options).run([](Communicator& communicator) {
            work_through(communicator);
            EXPECT_EQ(communicator.counters().size(), 4U) << "two, and two for all-gathers";
            EXPECT_FALSE(communicator.results_by_group());
        });
    }
}

// Two hosts of two ranks each, in any scaling and with narrow integers.
TEST(Communicator, SumsOfHostsThatShareTheNetwork) {
    const auto node = start(small_switch());
    for (const auto lanes : {tensor::LaneType::int32, tensor::LaneType::int16, tensor::LaneType::int8}) {
        Job job(4, {address_of(*node)}, in_memory());
        job.options().lane_type = lanes;
        job.options().scaling = tensor::Scaling::dynamic;
        const auto options_of = [&](std::uint32_t rank) {
            comm::Options options = job.options_of(rank);
            options.host_name = rank < 2 ? "a" : "b";
            return options;
        };
        run_with(job, options_of, [](Communicator& communicator) {
            EXPECT_EQ(communicator.formation().host_ranks, 2U);
            EXPECT_EQ(communicator.counters().size(), communicator.rank() % 2 == 0 ? 1U : 0U) << "one speaks";
            for (int round = 0; round < 3; ++round) {
                std::vector<float> values(several_windows, 0.25F);
                ASSERT_TRUE(succeeds(sum_in_place(communicator, values)));
                EXPECT_EQ(values, std::vector<float>(several_windows, 1.0F));
            }
        });
    }
}

// Without a switch, each host serves a part of the sums. The addresses of loopback stand for hosts.
void run_on_servers(std::uint32_t world, const std::function<void(Communicator&)>& body) {
    Job job(world, {""});
    const auto options_of = [&](std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        options.listen = "127.0.0." + std::to_string(2 + rank) + ":0";
        return options;
    };
    run_with(job, options_of, body);
}

TEST(Communicator, HostsServeTheSumsOfTheirChannels) {
    for (const std::uint32_t world : {2U, 3U, 5U}) {
        run_on_servers(world, [&](Communicator& communicator) {
            EXPECT_EQ(communicator.formation().channels, world);
            expect_sum(communicator, several_windows * 3, 1);
            work_through(communicator);
        });
    }
}

TEST(Communicator, EndOfAHostThatServesNamesItsRank) {
    run_on_servers(3, [](Communicator& communicator) {
        ASSERT_TRUE(succeeds(communicator.barrier()));
        if (communicator.rank() == 2) return communicator.abort();
        EXPECT_TRUE(says(error_of(communicator.barrier()), "rank 2"));
    });
}

}  // namespace
}  // namespace atp::test
