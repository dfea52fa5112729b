// SPDX-License-Identifier: Apache-2.0
#include "switchd/control_turns.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace atp::switchd {
namespace {

using endpoint::ControlClass;
using endpoint::ControlMessage;
using endpoint::ControlQueue;
using std::chrono::microseconds;
using std::chrono::milliseconds;

wire::Address host(unsigned number) { return *wire::Address::parse("10.0.0." + std::to_string(number) + ":4790"); }
ControlMessage from(unsigned number) {
    return {.from = host(number), .bytes = std::vector<std::byte>(288), .length = 288};
}

struct Turns {
    // Handles what has its turn within `span`; each message costs 5 us. Counts those of each host.
    std::map<wire::Address, unsigned> handled(Duration span) {
        std::map<wire::Address, unsigned> counts;
        for (const Time end = now + span; now < end; now += microseconds(5)) {
            const auto message = turns.next(now);
            if (!message) continue;
            ++counts[message->from];
            turns.charge(microseconds(5), now + microseconds(5));
        }
        return counts;
    }

    ControlTurns turns{Secret{1, 2}};
    Time now{std::chrono::seconds(100)};
};

TEST(ControlTurns, H72_FloodOfOneClassPushesOutAndDelaysNoOther) {
    Turns turns;
    for (int i = 0; i < 5000; ++i) {
        turns.turns.put(ControlClass::strangers, from(66), turns.now);
        turns.turns.put(ControlClass::newcomers, from(67), turns.now);
    }
    EXPECT_GE(turns.turns.lost(), 5000 - ControlQueue::most_messages);
    turns.turns.put(ControlClass::neighbours, from(1), turns.now);
    EXPECT_EQ(turns.handled(microseconds(20))[host(1)], 1U);
}

TEST(ControlTurns, H72_HostThatFloodsLeavesOtherNewcomersTheirTurn) {
    Turns turns;
    for (int i = 0; i < 5000; ++i) turns.turns.put(ControlClass::newcomers, from(66), turns.now);
    for (unsigned i = 1; i <= 60; ++i) turns.turns.put(ControlClass::newcomers, from(i), turns.now);
    auto counts = turns.handled(milliseconds(50));
    for (unsigned i = 1; i <= 60; ++i) EXPECT_EQ(counts[host(i)], 1U) << i;
    EXPECT_LT(counts[host(66)], 1000U);
}

// 8 ranks of 4 channels in several groups, or 400 ranks of small jobs on one host.
TEST(ControlTurns, BurstOfOneHostWithoutAFloodPasses) {
    Turns turns;
    for (int i = 0; i < 400; ++i) turns.turns.put(ControlClass::newcomers, from(1), turns.now);
    EXPECT_EQ(turns.turns.lost(), 0U);
    EXPECT_EQ(turns.handled(milliseconds(3))[host(1)], 400U);
}

TEST(ControlTurns, ClassHasAShareOfTheTime) {
    const auto handled_in_a_second = [](Turns& turns, ControlClass of) {
        unsigned count = 0;
        for (int i = 0; i < 1000; ++i) {
            for (unsigned each = 0; each < 200; ++each) turns.turns.put(of, from(each), turns.now);
            for (const auto& [host, handled] : turns.handled(milliseconds(1))) count += handled;
        }
        return count;
    };
    Turns newcomers;
    EXPECT_NEAR(handled_in_a_second(newcomers, ControlClass::newcomers), 200'000 / 8.0, 3000)
        << "one part in 8, and 10 ms more";
    Turns strangers;
    EXPECT_NEAR(handled_in_a_second(strangers, ControlClass::strangers), 200'000 / 32.0, 1000);
    EXPECT_GT(strangers.turns.poll_timeout(), strangers.now) << "what waits is due when the class has time again";
    EXPECT_NE(strangers.turns.poll_timeout(), never);
}

TEST(ControlTurns, NothingIsDueWhileNothingWaits) {
    Turns turns;
    EXPECT_EQ(turns.turns.poll_timeout(), never);
    turns.turns.put(ControlClass::newcomers, from(1), turns.now);
    EXPECT_LE(turns.turns.poll_timeout(), turns.now);
    EXPECT_TRUE(turns.turns.next(turns.now));
    EXPECT_EQ(turns.turns.poll_timeout(), never);
}

}  // namespace
}  // namespace atp::switchd
