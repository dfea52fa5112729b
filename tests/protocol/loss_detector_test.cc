// SPDX-License-Identifier: Apache-2.0
#include "protocol/loss_detector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace atp::protocol {
namespace {

using Sequences = std::vector<std::uint32_t>;

Sequences overtaken_in(LossDetector& losses) {
    Sequences list;
    while (const auto overtaken = losses.poll()) list.push_back(overtaken->seq);
    return list;
}

TEST(LossDetector, ThreeDistinctNewerAcksOvertakeAFragmentOnce) {
    LossDetector losses(0, 8);
    losses.note_ack(1);
    losses.note_ack(2);
    losses.note_ack(2);
    EXPECT_EQ(overtaken_in(losses), Sequences{});
    losses.note_ack(3);
    EXPECT_EQ(overtaken_in(losses), (Sequences{0}));
    EXPECT_EQ(overtaken_in(losses), Sequences{});
}

TEST(LossDetector, ThreeNewerAcksInAnyOrderOvertakeAllOlderFragments) {
    LossDetector losses(0, 8);
    for (const std::uint32_t seq : {6U, 4U, 5U}) losses.note_ack(seq);
    EXPECT_EQ(overtaken_in(losses), (Sequences{0, 1, 2, 3}));
}

TEST(LossDetector, WorksAcrossTheWrapOfSequenceNumbers) {
    LossDetector losses(0xfffffffeU, 8);
    for (const std::uint32_t seq : {0xffffffffU, 0U, 1U}) losses.note_ack(seq);
    EXPECT_EQ(overtaken_in(losses), (Sequences{0xfffffffeU}));
}

TEST(LossDetector, SkipsFragmentsThatHaveTheirAcks) {
    LossDetector losses(0, 8);
    for (const std::uint32_t seq : {0U, 1U, 2U}) losses.note_ack(seq);
    losses.advance(3);
    for (const std::uint32_t seq : {4U, 5U, 6U}) losses.note_ack(seq);
    EXPECT_EQ(overtaken_in(losses), (Sequences{3}));
}

TEST(LossDetector, DetectorWorksAfterMoreThanTwoToTheThirtyOneFragments) {
    LossDetector losses(0, 8);
    const std::uint32_t far = 0x90000000U;
    for (std::uint32_t expected = 0; expected < far; expected += 0x10000000U) losses.advance(expected);
    losses.advance(far);
    for (std::uint32_t step = 0x10000000U; step <= far; step += 0x10000000U) losses.note_ack(step);
    for (const std::uint32_t seq : {far + 1, far + 2, far + 3}) losses.note_ack(seq);
    EXPECT_EQ(overtaken_in(losses), (Sequences{far}));
}

TEST(LossDetector, ResendIsOvertakenByAcksOfFragmentsFirstSentAfterIt) {
    LossDetector losses(0, 8);
    for (const std::uint32_t seq : {1U, 2U, 3U}) losses.note_ack(seq);
    ASSERT_EQ(overtaken_in(losses), (Sequences{0}));
    losses.note_resend(0, 4);
    for (const std::uint32_t seq : {4U, 5U}) losses.note_ack(seq);
    EXPECT_EQ(overtaken_in(losses), (Sequences{1, 2}))
        << "two ACKs do not overtake the resend of 0; the caller skips 1 and 2, which have ACKs";
    losses.note_ack(6);
    EXPECT_EQ(overtaken_in(losses), (Sequences{3, 0}));
}

TEST(LossDetector, AfterClearAResendCountsAsAFirstSending) {
    LossDetector losses(0, 8);
    losses.note_resend(0, 1);
    losses.clear();
    for (const std::uint32_t seq : {1U, 2U, 3U}) losses.note_ack(seq);
    EXPECT_EQ(overtaken_in(losses), (Sequences{0})) << "fragment 0 is overtaken as if it had not been resent";
}

TEST(LossDetector, ResendsBeyondTheCapacityAreNotOvertaken) {
    LossDetector losses(10, 2);
    for (const std::uint32_t seq : {10U, 11U, 12U}) losses.note_resend(seq, 20);
    losses.advance(20);
    for (const std::uint32_t seq : {20U, 21U, 22U}) losses.note_ack(seq);
    EXPECT_EQ(overtaken_in(losses), (Sequences{10, 11}));
}

// Acknowledged fragments of which the detector is not told, as those with an owner, make no old mark newer.
TEST(LossDetector, FragmentsThatItIsNotToldOfOvertakeNothing) {
    LossDetector losses(0, 4);
    for (std::uint64_t expected = 0; expected < (std::uint64_t{1} << 33U); expected += 1U << 20U) {
        losses.advance(static_cast<std::uint32_t>(expected));
        ASSERT_FALSE(losses.poll().has_value()) << expected;
    }
}

}  // namespace
}  // namespace atp::protocol
