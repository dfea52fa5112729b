// SPDX-License-Identifier: Apache-2.0
#include "control/pace_meter.h"

#include <gtest/gtest.h>

#include "support/byte_archive.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration interval = seconds(3);
constexpr Time start{seconds(100)};

// A switch with a clock.
struct Counted {
    // A fragment that `child` completes, `alone` after the packet before it.
    void complete(unsigned child, Duration alone, int count = 1) {
        for (int i = 0; i < count; ++i) pace.handle_completed(1U << child, alone, now);
    }
    void pass(Duration duration) { now += duration; }
    void end_interval() {
        now = std::max(now, start + interval);
        pace.handle_time(now, interval);
    }

    PaceMeter pace;
    Time now = start;
};

TEST(PaceMeter, ChildForWhichTheOthersWaitLongestIsNamedWithItsShares) {
    Counted counted;
    for (int step = 0; step < 10; ++step) {
        counted.pass(milliseconds(200));
        counted.complete(2, milliseconds(90));
        counted.pass(milliseconds(50));
        counted.complete(0, milliseconds(10));
        counted.complete(0, milliseconds(10), 2);
    }
    counted.end_interval();
    EXPECT_FALSE(counted.pace.last()) << "the interval began with the first fragment";
    counted.pass(milliseconds(200));
    counted.end_interval();
    ASSERT_TRUE(counted.pace.last());
    EXPECT_EQ(counted.pace.last()->child, 2);
    EXPECT_EQ(counted.pace.last()->share_percent, 90);
    EXPECT_EQ(counted.pace.last()->last_percent, 25);
    EXPECT_EQ(counted.pace.last()->waited_permille, 300);
}

TEST(PaceMeter, FragmentsThatWaitAtTheSameTimeCountThisTimeOnce) {
    Counted counted;
    counted.complete(1, {});
    counted.pass(milliseconds(300));
    counted.complete(1, milliseconds(250), 16);
    counted.end_interval();
    ASSERT_TRUE(counted.pace.last());
    EXPECT_EQ(counted.pace.last()->waited_permille, 1000 * 250 / 3000);
}

TEST(PaceMeter, TimeBeforeTheFragmentCompletedBeforeIsNoWaitForThisChild) {
    Counted counted;
    counted.complete(1, {});
    counted.pass(milliseconds(300));
    counted.complete(1, seconds(2), 8);
    counted.end_interval();
    ASSERT_TRUE(counted.pace.last());
    EXPECT_EQ(counted.pace.last()->waited_permille, 100);
}

TEST(PaceMeter, FewFragmentsOrNoWaitNameNoMember) {
    Counted counted;
    counted.complete(1, seconds(1), 7);
    counted.end_interval();
    EXPECT_FALSE(counted.pace.last());
    Counted even;
    even.complete(1, {}, 100);
    even.end_interval();
    EXPECT_FALSE(even.pace.last());
}

// Equal members whose packets come in bursts: the burst of one is often the last.
TEST(PaceMeter, ShortLatenessIsNoWait) {
    Counted counted;
    for (int i = 0; i < 3000; ++i) {
        counted.pass(milliseconds(1));
        counted.complete(1, std::chrono::microseconds(999));
    }
    counted.end_interval();
    EXPECT_FALSE(counted.pace.last());
}

TEST(PaceMeter, PacketOfSeveralChildrenNamesNone) {
    Counted counted;
    for (int i = 0; i < 20; ++i) counted.pace.handle_completed(0x6, milliseconds(100), counted.now);
    counted.end_interval();
    EXPECT_FALSE(counted.pace.last());
}

TEST(PaceMeter, IntervalWithoutFragmentsForgetsTheOneBefore) {
    Counted counted;
    counted.complete(1, seconds(1), 8);
    counted.end_interval();
    ASSERT_TRUE(counted.pace.last());
    counted.pass(interval - milliseconds(1));
    counted.pace.handle_time(counted.now, interval);
    EXPECT_TRUE(counted.pace.last());
    counted.pass(milliseconds(1));
    counted.pace.handle_time(counted.now, interval);
    EXPECT_FALSE(counted.pace.last());
}

TEST(PaceMeter, EachIntervalCountsItsOwnFragments) {
    Counted counted;
    counted.complete(1, milliseconds(1), 8);
    counted.end_interval();
    counted.complete(0, milliseconds(1), 8);
    counted.pass(interval);
    counted.pace.handle_time(counted.now, interval);
    ASSERT_TRUE(counted.pace.last());
    EXPECT_EQ(counted.pace.last()->child, 0);
    EXPECT_EQ(counted.pace.last()->share_percent, 100);
}

TEST(PaceMeter, MemberIsSlowIfTheOthersWaitLongForItAndHardlyForAnother) {
    EXPECT_TRUE(is_slow({.share_percent = 75, .waited_permille = 250}));
    EXPECT_FALSE(is_slow({.share_percent = 74, .waited_permille = 900}));
    EXPECT_FALSE(is_slow({.share_percent = 100, .waited_permille = 249}));
    EXPECT_FALSE(is_slow({}));
}

TEST(PaceMeter, MembersAreTheSameOnlyInOneUnit) {
    EXPECT_TRUE(
        names_same({.share_percent = 80, .unit = 1, .member = 2}, {.share_percent = 99, .unit = 1, .member = 2}));
    EXPECT_FALSE(names_same({.unit = 1, .member = 2}, {.unit = 2, .member = 2}));
    EXPECT_FALSE(names_same({.unit = 1, .member = 0}, {.unit = 1, .member = 0, .whole_unit = true}));
}

// During an interval and after one.
TEST(PaceMeter, RestoredPaceContinuesLikeTheOriginal) {
    Counted counted;
    for (int round = 0; round < 2; ++round) {
        counted.complete(1, milliseconds(5), 9);
        Counted restored;
        restored.now = counted.now;
        ASSERT_TRUE(testing::copy_state(counted.pace, restored.pace));
        for (Counted* each : {&counted, &restored}) {
            each->pass(milliseconds(700));
            each->complete(3, milliseconds(400));
            each->pass(interval);
            each->pace.handle_time(each->now, interval);
        }
        ASSERT_TRUE(counted.pace.last() && restored.pace.last());
        EXPECT_EQ(restored.pace.last()->child, counted.pace.last()->child);
        EXPECT_EQ(restored.pace.last()->share_percent, counted.pace.last()->share_percent);
        EXPECT_EQ(restored.pace.last()->last_percent, counted.pace.last()->last_percent);
        EXPECT_EQ(restored.pace.last()->waited_permille, counted.pace.last()->waited_permille);
    }
}

}  // namespace
}  // namespace atp::control
