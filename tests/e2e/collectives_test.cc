// SPDX-License-Identifier: Apache-2.0
// All operations but a single all_reduce: groups, handles, broadcasts, barriers, push and pull.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "fabric.h"
#include "net/clock.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Buffer;
using comm::Reduction;
using numeric::ElementType;

// ------------------------------------------------------------------------------------------------------------- Groups

class Groups : public testing::TestWithParam<ElementType> {};

TEST_P(Groups, EachTensorOfAGroupIsSummed) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.channels = 2;
    Job(3, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        const std::size_t sizes[] = {3, 0, 1, 500, 64, 1, 2000, 17};
        std::vector<Bytes> tensors;
        std::vector<Buffer> buffers;
        for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
            tensors.push_back(tensor_of(GetParam(), communicator.rank(), sizes[i], i));
            buffers.push_back({tensors.back().data(), tensors.back().data(), sizes[i]});
        }
        if (!succeeds(communicator.all_reduce(buffers, GetParam(), Reduction::sum))) return;
        for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
            EXPECT_EQ(difference(sum_of_ranks(GetParam(), Reduction::sum, 3, sizes[i], i), tensors[i],
                                 numeric::bytes_of(GetParam())),
                      "")
                << "tensor " << i;
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Collectives, Groups, testing::ValuesIn(numeric::element_types),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST(Collectives, SmallTensorsOfAGroupSharePackets) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) {
        constexpr std::uint32_t tensors = 500;
        std::vector<float> values(tensors * 3, static_cast<float>(communicator.rank() + 1));
        std::vector<Buffer> buffers;
        for (std::uint32_t i = 0; i < tensors; ++i) buffers.push_back({&values[i * 3], &values[i * 3], 3});
        if (!succeeds(communicator.all_reduce(buffers, ElementType::float32, Reduction::sum))) return;
        EXPECT_EQ(values, std::vector<float>(tensors * 3, 3.0F));
        EXPECT_TRUE(eventually([&] {
            return counters_of(communicator).sent == (tensors * 3 + small_lanes - 1) / small_lanes;
        })) << counters_of(communicator).sent
            << " fragments";
    });
}

// ------------------------------------------------------------------------------------------------------------ Handles

TEST(Collectives, MoreOperationsThanTheQueueHoldsEndInOrder) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) {
        // More than a worker's queue holds.
        constexpr std::uint32_t operations = 700;
        std::vector<Bytes> tensors;
        std::vector<comm::Handle> works;
        for (std::uint32_t i = 0; i < operations; ++i) {
            tensors.push_back(tensor_of(ElementType::float32, communicator.rank(), 1 + i % 200, i));
        }
        for (std::uint32_t i = 0; i < operations; ++i) {
            auto work = communicator.all_reduce({tensors[i].data(), tensors[i].data(), 1 + i % 200},
                                                ElementType::float32, Reduction::sum);
            ASSERT_TRUE(work);
            works.push_back(*std::move(work));
        }
        ASSERT_TRUE(succeeds(works.back()->wait()));
        for (std::uint32_t i = 0; i < operations; ++i) {
            EXPECT_TRUE(works[i]->done());
            EXPECT_EQ(difference(sum_of_ranks(ElementType::float32, Reduction::sum, 2, 1 + i % 200, i), tensors[i], 4),
                      "");
        }
    });
}

TEST(Collectives, HandleIsDoneWhenItsOperationEnds) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    std::vector<float> first(1000, 1);
    std::vector<float> second(1000, 2);
    auto work = sum_in_place(*ranks[0], first);
    ASSERT_TRUE(work);
    std::atomic<int> calls{0};
    (*work)->on_done([&] { ++calls; });
    EXPECT_FALSE((*work)->done()) << "the other rank has not begun";
    EXPECT_EQ((*work)->wait_until(net::now() + std::chrono::milliseconds(50)), std::nullopt);
    EXPECT_EQ(calls, 0);
    ASSERT_TRUE(succeeds(sum_in_place(*ranks[1], second)));
    const auto outcome = (*work)->wait_until(net::now() + longest_wait);
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(*outcome);
    EXPECT_TRUE((*work)->done());
    EXPECT_EQ(first, std::vector<float>(1000, 3));
    // A callback that is set after the end runs at once.
    (*work)->on_done([&] { calls += 10; });
    for (int i = 0; i < 1000 && calls != 11; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(calls, 11);
}

