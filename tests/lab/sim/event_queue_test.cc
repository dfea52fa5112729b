// SPDX-License-Identifier: Apache-2.0
#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "random/random.h"

namespace atp::sim {
namespace {

Time at_ns(std::uint64_t ns) { return Time(Duration(static_cast<std::int64_t>(ns))); }

TEST(EventQueue, EventsComeInOrderOfTime) {
    EventQueue events;
    Random random(1, 1);
    std::vector<std::uint64_t> times;
    for (int i = 0; i < 500; ++i) {
        times.push_back(random.below(100));
        events.push(at_ns(times.back()), Event::Kind::wake, 0);
    }
    std::ranges::sort(times);
    for (const std::uint64_t time : times) {
        ASSERT_EQ(events.top().time, at_ns(time));
        events.pop();
    }
    EXPECT_TRUE(events.empty());
}

TEST(EventQueue, EventsOfOneTimeComeInTheOrderOfScheduling) {
    EventQueue events;
    for (std::uint32_t i = 0; i < 100; ++i) events.push(at_ns(5), Event::Kind::wake, i);
    for (std::uint32_t i = 0; i < 100; ++i) {
        ASSERT_EQ(events.top().target, i);
        events.pop();
    }
}

TEST(EventQueue, EarlyTicketKeepsItsOrderThoughPushedLate) {
    EventQueue events;
    const std::uint64_t ticket = events.next_order();
    events.push(at_ns(5), Event::Kind::wake, 2);
    events.push({.time = at_ns(5), .order = ticket, .kind = Event::Kind::path, .target = 1});
    EXPECT_EQ(events.top().target, 1U);
}

TEST(EventQueue, ReplacingTheTopEqualsAPopAndAPush) {
    EventQueue events;
    for (const std::uint64_t time : {1U, 4U, 9U, 16U, 25U, 36U}) events.push(at_ns(time), Event::Kind::wake, 0);
    events.replace_top({.time = at_ns(20), .order = events.next_order(), .kind = Event::Kind::wake, .target = 7});
    std::vector<std::uint64_t> left;
    for (; !events.empty(); events.pop()) {
        left.push_back(static_cast<std::uint64_t>(events.top().time.time_since_epoch().count()));
    }
    EXPECT_EQ(left, (std::vector<std::uint64_t>{4, 9, 16, 20, 25, 36}));
}

}  // namespace
}  // namespace atp::sim
