// SPDX-License-Identifier: Apache-2.0
#include "protocol/sequence.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "base/ring.h"
#include "protocol/aggregator_index.h"
#include "protocol/audit.h"

namespace atp::protocol {
namespace {

// A step below 2^30: two of them together are less than half of the sequence space.
std::uint32_t small_step() { return static_cast<std::uint32_t>(*rc::gen::inRange<std::int64_t>(0, 1LL << 30U)); }

RC_GTEST_PROP(Sequence, DistanceReversesAnAddition, (std::uint32_t from)) {
    const auto step = static_cast<std::int32_t>(*rc::gen::arbitrary<std::int32_t>());
    RC_PRE(step != std::numeric_limits<std::int32_t>::min());  // numbers exactly half the space apart have no order
    RC_ASSERT(distance(from, from + static_cast<std::uint32_t>(step)) == step);
}

RC_GTEST_PROP(Sequence, DistanceInTheOtherDirectionHasTheOtherSign, (std::uint32_t a, std::uint32_t b)) {
    RC_PRE(a - b != 0x80000000U);
    RC_ASSERT(distance(a, b) == -distance(b, a));
}

RC_GTEST_PROP(Sequence, BeforeIsAStrictOrderAcrossTheWrap, (std::uint32_t first)) {
    const std::uint32_t second = first + small_step();
    const std::uint32_t third = second + small_step();
    RC_ASSERT(!before(first, first));
    RC_ASSERT(before(first, second) == (first != second));
    RC_ASSERT(!(before(first, second) && before(second, first)));
    if (before(first, second) && before(second, third)) RC_ASSERT(before(first, third));
}

TEST(Sequence, NumberAfterTheWrapIsNewer) {
    EXPECT_TRUE(before(0xffffffffU, 0U));
    EXPECT_FALSE(before(0U, 0xffffffffU));
    EXPECT_EQ(distance(0xfffffff0U, 0x10U), 0x20);
    EXPECT_EQ(distance(0x10U, 0xfffffff0U), -0x20);
}

RC_GTEST_PROP(AggregatorIndex, AnyInputGivesAnIndexWithinTheTable,
              (std::uint32_t seed, std::uint32_t slot, std::uint32_t attempt)) {
    const auto aggregators = *rc::gen::suchThat<std::uint32_t>([](std::uint32_t count) { return count != 0; });
    RC_ASSERT(aggregator_index(seed, slot, attempt, aggregators) < aggregators);
    RC_ASSERT(aggregator_index(seed, slot, attempt, 1) == 0U);
}

TEST(AggregatorIndex, DistinctInputsGiveDistinctIndices) {
    constexpr std::uint32_t aggregators = 1U << 20U;  // so many that a few hundred indices rarely collide
    std::set<std::uint32_t> seen;
    for (std::uint32_t i = 0; i < 100; ++i) {
        seen.insert(aggregator_index(index_seed(1, 1, 0), i, 0, aggregators));
        seen.insert(aggregator_index(index_seed(1, 1, 0), 0, i, aggregators));
        seen.insert(aggregator_index(index_seed(1, 1, static_cast<std::uint16_t>(i)), 0, 0, aggregators));
        seen.insert(aggregator_index(index_seed(i, 1, 0), 0, 0, aggregators));
        seen.insert(aggregator_index(index_seed(1, i, 0), 0, 0, aggregators));
        seen.insert(
            aggregator_index(index_seed(1, std::uint64_t{1} + (std::uint64_t{i} << 32U), 0), 0, 0, aggregators));
    }
    // 595 distinct inputs: job 1, token 1, channel 0, slot 0 and attempt 0 occur six times.
    EXPECT_GE(seen.size(), 593U);
}

TEST(AggregatorIndex, IndicesFillTheTableEvenly) {
    constexpr std::uint32_t aggregators = 64;
    std::vector<unsigned> hits(aggregators);
    for (std::uint32_t job = 0; job < 64; ++job) {
        for (std::uint32_t slot = 0; slot < 64; ++slot)
            ++hits[aggregator_index(index_seed(job, 1, 0), slot, 0, aggregators)];
    }
    for (const unsigned count : hits) {  // on average 64 hits, with a standard deviation of 8
        EXPECT_GT(count, 24U);
        EXPECT_LT(count, 104U);
    }
}

TEST(AuditWord, EveryInputChangesTheWord) {
    const std::set<std::uint32_t> words = {audit_word(1, 2, 3, 4, 5), audit_word(9, 2, 3, 4, 5),
                                           audit_word(1, 9, 3, 4, 5), audit_word(1, 2, 9, 4, 5),
                                           audit_word(1, 2, 3, 9, 5), audit_word(1, 2, 3, 4, 9)};
    EXPECT_EQ(words.size(), 6U);
}

// The model of the ring is a bounded vector.
RC_GTEST_PROP(Ring, FullRingRefusesAndOrderIsKept, (const std::vector<bool>& pushes)) {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 6);
    Ring<int> ring(capacity);
    std::vector<int> model;
    int next = 0;
    for (const bool push : pushes) {
        if (push) {
            RC_ASSERT(ring.push(next) == (model.size() < capacity));
            if (model.size() < capacity) model.push_back(next);
            ++next;
        } else if (!model.empty()) {
            RC_ASSERT(ring.front() == model.front());
            ring.pop();
            model.erase(model.begin());
        }
        RC_ASSERT(ring.size() == model.size());
        RC_ASSERT(ring.empty() == model.empty());
        RC_ASSERT(ring.full() == (model.size() == capacity));
    }
}

}  // namespace
}  // namespace atp::protocol