TEST(Collectives, CallbackMayStartTheNextOperation) {
    const auto node = start(small_switch());
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) {
        float value = 1;
        std::atomic<bool> over{false};
        comm::Handle next;
        auto work = communicator.all_reduce({&value, &value, 1}, ElementType::float32, Reduction::sum);
        ASSERT_TRUE(work);
        (*work)->on_done([&] {
            if (auto begun = communicator.all_reduce({&value, &value, 1}, ElementType::float32, Reduction::sum)) {
                next = *std::move(begun);
            }
            over = true;
        });
        for (int i = 0; i < 10'000 && !over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_TRUE(over);
        ASSERT_NE(next, nullptr);
        EXPECT_TRUE(succeeds(next->wait()));
        EXPECT_EQ(value, 4.0F);
    });
}

// ------------------------------------------------------------------------------------------------ Broadcast, barrier

TEST(Collectives, BroadcastDeliversTheBytesOfAnyRoot) {
    const auto node = start(small_switch());
    Job(3, {address_of(*node)}).run([](comm::Communicator& communicator) {
        for (std::uint32_t root = 0; root < 3; ++root) {
            for (const std::size_t bytes : {std::size_t{1}, std::size_t{3}, std::size_t{255}, std::size_t{40'001}}) {
                Bytes expected(bytes);
                for (std::size_t i = 0; i < bytes; ++i) expected[i] = static_cast<std::byte>(i * 7 + root + bytes);
                // One byte off, so that nothing is aligned; the bytes around the buffer must not change.
                Bytes memory(bytes + 9, std::byte{0xEE});
                if (communicator.rank() == root) std::ranges::copy(expected, memory.begin() + 1);
                if (!succeeds(communicator.broadcast(memory.data() + 1, bytes, root))) return;
                EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin() + 1))
                    << bytes << " bytes of root " << root << " at rank " << communicator.rank();
                EXPECT_EQ(memory[0], std::byte{0xEE});
                EXPECT_TRUE(std::all_of(memory.begin() + 1 + static_cast<std::ptrdiff_t>(bytes), memory.end(),
                                        [](std::byte byte) { return byte == std::byte{0xEE}; }));
            }
        }
    });
}

TEST(Collectives, BarrierReturnsOnlyAfterEveryRankCalledIt) {
    const auto node = start(small_switch());
    std::atomic<std::uint32_t> arrived{0};
    Job(4, {address_of(*node)}).run([&](comm::Communicator& communicator) {
        for (std::uint32_t round = 1; round <= 20; ++round) {
            if (communicator.rank() == round % 4) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            ++arrived;
            if (!succeeds(communicator.barrier())) return;
            EXPECT_GE(arrived, 4 * round);
        }
    });
}

// ------------------------------------------------------------------------------------------------------- Push and pull

TEST(Collectives, PullReturnsTheSumOfTheLastPush) {
    const auto node = start(small_switch());
    Job(3, {address_of(*node)}).run([](comm::Communicator& communicator) {
        constexpr std::uint32_t keys = 5;
        constexpr std::size_t elements = 700;
        for (std::uint32_t round = 0; round < 4; ++round) {
            const auto seed = [&](std::uint32_t key) { return round * keys + key; };
            for (std::uint32_t key = 0; key < keys; ++key) {
                const Bytes values = tensor_of(ElementType::float32, communicator.rank(), elements, seed(key));
                ASSERT_TRUE(succeeds(communicator.push(key, values.data(), elements, ElementType::float32)));
            }
            for (std::uint32_t key = keys; key-- > 0;) {
                Bytes sum(elements * 4);
                ASSERT_TRUE(succeeds(communicator.pull(key, sum.data(), elements, ElementType::float32)));
                EXPECT_EQ(
                    difference(sum_of_ranks(ElementType::float32, Reduction::sum, 3, elements, seed(key)), sum, 4), "")
                    << "key " << key << " in round " << round;
            }
        }
    });
}

TEST(Collectives, PushThatWaitsForItsRoundBlocksNoOtherKey) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    const float one = 1;
    const auto push = [&](std::uint32_t rank, std::uint64_t key) {
        return succeeds(ranks[rank]->push(key, &one, 1, ElementType::float32));
    };
    ASSERT_TRUE(push(0, 1));
    std::jthread again([&] { push(0, 1); });  // waits for rank 1, which waits for the next push
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(push(0, 2));
    for (const std::uint64_t key : {1U, 2U, 1U}) ASSERT_TRUE(push(1, key));
    again.join();
    for (const std::uint64_t key : {1U, 2U}) {
        float sum = 0;
        ASSERT_TRUE(succeeds(ranks[0]->pull(key, &sum, 1, ElementType::float32)));
        EXPECT_EQ(sum, 2);
    }
}

TEST(Collectives, CommunicatorWithAPushInFlightCanBeDestroyed) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    // The other rank never pushes, so the push is unfinished when the communicator is destroyed.
    const std::vector<float> values(100'000, 1);
    ASSERT_TRUE(succeeds(ranks[0]->push(1, values.data(), values.size(), ElementType::float32)));
    ranks[0].reset();
}

}  // namespace
}  // namespace atp::test
