// SPDX-License-Identifier: Apache-2.0
#include "control/question_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ChannelKey channel_of_job{.job = 7, .token = 0x5eed, .channel = 3};

wire::Address numbered(unsigned number, unsigned port = 4790) {
    const std::string text = "10." + std::to_string(number >> 16U) + "." + std::to_string(number >> 8U & 0xFFU) + "." +
                             std::to_string(number & 0xFFU) + ":" + std::to_string(port);
    return *wire::Address::parse(text);
}

Time after(Duration since) { return Time{} + std::chrono::hours(1) + since; }

TEST(QuestionPace, PausesGrowFromFiftyMillisecondsToThreeSeconds) {
    QuestionPace pace({1, 2});
    Time now = after({});
    for (const int pause_ms : {50, 100, 200, 400, 800, 1600, 3000, 3000}) {
        EXPECT_EQ(pace.ask(numbered(1), numbered(9), channel_of_job, now), now);
        const Time next = pace.ask(numbered(1, 9), numbered(9), channel_of_job, now);
        EXPECT_GE(next - now, milliseconds(pause_ms)) << "also for another port of the host";
        EXPECT_LT(next - now, milliseconds(pause_ms + 60));
        now = next;
    }
}

TEST(QuestionPace, HostThatAnsweredMayBeAskedByAllForTenSeconds) {
    QuestionPace pace({1, 2});
    const Time now = after({});
    EXPECT_EQ(pace.ask(numbered(1), numbered(9), channel_of_job, now), now);
    EXPECT_TRUE(pace.handle_answer(numbered(1), now)) << "its first answer";
    EXPECT_FALSE(pace.handle_answer(numbered(1), now));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.ask(numbered(1), numbered(9), channel_of_job, now), now);
    const Time later = now + seconds(10);
    EXPECT_EQ(pace.ask(numbered(1), numbered(9), channel_of_job, later), later);
    EXPECT_GT(pace.ask(numbered(1), numbered(9), channel_of_job, later), later);
}

TEST(QuestionPace, FullTableAsksNoFurtherHostUntilOneIsForgotten) {
    QuestionPace pace({1, 2});
    const Time now = after({});
    for (unsigned i = 0; i < QuestionPace::most_hosts; ++i) {
        EXPECT_EQ(pace.ask(numbered(i), numbered(9), channel_of_job, now), now);
    }
    EXPECT_GT(pace.ask(numbered(5000), numbered(9), channel_of_job, now), now);
    EXPECT_EQ(pace.hosts(), QuestionPace::most_hosts);
    const Time later = now + QuestionPace::memory;
    EXPECT_EQ(pace.ask(numbered(5000), numbered(9), channel_of_job, later), later);
    EXPECT_EQ(pace.hosts(), 1U);
}

}  // namespace
}  // namespace atp::control
