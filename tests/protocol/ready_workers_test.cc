// SPDX-License-Identifier: Apache-2.0
#include "protocol/ready_workers.h"

#include <gtest/gtest.h>

#include "protocol/ready_notice.h"

namespace atp::protocol {
namespace {

TEST(ReadyWorkers, AllTakeAFragmentWhenTheLastOneSaysSo) {
    ReadyWorkers workers(3, 10);
    EXPECT_EQ(workers.note(0, 14), 10U);
    EXPECT_EQ(workers.note(1, 12), 10U);
    EXPECT_FALSE(workers.all_take(10));
    EXPECT_EQ(workers.note(2, 13), 10U);
    EXPECT_TRUE(workers.all_take(11));
    EXPECT_FALSE(workers.all_take(12));
    EXPECT_TRUE(workers.takes(0, 13));
    EXPECT_FALSE(workers.takes(1, 12));
}

TEST(ReadyWorkers, AnOlderReadyChangesNothing) {
    ReadyWorkers workers(1, 0);
    EXPECT_EQ(workers.note(0, 5), 0U);
    EXPECT_EQ(workers.note(0, 3), 5U);
    EXPECT_EQ(workers.note(0, 5), 5U);
    EXPECT_TRUE(workers.all_take(4));
}

TEST(ReadyWorkers, MarksFollowTheBaseAcrossTheWrap) {
    ReadyWorkers workers(2, 0xfffffff0U);
    workers.advance(5);
    EXPECT_FALSE(workers.all_take(5));
    EXPECT_EQ(workers.note(0, 8), 5U);
    EXPECT_EQ(workers.note(1, 7), 5U);
    EXPECT_TRUE(workers.all_take(6));
    for (std::uint32_t base = 7; base < 0xf0000000U; base += 0x10000000U) workers.advance(base);
    EXPECT_FALSE(workers.takes(0, 0xf0000001U));
}

TEST(ReadyNotice, IsDueOnceForAQuarterOfTheWindow) {
    ReadyNotice notice(0);
    EXPECT_FALSE(notice.is_due(0, 16, true));
    for (std::uint32_t seq = 0; seq < 4; ++seq) {
        EXPECT_FALSE(notice.is_due(seq, 16, false));
        notice.note_started(seq);
    }
    EXPECT_TRUE(notice.is_due(4, 16, false));
    notice.note_sent(4);
    EXPECT_FALSE(notice.is_due(4, 16, true));
}

TEST(ReadyNotice, IsDueAtTheEndAndAfterAnExpiry) {
    ReadyNotice notice(0);
    notice.note_started(0);
    EXPECT_FALSE(notice.is_due(1, 16, false));
    EXPECT_TRUE(notice.is_due(1, 16, true));
    notice.note_sent(1);
    EXPECT_EQ(notice.repeats(), 0);
    notice.repeat(0);
    EXPECT_TRUE(notice.is_due(1, 16, true));
    EXPECT_EQ(notice.repeats(), 1);
    notice.advance(1);
    EXPECT_FALSE(notice.is_due(1, 16, true));
    notice.note_sent(1);
    EXPECT_EQ(notice.repeats(), 0);
    notice.repeat(1);
    EXPECT_EQ(notice.repeats(), 0) << "no fragment in flight had a READY";
}

TEST(ReadyNotice, NoReadyPassesAFragmentAtWhichItStops) {
    ReadyNotice notice(0);
    for (std::uint32_t seq = 0; seq < 3; ++seq) notice.note_started(seq);
    notice.stop_at(3);
    notice.note_started(4);
    EXPECT_TRUE(notice.is_due(5, 16, true));
    EXPECT_EQ(notice.end(5), 3U);
    notice.note_sent(3);
    EXPECT_FALSE(notice.is_due(9, 16, true));
    EXPECT_TRUE(notice.stopped_at(3));
    notice.go_on();
    EXPECT_TRUE(notice.is_due(9, 16, true));
    EXPECT_EQ(notice.end(9), 9U);
}

}  // namespace
}  // namespace atp::protocol
