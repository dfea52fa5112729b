// SPDX-License-Identifier: Apache-2.0
#include "protocol/answer_queue.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace atp::protocol {
namespace {

constexpr ChannelConfig answers_channel{
    .job = 3, .token = 4, .channel = 5, .lanes = 2, .window_log2 = 2, .audit = true};

class Answers : public ::testing::Test {
  protected:
    // A record of fragment 9 in `state`.
    static FragmentRecord record_in(FragmentRecord::State state) {
        FragmentRecord record;
        record.seq = 9;
        record.state = state;
        record.index = 70;
        record.next_index = 71;
        record.scale = 33;
        return record;
    }

    Membership members = *Membership::racks(2, 3);
    AnswerQueue queue{answers_channel, members};
};

TEST_F(Answers, AnswersLeaveInOrderAndAFullQueueRefusesMore) {
    std::uint32_t pushed = 0;
    while (queue.push({.type = ATP_TYPE_ACK, .seq = pushed})) ++pushed;
    EXPECT_EQ(pushed, 4 * answers_channel.window() + 8 * members.units() + 64);
    for (std::uint32_t seq = 0; seq < pushed; ++seq) {
        ASSERT_FALSE(queue.empty());
        EXPECT_EQ(queue.front().seq, seq);
        queue.pop();
    }
    EXPECT_TRUE(queue.empty());
}

TEST_F(Answers, OfAReplacedOrCompleteFragmentAreOutdated) {
    const FragmentRecord gathering = record_in(FragmentRecord::State::gathering);
    const FragmentRecord complete = record_in(FragmentRecord::State::complete);
    EXPECT_TRUE(AnswerQueue::is_current({.type = ATP_TYPE_NACK, .seq = 9}, gathering));
    EXPECT_FALSE(AnswerQueue::is_current({.type = ATP_TYPE_NACK, .seq = 9}, complete));
    EXPECT_FALSE(AnswerQueue::is_current({.type = ATP_TYPE_NACK, .seq = 1}, gathering))
        << "fragment 9 has replaced fragment 1 in the record";
    EXPECT_TRUE(AnswerQueue::is_current({.type = ATP_TYPE_ACK, .seq = 9}, complete));
    EXPECT_FALSE(AnswerQueue::is_current({.type = ATP_TYPE_ACK, .seq = 9}, gathering));
}

TEST_F(Answers, AckDescribesTheResultOfItsRecord) {
    FragmentRecord record = record_in(FragmentRecord::State::complete);
    record.ecn = true;
    const atp_header header = queue.header_of({.type = ATP_TYPE_ACK, .seq = 9, .units = members.all_units()}, record);
    EXPECT_EQ(header.job, answers_channel.job);
    EXPECT_EQ(header.token, answers_channel.token);
    EXPECT_EQ(header.channel, answers_channel.channel);
    EXPECT_EQ(header.window_log2, answers_channel.window_log2);
    EXPECT_EQ(header.seq, 9U);
    EXPECT_EQ(header.index, 70U);
    EXPECT_EQ(header.argument, 71U) << "the index for the next fragment of the slot";
    EXPECT_EQ(header.scale, 33);
    EXPECT_EQ(header.lanes, ATP_FLOAT32_LANES);
    EXPECT_EQ(header.flags, ATP_FLAG_ECN | ATP_FLAG_AUDIT);
    EXPECT_EQ(header.worker, ATP_WORKER_ALL);
    EXPECT_EQ(header.bitmap1, 0x3U);
    EXPECT_EQ(header.mask1, 0x3U);
    record.plain = true;
    record.result_type = ATP_DTYPE_INT32;
    EXPECT_EQ(queue.header_of({.type = ATP_TYPE_ACK, .seq = 9}, record).lanes, ATP_INT32_LANES);
    EXPECT_NE(queue.header_of({.type = ATP_TYPE_ACK, .seq = 9}, record).flags & ATP_FLAG_PLAIN, 0);
}

TEST_F(Answers, NackAndFlushHaveTheirOwnTypeAndScale) {
    const FragmentRecord record = record_in(FragmentRecord::State::gathering);
    const atp_header nack = queue.header_of({.type = ATP_TYPE_NACK,
                                             .requested = ATP_DTYPE_INT32,
                                             .flags = ATP_FLAG_BYPASS,
                                             .worker = 4,
                                             .seq = 9,
                                             .members = 0x2,
                                             .units = 0x2},
                                            record);
    EXPECT_EQ(nack.lanes, ATP_DTYPE_INT32);
    EXPECT_EQ(nack.flags, ATP_FLAG_BYPASS);
    EXPECT_EQ(nack.worker, 4);
    EXPECT_EQ(nack.argument, 0U);
    EXPECT_EQ(nack.bitmap0, 0x2U);
    EXPECT_EQ(nack.mask0, 0x7U) << "mask of all members of unit 1";
    const atp_header flush =
        queue.header_of({.type = ATP_TYPE_FLUSH, .scale = 7, .hop = 1, .seq = 9, .units = 0x3}, record);
    EXPECT_EQ(flush.hop, 1);
    EXPECT_EQ(flush.scale, 7);
    EXPECT_EQ(flush.mask0, 0U) << "an answer to several units has no mask of members";
}

TEST_F(Answers, WaitReportsTheMismatchOfItsRecord) {
    FragmentRecord record = record_in(FragmentRecord::State::gathering);
    EXPECT_EQ(queue.header_of({.type = ATP_TYPE_WAIT, .seq = 9}, record).argument, 0U);
    record.mismatched = true;
    EXPECT_EQ(queue.header_of({.type = ATP_TYPE_WAIT, .seq = 9}, record).argument, ATP_WAIT_MISMATCHED);
}

}  // namespace
}  // namespace atp::protocol
