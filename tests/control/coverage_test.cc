// SPDX-License-Identifier: Apache-2.0
// Jobs of which only a part passes this switch are forwarded unaggregated as a whole.
#include "control/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace atp::control {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t job = 7;

// A job that Coverage checks once per second.
struct Judged {
    Coverage coverage;
    protocol::SwitchCounters counters;
    Time now{seconds(1000)};

    bool second(std::uint64_t claimed, std::uint64_t completed, std::uint64_t fetched) {
        counters.events[ATP_EVENT_CLAIMED] += claimed;
        counters.events[ATP_EVENT_COMPLETED] += completed;
        counters.events[ATP_EVENT_FETCHED] += fetched;
        now += seconds(1);
        return coverage.judge(job, counters, now);
    }
    bool fruitless_second() { return second(100, 0, 100); }
    // True if the switch stops aggregating the job exactly after the last fruitless second.
    bool gives_up() {
        for (unsigned i = 1; i < Coverage::fruitless_seconds; ++i) {
            if (!fruitless_second()) return false;
        }
        return !fruitless_second();
    }
    // How long the job is forwarded unaggregated.
    seconds pause() {
        const Time before = now;
        while (!fruitless_second() && now < before + 2 * Coverage::longest_pause) {
        }
        return std::chrono::duration_cast<seconds>(now - before);
    }
};

TEST(Coverage, JobWithoutCompletionsIsForwardedUnaggregated) {
    Judged judged;
    EXPECT_TRUE(judged.gives_up());
    EXPECT_THAT(judged.coverage.passing(), ElementsAre(job));
    judged.coverage.forget(job);
    EXPECT_THAT(judged.coverage.passing(), IsEmpty());
}

TEST(Coverage, EachPauseIsTwiceAsLongUntilTheJobIsComplete) {
    Judged judged;
    for (Duration pause = Coverage::first_pause; pause < Coverage::longest_pause; pause *= 2) {
        ASSERT_TRUE(judged.gives_up());
        ASSERT_EQ(judged.pause(), pause);
        EXPECT_THAT(judged.coverage.passing(), IsEmpty());
    }
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(judged.gives_up());
        EXPECT_EQ(judged.pause(), Coverage::longest_pause);
    }
    EXPECT_TRUE(judged.second(1000, 990, 10)) << "somebody has mended the network";
    ASSERT_TRUE(judged.gives_up());
    EXPECT_EQ(judged.pause(), Coverage::first_pause);
}

TEST(Coverage, JobWithCompletionsStaysAggregatedDespiteFetches) {
    Judged judged;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(judged.second(100, 10, 90));
}

TEST(Coverage, CollisionsAndFlushesKeepTheJobAggregated) {
    Judged judged;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(judged.second(100, 0, 49));
}

TEST(Coverage, LateWorkerKeepsTheJobAggregated) {
    Judged judged;
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(judged.second(256, 0, 256));
        for (int idle = 0; idle < i % 3 + 1; ++idle) EXPECT_TRUE(judged.second(0, 0, 0));
        EXPECT_TRUE(judged.second(Coverage::fewest_claims - 1, 0, Coverage::fewest_claims - 1));
    }
}

}  // namespace
}  // namespace atp::control
