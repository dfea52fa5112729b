// SPDX-License-Identifier: Apache-2.0
#include "protocol/fragment_record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>

namespace atp::protocol {
namespace {

using std::chrono::milliseconds;

constexpr ChannelConfig record_channel{.lanes = 5, .window_log2 = 2, .audit = true};
constexpr unsigned record_units = 3;

TEST(FragmentRecords, RecordIsReusedAfterTwoWindows) {
    FragmentRecords records(record_channel, record_units);
    const FragmentRecord* first = &records.open(3, 17);
    EXPECT_EQ(first->seq, 3U);
    EXPECT_EQ(first->index, 17U);
    EXPECT_EQ(first->state, FragmentRecord::State::gathering);
    for (std::uint32_t seq = 4; seq < 3 + 2 * record_channel.window(); ++seq) {
        EXPECT_NE(&records.open(seq, 0), first) << seq;
    }
    EXPECT_EQ(records.at(3).seq, 3U);
    EXPECT_EQ(&records.open(3 + 2 * record_channel.window(), 0), first);
}

TEST(FragmentRecords, EachRecordHasItsOwnMasksAndLanes) {
    FragmentRecords records(record_channel, record_units);
    const std::size_t elements = std::size_t{4} * record_channel.payload_lanes();  // int8 has four in a word
    std::set<const void*> places;
    for (std::uint32_t seq = 0; seq < 2 * record_channel.window(); ++seq) {
        const FragmentRecord& record = records.open(seq, 0);
        ASSERT_TRUE(records.sums(record).empty());
        ASSERT_TRUE(records.hold_floats(record, elements, false));
        ASSERT_EQ(records.included(record).size(), record_units);
        ASSERT_EQ(records.sums(record).size(), elements);
        ASSERT_EQ(records.exact(record).size(), elements);
        ASSERT_EQ(records.result(record).size(), elements * ATP_LANE_BYTES);
        for (unsigned unit = 0; unit < record_units; ++unit) {
            places.insert(
                {&records.included(record)[unit], &records.sent(record)[unit], &records.notified(record)[unit]});
        }
        for (std::size_t lane = 0; lane < elements; ++lane) {
            places.insert({&records.sums(record)[lane], &records.exact(record)[lane]});
            places.insert(&records.result(record)[lane * ATP_LANE_BYTES]);
        }
    }
    EXPECT_EQ(places.size(), 2 * record_channel.window() * (3 * record_units + 3 * elements));
}

TEST(FragmentRecords, OpenClearsTheMasksOfTheEarlierFragment) {
    FragmentRecords records(record_channel, record_units);
    FragmentRecord& record = records.open(0, 0);
    record.count = 2;
    record.mismatched = true;
    records.included(record)[1] = records.sent(record)[2] = records.notified(record)[0] = 0xff;
    const FragmentRecord& next = records.open(2 * record_channel.window(), 0);
    EXPECT_EQ(next.count, 0U);
    EXPECT_FALSE(next.mismatched);
    for (unsigned unit = 0; unit < record_units; ++unit) {
        EXPECT_EQ(records.included(next)[unit] | records.sent(next)[unit] | records.notified(next)[unit], 0U) << unit;
    }
}

TEST(FragmentRecords, SumsLastUntilTheyAreDroppedOrReplaced) {
    MemoryBudget budget(1 << 20);
    FragmentRecords records(record_channel, record_units, &budget);
    FragmentRecord& record = records.open(0, 0);
    ASSERT_TRUE(records.hold_sums(record, 3, false));
    EXPECT_EQ(records.sums(record).size(), 3U);
    const std::uint64_t integers = budget.used();
    ASSERT_TRUE(records.hold_sums(record, 2, false)) << "a smaller one needs nothing";
    EXPECT_EQ(records.sums(record).size(), 2U);
    EXPECT_EQ(budget.used(), integers);
    ASSERT_TRUE(records.hold_floats(record, 4, false));
    EXPECT_EQ(records.exact(record)[3].sum[0], 0U);
    EXPECT_TRUE(records.floats_in(record, record_units - 1, ATP_BITMAP_BITS - 1).empty());
    EXPECT_GT(budget.used(), integers);
    records.open(2 * record_channel.window(), 0);
    EXPECT_TRUE(records.sums(record).empty());
    EXPECT_EQ(budget.used(), 0U);
    ASSERT_TRUE(records.hold_sums(record, 4, true));
    EXPECT_EQ(budget.used(), 0U) << "the first fragments in progress have room that is reserved";
}

TEST(FragmentRecords, MemberIsNotifiedAtMostOncePerInterval) {
    FragmentRecords records(record_channel, record_units);
    FragmentRecord& record = records.open(0, 0);
    const Time now{std::chrono::seconds(1)};
    EXPECT_EQ(records.not_yet_notified(record, 1, 0x3, now, milliseconds(2)), 0x3U);
    EXPECT_EQ(records.not_yet_notified(record, 1, 0x7, now + milliseconds(1), milliseconds(2)), 0x4U);
    EXPECT_EQ(records.not_yet_notified(record, 2, 0x1, now + milliseconds(1), milliseconds(2)), 0x1U);
    EXPECT_EQ(records.not_yet_notified(record, 1, 0x7, now + milliseconds(1), milliseconds(2)), 0U);
    EXPECT_EQ(records.not_yet_notified(record, 1, 0x5, now + milliseconds(2), milliseconds(2)), 0x5U)
        << "a new interval has begun";
    EXPECT_EQ(records.not_yet_notified(record, 1, 0x7, now + milliseconds(3), milliseconds(2)), 0x2U);
}

TEST(FragmentRecords, ResultHasAsManyPacketsAsItsWordsNeed) {
    FragmentRecords records(record_channel, record_units);
    FragmentRecord& record = records.open(0, 0);
    record.elements = static_cast<std::uint32_t>(records.payload());
    EXPECT_EQ(records.result_packets(record), 1U);
    EXPECT_EQ(record.lanes_of_ack(), ATP_FLOAT32_LANES);
    record.elements = static_cast<std::uint32_t>(2 * records.payload());
    record.form = ATP_DTYPE_INT16;
    EXPECT_EQ(records.result_packets(record), 2U);
    record.result_type = ATP_DTYPE_INT16;
    EXPECT_EQ(records.result_words(record), records.payload());
    EXPECT_EQ(records.result_packets(record), 1U);
    EXPECT_EQ(record.lanes_of_ack(), ATP_INT16_LANES);
    record.form = ATP_DTYPE_INT8;
    record.result_type = ATP_DTYPE_FLOAT32;
    record.elements = static_cast<std::uint32_t>(3 * records.payload() + 1);
    EXPECT_EQ(records.result_packets(record), 4U);
    record.form = record.result_type = ATP_DTYPE_INT32;
    record.plain = true;
    EXPECT_EQ(record.lanes_of_ack(), ATP_INT32_LANES);
}

TEST(FragmentRecords, MemberIsCompleteWithAllPacketsOfAllRanksUpToTheLast) {
    FloatsIn one;
    EXPECT_FALSE(one.complete());
    one.ranks = {0x2, 0x2};
    EXPECT_FALSE(one.complete()) << "no packet is named as the last";
    one.ranks = {0x2, 0, 0x3};
    EXPECT_FALSE(one.complete()) << "packet 1 is missing";
    one.ranks = {0x2, 0x2, 0x3};
    EXPECT_TRUE(one.complete());
    FloatsIn two;
    two.ranks = {0x6, 0x5};
    EXPECT_FALSE(two.complete()) << "rank 1 lacks packet 1";
    two.ranks = {0x4, 0x7};
    EXPECT_FALSE(two.complete()) << "rank 1 lacks packet 0";
    two.ranks = {0x6, 0x7};
    EXPECT_TRUE(two.complete());
}

}  // namespace
}  // namespace atp::protocol
