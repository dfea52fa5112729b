// SPDX-License-Identifier: Apache-2.0
#include "protocol/operation_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "support/integer_tensor.h"

namespace atp::protocol {
namespace {

constexpr std::uint32_t stream_start = 0xfffffffeU;  // sequence numbers wrap within the first operation
constexpr Time submitted{std::chrono::seconds(1)};
constexpr Time ms_after(int ms) { return submitted + std::chrono::milliseconds(ms); }

class Operations : public ::testing::Test {
  protected:
    std::array<std::int32_t, 4> numbers{};
    testing::IntegerTensor tensor{numbers, numbers};
    OperationQueue queue{3, stream_start};

    // Of fragments with one element each.
    static FragmentCut cut(std::uint64_t fragments) { return {fragments, 1, {}}; }
};

TEST_F(Operations, HaveConsecutiveSequenceNumbers) {
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.fragments(), 0U);
    EXPECT_EQ(queue.push(tensor, cut(5), submitted, never), 0U);
    EXPECT_EQ(queue.push(tensor, cut(1), ms_after(1), never), 1U);
    EXPECT_EQ(queue[0].first_seq, stream_start);
    EXPECT_EQ(queue[1].first_seq, 3U);
    EXPECT_EQ(queue[1].tensor, &tensor);
    EXPECT_EQ(queue[1].submitted_at, ms_after(1));
    EXPECT_EQ(queue.end_seq(), 4U);
    EXPECT_EQ(queue.fragments(), 6U);
    EXPECT_EQ(queue.first(), 0U);
    EXPECT_EQ(queue.end(), 2U);
}

TEST_F(Operations, AreRefusedWhileTheQueueIsFull) {
    for (std::uint64_t number = 0; number < 3; ++number)
        EXPECT_EQ(queue.push(tensor, cut(1), submitted, never), number);
    EXPECT_EQ(queue.push(tensor, cut(1), submitted, ms_after(1)), std::nullopt);
    EXPECT_EQ(queue.end_seq(), stream_start + 3) << "a refused operation gets no sequence number";
    EXPECT_EQ(queue.deadline(), never);
    EXPECT_EQ(queue.pop(), 0U);
    EXPECT_EQ(queue.push(tensor, cut(2), submitted, never), 3U);
    EXPECT_EQ(queue[3].fragments, 2U);
    EXPECT_EQ(queue[1].fragments, 1U) << "operation 1 keeps its own entry";
}

TEST_F(Operations, AreFoundBySequenceNumber) {
    (void)queue.push(tensor, cut(5), submitted, never);
    (void)queue.push(tensor, cut(1), submitted, never);
    (void)queue.push(tensor, cut(2), submitted, never);
    const std::array<std::uint64_t, 8> owners{0, 0, 0, 0, 0, 1, 2, 2};
    for (std::uint32_t i = 0; i < owners.size(); ++i) EXPECT_EQ(queue.find(stream_start + i), owners[i]) << i;
    (void)queue.pop();
    for (std::uint32_t i = 5; i < owners.size(); ++i) EXPECT_EQ(queue.find(stream_start + i), owners[i]) << i;
}

TEST_F(Operations, CountTheirMissingFragments) {
    (void)queue.push(tensor, cut(2), submitted, never);
    EXPECT_EQ(queue.complete_fragment(0), 1U);
    EXPECT_EQ(queue[0].missing, 1U);
    EXPECT_EQ(queue.complete_fragment(0), 0U);
    EXPECT_EQ(queue.pop(), 0U);
    EXPECT_TRUE(queue.empty());
}

TEST_F(Operations, DeadlineIsTheEarliestOfIncompleteOperations) {
    EXPECT_EQ(queue.deadline(), never);
    (void)queue.push(tensor, cut(1), submitted, ms_after(20));
    (void)queue.push(tensor, cut(2), submitted, ms_after(10));
    (void)queue.push(tensor, cut(1), submitted, ms_after(30));
    EXPECT_EQ(queue.deadline(), ms_after(10));
    (void)queue.complete_fragment(1);
    EXPECT_EQ(queue.deadline(), ms_after(10)) << "operation 1 still lacks a fragment";
    (void)queue.complete_fragment(1);
    EXPECT_EQ(queue.deadline(), ms_after(20));
    (void)queue.complete_fragment(2);
    EXPECT_EQ(queue.deadline(), ms_after(20))
        << "operation 2, which had a later deadline, does not change the earliest one";
    (void)queue.complete_fragment(0);
    EXPECT_EQ(queue.deadline(), never);
}

}  // namespace
}  // namespace atp::protocol
